//! Every error of RFC 9114 and RFC 9204 that a peer's streams, frames and instructions must end in, at both ends; docs/reference/http3-errors.md has
//! the list. Peers that break the rules write their bytes by hand.

use futures_util::FutureExt;
use http::Request;
use spdy::body::Body;
use spdy_frame::priority::Priority;
use spdy_net_core::error::ExchangeError;

use crate::support::http3::{
    CONTROL, TestServer, announced, close_code, code, headers, outcome, uni,
};
use crate::support::raw_server::{ClientServerPair, OK, connect_pair};
use crate::support::{get, post, read};

/// The code that a server ends the connection with when a client sends `bytes` on its own unidirectional stream.
async fn from_client(bytes: &[u8]) -> u64 {
    let world = TestServer::echo();
    let raw = world.raw().await;
    let _open = uni(&raw, bytes, false).await;
    close_code(&raw).await
}

/// The code that a client ends the connection with when a server sends `bytes` behind SETTINGS on its control stream, and
/// why a request that waits fails.
async fn from_server(bytes: &[u8]) -> (u64, ExchangeError) {
    let mut pair = connect_pair(1).await;
    pair.control.write_all(bytes).await.unwrap();
    close_code_and_error(&pair).await
}

/// The code that the client ended the connection with, and why a request that waits fails.
async fn close_code_and_error(pair: &ClientServerPair) -> (u64, ExchangeError) {
    let reply = pair.client.send(get("/"), Priority::HIGHEST);
    let (code, response) = tokio::join!(close_code(&pair.server), reply);
    (code, response.expect_err("the connection has ended"))
}

fn control(bytes: &[u8]) -> Vec<u8> {
    [CONTROL, bytes].concat()
}

#[tokio::test]
async fn a_max_push_id_that_decreases_is_an_id_error() {
    let falling = control(&[0x0d, 0x01, 0x05, 0x0d, 0x01, 0x05, 0x0d, 0x01, 0x04]);
    assert_eq!(from_client(&falling).await, code::ID_ERROR);
}

#[tokio::test]
async fn a_max_push_id_of_a_wrong_length_is_a_frame_error() {
    for invalid in [&[0x0d, 0x00][..], &[0x0d, 0x02, 0x05, 0x05]] {
        assert_eq!(from_client(&control(invalid)).await, code::FRAME_ERROR);
    }
}

#[tokio::test]
async fn a_max_push_id_that_stays_or_grows_is_no_error() {
    let world = TestServer::echo();
    let raw = world.raw().await;
    let growing = control(&[0x0d, 0x01, 0x00, 0x0d, 0x01, 0x00, 0x0d, 0x01, 0x07]);
    let _control = uni(&raw, &growing, false).await;
    assert_eq!(outcome(&raw, &headers(b"")).await, None);
}

#[tokio::test]
async fn cancel_push_of_an_unknown_push_is_an_id_error_at_both_ends() {
    let cancel = [0x03, 0x01, 0x00];
    assert_eq!(from_client(&control(&cancel)).await, code::ID_ERROR);
    assert_eq!(from_server(&cancel).await.0, code::ID_ERROR);
}

#[tokio::test]
async fn cancel_push_of_a_wrong_length_is_a_frame_error() {
    assert_eq!(
        from_client(&control(&[0x03, 0x00])).await,
        code::FRAME_ERROR
    );
}

#[tokio::test]
async fn a_priority_of_an_unknown_push_is_an_id_error() {
    let update = control(&[0x80, 0x0f, 0x07, 0x01, 0x01, 0x00]);
    assert_eq!(from_client(&update).await, code::ID_ERROR);
}

#[tokio::test]
async fn a_priority_of_a_push_is_unexpected_from_a_server_and_on_a_request() {
    let update = [0x80, 0x0f, 0x07, 0x01, 0x01, 0x00];
    assert_eq!(from_server(&update).await.0, code::FRAME_UNEXPECTED);
    let world = TestServer::echo();
    let raw = world.raw().await;
    assert_eq!(outcome(&raw, &update).await, Some(code::FRAME_UNEXPECTED));
}

#[tokio::test]
async fn a_control_stream_must_begin_with_settings() {
    // DATA, CANCEL_PUSH, a type of HTTP/2, and one that is unknown.
    for first in [0x00, 0x03, 0x06, 0x21] {
        let stream = [0x00, first, 0x00, 0x04, 0x00];
        assert_eq!(from_client(&stream).await, code::MISSING_SETTINGS);
    }
}

#[tokio::test]
async fn every_setting_that_is_reserved_for_http2_is_a_settings_error() {
    for id in [0x00, 0x02, 0x03, 0x04, 0x05] {
        let settings = [0x00, 0x04, 0x02, id, 0x00];
        assert_eq!(from_client(&settings).await, code::SETTINGS_ERROR, "{id}");
    }
}

#[tokio::test]
async fn a_section_acknowledgment_is_a_decoder_stream_error() {
    for acknowledged in [[0x03, 0x80], [0x03, 0x84]] {
        let close_code = from_client(&acknowledged).await;
        assert_eq!(close_code, code::QPACK_DECODER_STREAM_ERROR);
    }
}

#[tokio::test]
async fn an_insert_count_increment_is_a_decoder_stream_error() {
    for increment in [0, 5] {
        let close_code = from_client(&[0x03, increment]).await;
        assert_eq!(close_code, code::QPACK_DECODER_STREAM_ERROR, "{increment}");
    }
}

#[tokio::test]
async fn a_stream_cancellation_of_an_id_past_62_bits_is_a_decoder_stream_error() {
    let cancellation = [&[0x03, 0x7f][..], &[0xff; 9], &[0x01]].concat();
    let close_code = from_client(&cancellation).await;
    assert_eq!(close_code, code::QPACK_DECODER_STREAM_ERROR);
}

#[tokio::test]
async fn stream_cancellations_are_accepted_with_any_split() {
    let world = TestServer::echo();
    let raw = world.raw().await;
    let mut decoder = uni(&raw, &[0x03, 0x44, 0x7f], false).await;
    for byte in [&[0xff; 8][..], &[0x01, 0x40]] {
        assert_eq!(outcome(&raw, &headers(b"")).await, None);
        decoder.write_all(byte).await.unwrap();
    }
    assert_eq!(outcome(&raw, &headers(b"")).await, None);
    // All of the above was complete: what follows is an instruction of its own.
    decoder.write_all(&[0x00]).await.unwrap();
    assert_eq!(close_code(&raw).await, code::QPACK_DECODER_STREAM_ERROR);
}

#[tokio::test]
async fn qpack_instructions_of_a_server_have_the_same_rules() {
    for (bytes, expected) in [
        (
            &[0x02, 0x3f, 0xe2, 0x1f][..],
            code::QPACK_ENCODER_STREAM_ERROR,
        ), // a capacity of 4,097
        (&[0x02, 0xc0, 0x00], code::QPACK_ENCODER_STREAM_ERROR), // an insertion, of a table without capacity
        (&[0x02, 0x80, 0x00], code::QPACK_ENCODER_STREAM_ERROR),
        (&[0x02, 0x00], code::QPACK_ENCODER_STREAM_ERROR),
        (&[0x03, 0x80], code::QPACK_DECODER_STREAM_ERROR),
        (&[0x03, 0x01], code::QPACK_DECODER_STREAM_ERROR),
    ] {
        let pair = connect_pair(1).await;
        let _open = uni(&pair.server, bytes, false).await;
        assert_eq!(close_code_and_error(&pair).await.0, expected, "{bytes:x?}");
    }
}

#[tokio::test]
async fn a_second_qpack_stream_is_a_stream_creation_error() {
    for kind in [0x02, 0x03] {
        let world = TestServer::echo();
        let raw = world.raw().await;
        let _first = uni(&raw, &[kind], false).await;
        let _second = uni(&raw, &[kind], false).await;
        assert_eq!(close_code(&raw).await, code::STREAM_CREATION_ERROR);
    }
}

#[tokio::test]
async fn a_block_with_a_negative_base_is_a_decompression_failure() {
    let world = TestServer::echo();
    let raw = world.raw().await;
    let block = b"\x00\x80\xd1\xd7\x50\x09localhost\x51\x02/1";
    let request = announced(1, block.len(), block);
    let reset_code = outcome(&raw, &request).await;
    assert_eq!(reset_code, Some(code::QPACK_DECOMPRESSION_FAILED));
}

/// The result of a block with the encoded base `base`: seven bits, and as many bytes as follow.
async fn with_base(base: &[u8]) -> Option<u64> {
    let world = TestServer::echo();
    let raw = world.raw().await;
    let block = [b"\x00", base, b"\xd1\xd7\x50\x09localhost\x51\x02/1"].concat();
    outcome(&raw, &announced(1, block.len(), &block)).await
}

#[tokio::test]
async fn a_block_may_have_a_base_of_at_most_62_bits() {
    let largest = b"\x7f\x80\xff\xff\xff\xff\xff\xff\xff\x3f"; // 2^62 - 1
    assert_eq!(with_base(largest).await, None);
    let too_large = b"\x7f\x81\xff\xff\xff\xff\xff\xff\xff\x3f";
    let failed = Some(code::QPACK_DECOMPRESSION_FAILED);
    assert_eq!(with_base(too_large).await, failed);
    let endless = [&[0x7f][..], &[0x80; 20]].concat();
    assert_eq!(with_base(&endless).await, failed);
}

/// The code that a client ends the connection with when a server answers its request with `bytes`.
async fn close_code_after_response(bytes: &[u8]) -> u64 {
    let pair = connect_pair(1).await;
    let reply = async {
        let response = pair.client.send(get("/"), Priority::HIGHEST).await?;
        read(response).await.map_err(|error| {
            ExchangeError::new(spdy_net_core::error::Retry::Never, error.to_string())
        })
    };
    let server_side = async {
        let (mut send, _recv) = pair.server.accept_bi().await.unwrap();
        send.write_all(bytes).await.unwrap();
        close_code(&pair.server).await
    };
    let (reply, code) = tokio::join!(reply, server_side);
    reply.expect_err("the connection has ended");
    code
}

#[tokio::test]
async fn push_promise_to_a_client_that_allowed_no_push_is_an_id_error() {
    let promise = [&[0x05, 0x03, 0x00, 0x00, 0x00][..], OK].concat();
    assert_eq!(close_code_after_response(&promise).await, code::ID_ERROR);
}

#[tokio::test]
async fn frames_out_of_order_in_a_response_are_unexpected() {
    for invalid in [
        &[0x00, 0x01, b'x'][..],                       // DATA before HEADERS
        &[OK, &[0x01, 0x02, 0x00, 0x00], OK].concat(), // a head behind trailers
        &[OK, &[0x01, 0x02, 0x00, 0x00, 0x00, 0x01, b'x']].concat(), // DATA behind trailers
        &[0x04, 0x00],                                 // SETTINGS
        &[0x0d, 0x01, 0x00],                           // MAX_PUSH_ID
    ] {
        let close_code = close_code_after_response(invalid).await;
        assert_eq!(close_code, code::FRAME_UNEXPECTED, "{invalid:x?}");
    }
}

#[tokio::test]
async fn control_frames_that_only_clients_send_are_unexpected_from_a_server() {
    for frame in [
        &[0x0d, 0x01, 0x00][..],
        &[0x80, 0x0f, 0x07, 0x00, 0x01, 0x00],
    ] {
        let (close_code, _) = from_server(frame).await;
        assert_eq!(close_code, code::FRAME_UNEXPECTED, "{frame:x?}");
    }
}

/// Before, the error was only "QUIC: closed".
#[tokio::test]
async fn a_request_reports_why_the_client_closed_the_connection() {
    let (_, error) = from_server(&[0x07, 0x01, 0x03]).await;
    let expected = "h3: GOAWAY with 3, which is not a request stream (H3_ID_ERROR)";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_body_reports_why_the_client_closed_the_connection() {
    let mut pair = connect_pair(1).await;
    let reply = pair.client.send(get("/"), Priority::HIGHEST);
    let server_side = async {
        let (mut send, _recv) = pair.server.accept_bi().await.unwrap();
        send.write_all(OK).await.unwrap();
        send
    };
    let (response, _send) = tokio::join!(reply, server_side);
    pair.control.write_all(&[0x04, 0x00]).await.unwrap();
    let error = read(response.unwrap())
        .await
        .expect_err("the connection has ended");
    assert!(
        error.to_string().ends_with("(H3_FRAME_UNEXPECTED)"),
        "{error}"
    );
}

#[tokio::test]
async fn an_upload_whose_body_fails_is_reset_with_request_cancelled() {
    let pair = connect_pair(1).await;
    let pieces = [
        Ok(bytes::Bytes::from_static(b"x")),
        Err(std::io::Error::other("gone")),
    ];
    let body = Body::from_stream(futures_util::stream::iter(pieces));
    let request = Request::post("https://localhost/").body(body).unwrap();
    let mut reply = pair.client.send(request, Priority::HIGHEST);
    let accepting = async {
        let (send, mut recv) = pair.server.accept_bi().await.unwrap();
        (recv.received_reset().await.unwrap(), send)
    };
    let reset = tokio::select! {
        (reset, _send) = accepting => reset,
        _ = &mut reply => panic!("no response arrived"),
    };
    let code = reset.map(quinn::VarInt::into_inner);
    assert_eq!(code, Some(code::REQUEST_CANCELLED));
    assert!(
        reply.now_or_never().is_none(),
        "the request may still get a response"
    );
}

#[tokio::test]
async fn a_body_that_fails_on_the_server_is_reset_with_internal_error() {
    let failing = |_| async {
        let error = Err::<bytes::Bytes, _>(std::io::Error::other("gone"));
        http::Response::new(Body::from_stream(futures_util::stream::iter([error])))
    };
    let world = TestServer::serve(failing, spdy_net_core::options::ServerOptions::default());
    let raw = world.raw().await;
    let reset = outcome(&raw, &headers(b"")).await;
    assert_eq!(reset, Some(code::INTERNAL_ERROR));
}

/// The answer is whole although nothing of the upload was read (RFC 9114 §4.1).
#[tokio::test]
async fn an_unread_upload_is_stopped_with_no_error_after_its_response() {
    let early = |_| async { http::Response::new(Body::full("early")) };
    let world = TestServer::serve(early, spdy_net_core::options::ServerOptions::default());
    let raw = world.raw().await;
    let (mut send, mut recv) = raw.open_bi().await.unwrap();
    let mut head = headers(b"");
    head[7] = 0xd4; // POST
    send.write_all(&head).await.unwrap();
    let stopped = send.stopped().await.unwrap();
    assert_eq!(stopped.map(quinn::VarInt::into_inner), Some(code::NO_ERROR));
    assert!(recv.read_to_end(1000).await.unwrap().ends_with(b"early"));
    let connection = world.connect().await;
    let response = connection.send(post("/", vec![7; 1 << 20]), Priority::HIGHEST);
    assert_eq!(read(response.await.unwrap()).await.unwrap(), "early");
}

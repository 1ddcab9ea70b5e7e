//! A client of HTTP/2 and SPDY/3.1 without TLS that writes arbitrary bytes into fields and reads the status of the response.
//!
//! HPACK is written as literals without indexing or Huffman coding. In responses only `:status` is decoded, which is the first
//! field.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use spdy_frame::compress::{Compression, Deflater};
use spdy_frame::data::Data;
use spdy_frame::decoder::{Decoder, Limits};
use spdy_frame::frame::Frame;
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::inflate::Inflater;
use spdy_frame::priority::Priority;
use spdy_frame::settings::{Setting, SettingId, Settings};
use spdy_frame::stream_id::StreamId;
use spdy_frame::syn_stream::SynStream;
use spdy_frame::version::Version;

/// Longer than any test step takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Field names and values.
pub(crate) type Fields<'a> = &'a [(&'a str, &'a [u8])];

/// Returns `Some(Some(status))` once the status has arrived, and `Some(None)` once there will be none.
type Reader = Box<dyn FnMut(&mut BytesMut) -> Option<Option<u16>>>;

/// The protocol of the frames.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FrameProtocol {
    Http2,
    Spdy,
}

impl FrameProtocol {
    pub(crate) const ALL: [Self; 2] = [Self::Http2, Self::Spdy];

    /// A request with these fields by a client whose stream windows are 0, so that no body can be sent to it.
    pub(crate) fn with_zero_window(self, fields: Fields<'_>) -> Vec<u8> {
        match self {
            Self::Http2 => {
                let mut out = PREFACE.to_vec();
                // SETTINGS_INITIAL_WINDOW_SIZE = 0 (RFC 9113 §6.5.2).
                http2_frame(&mut out, 4, 0, 0, &[0, 4, 0, 0, 0, 0]);
                http2_request(&mut out, fields, None);
                out
            }
            Self::Spdy => {
                let setting = Setting::new(SettingId::INITIAL_WINDOW_SIZE, 0);
                let settings = Settings {
                    clear: false,
                    entries: vec![setting],
                    ignored: 0,
                };
                let mut out = BytesMut::new();
                settings.encode(Version::V31, &mut out);
                [&out[..], &spdy(fields, None)].concat()
            }
        }
    }

    /// Sends a request with these fields on a new connection; pseudo-fields have their HTTP/2 names. Returns the status of the
    /// response, or `None` if the stream or the connection was closed without one.
    pub(crate) fn request_status(
        self,
        to: SocketAddr,
        fields: Fields<'_>,
        body: Option<&[u8]>,
    ) -> Option<u16> {
        let mut socket = TcpStream::connect(to).expect("connect");
        socket
            .set_read_timeout(Some(TIMEOUT))
            .expect("set the option");
        let request = match self {
            Self::Http2 => http2(fields, body),
            Self::Spdy => spdy(fields, body),
        };
        // A server that rejects the beginning need not read the rest.
        let _ = socket.write_all(&request);
        let mut buffer = BytesMut::new();
        let mut reader: Reader = match self {
            Self::Http2 => Box::new(read_http2),
            Self::Spdy => Box::new(read_spdy()),
        };
        let mut piece = vec![0; 1 << 16];
        loop {
            if let Some(status) = reader(&mut buffer) {
                return status;
            }
            match socket.read(&mut piece) {
                Ok(len @ 1..) => buffer.extend_from_slice(&piece[..len]),
                Ok(0) => return None,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{self:?}: {error}, for {fields:?}"),
            }
        }
    }
}

fn http2_frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let len = u32::try_from(payload.len())
        .expect("a short payload")
        .to_be_bytes();
    out.extend_from_slice(&len[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// The client's connection preface (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn http2(fields: Fields<'_>, body: Option<&[u8]>) -> Vec<u8> {
    let mut out = PREFACE.to_vec();
    http2_frame(&mut out, 4, 0, 0, &[]);
    http2_request(&mut out, fields, body);
    out
}

fn http2_request(out: &mut Vec<u8>, fields: Fields<'_>, body: Option<&[u8]>) {
    let mut block = Vec::new();
    let string = |out: &mut Vec<u8>, bytes: &[u8]| {
        match bytes.len() {
            len @ ..127 => out.push(len as u8),
            len => {
                out.push(127);
                let mut rest = len - 127;
                while rest >= 128 {
                    out.push((rest % 128) as u8 | 128);
                    rest /= 128;
                }
                out.push(rest as u8);
            }
        }
        out.extend_from_slice(bytes);
    };
    for (name, value) in fields {
        block.push(0);
        string(&mut block, name.as_bytes());
        string(&mut block, value);
    }
    http2_frame(out, 1, 4 | u8::from(body.is_none()), 1, &block);
    if let Some(body) = body {
        http2_frame(out, 0, 1, 1, body);
    }
}

fn read_http2(buffer: &mut BytesMut) -> Option<Option<u16>> {
    while buffer.len() >= 9 {
        let len = u32::from_be_bytes([0, buffer[0], buffer[1], buffer[2]]) as usize;
        if buffer.len() < 9 + len {
            return None;
        }
        let frame = buffer.split_to(9 + len);
        match frame[3] {
            1 => return Some(Some(http2_status(&frame[9..]))),
            3 | 7 => return Some(None),
            _ => {}
        }
    }
    None
}

/// `:status` at the beginning of a header block: from the static table, or a literal.
fn http2_status(block: &[u8]) -> u16 {
    let block = match block {
        // A dynamic table size update.
        [0x20..=0x3f, rest @ ..] => rest,
        _ => block,
    };
    match block {
        [index @ 0x88..=0x8e, ..] => [200, 204, 206, 304, 400, 404, 500][usize::from(index - 0x88)],
        [0x08 | 0x18 | 0x48, len, text @ ..] if len & 0x80 == 0 => {
            let text = std::str::from_utf8(&text[..usize::from(*len)]);
            text.ok()
                .and_then(|text| text.parse().ok())
                .expect("a status")
        }
        [0x08 | 0x18 | 0x48, _, text @ ..] => {
            // In the Huffman code digits have five or six bits (RFC 7541 Appendix B).
            let bits = text
                .iter()
                .take(3)
                .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
            let (mut bits_left, mut status) = (24, 0);
            for _ in 0..3 {
                let five = bits >> (bits_left - 5) & 0x1f;
                let digit = match five {
                    0..=2 => {
                        bits_left -= 5;
                        five
                    }
                    _ => {
                        bits_left -= 6;
                        (bits >> bits_left & 0x3f) - 0x19 + 3
                    }
                };
                status = status * 10 + digit as u16;
            }
            status
        }
        _ => panic!("no :status in {block:02x?}"),
    }
}

fn spdy(fields: Fields<'_>, body: Option<&[u8]>) -> Vec<u8> {
    let mut block = HeaderBlock::new();
    block.push(":version", "HTTP/1.1");
    for (name, value) in fields {
        block.push(if *name == ":authority" { ":host" } else { name }, value);
    }
    let (mut compressed, mut out) = (BytesMut::new(), BytesMut::new());
    Deflater::new(Version::V31, Compression::default()).deflate(&block, &mut compressed);
    let stream_id = StreamId::new(1);
    SynStream {
        stream_id,
        associated_to: StreamId::ZERO,
        priority: Priority::HIGHEST,
        fin: body.is_none(),
        unidirectional: false,
        block: compressed.freeze(),
    }
    .encode(Version::V31, &mut out);
    if let Some(body) = body {
        Data {
            stream_id,
            payload: Bytes::copy_from_slice(body),
            fin: true,
        }
        .encode(&mut out);
    }
    out.to_vec()
}

fn read_spdy() -> impl FnMut(&mut BytesMut) -> Option<Option<u16>> {
    let mut decoder = Decoder::new(Version::V31, Limits::default());
    let mut inflater = Inflater::new(Version::V31, BlockLimits::default());
    move |buffer| {
        while let Some(frame) = decoder.decode(buffer).expect("write a frame") {
            match frame {
                Frame::SynReply(reply) => {
                    let block = inflater
                        .inflate(&reply.block)
                        .expect("decompress the block");
                    let headers = block.headers.expect("valid headers");
                    let status = headers.get(":status").expect("a `:status`");
                    let status = String::from_utf8_lossy(&status[..3]).parse();
                    return Some(Some(status.expect("a status")));
                }
                Frame::RstStream(_) | Frame::GoAway(_) => return Some(None),
                _ => {}
            }
        }
        None
    }
}

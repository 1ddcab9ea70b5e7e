//! How the two bodies of an exchange are passed: whether they are a gRPC call, and whether the client accepts trailers.

use http::{HeaderMap, HeaderValue, Method, header, request};
use spdy_net::handler::RequestInfo;
use spdy_net::protocol::Protocol;

/// How the two bodies of an exchange are passed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct StreamTraits {
    /// It is a gRPC call for a path with `grpc`: both bodies are streams, which are not buffered, stored, coded or rewritten.
    pub(crate) is_grpc: bool,
    /// The client accepts trailers.
    pub(crate) takes_trailers: bool,
    /// The client states that it does.
    states_trailers: bool,
}

impl StreamTraits {
    /// Those of the request with `head`. `allows_grpc` is whether its path has `grpc`.
    pub(crate) fn of(head: &request::Parts, allows_grpc: bool) -> Self {
        let arrival = head.extensions.get::<RequestInfo>();
        // Some clients of SPDY fail on trailers, and SPDY has no `TE`. Clients of HTTP/2 and HTTP/3 skip trailers that they do not read.
        let is_framed = arrival
            .is_some_and(|arrival| matches!(arrival.protocol, Protocol::Http2 | Protocol::Http3));
        let states_trailers = states_trailers(&head.headers);
        Self {
            is_grpc: allows_grpc && head.method == Method::POST && is_grpc(&head.headers),
            takes_trailers: is_framed || states_trailers,
            states_trailers,
        }
    }

    /// States in `headers`, the fields for the origin, that trailers are accepted. Some origins send none to other clients, and servers of
    /// gRPC reject a call without it.
    pub(crate) fn announce(self, headers: &mut HeaderMap) {
        if self.is_grpc || self.states_trailers {
            headers.insert(header::TE, HeaderValue::from_static("trailers"));
        }
    }
}

/// Whether `Content-Type` is `application/grpc`, also with a format (`+proto`) or a parameter.
fn is_grpc(headers: &HeaderMap) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    let content_type = headers.get(header::CONTENT_TYPE);
    content_type.is_some_and(|value| {
        value
            .as_bytes()
            .split_at_checked(GRPC.len())
            .is_some_and(|(start, rest)| {
                start.eq_ignore_ascii_case(GRPC)
                    && rest.first().is_none_or(|byte| b"+; -".contains(byte))
            })
    })
}

fn states_trailers(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::TE).iter();
    values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .any(|member| member.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn a_call_is_a_post_with_the_type_of_grpc_on_a_path_with_grpc() {
        let is_call = |method: Method, content_type: &str, allows_grpc| {
            let request = Request::builder()
                .method(method)
                .header("content-type", content_type);
            let (head, ()) = request.body(()).expect("a request").into_parts();
            StreamTraits::of(&head, allows_grpc).is_grpc
        };
        for content_type in [
            "application/grpc",
            "application/grpc+proto",
            "Application/gRPC; x=1",
            "application/grpc-web+proto",
        ] {
            assert!(is_call(Method::POST, content_type, true), "{content_type}");
            assert!(!is_call(Method::POST, content_type, false));
            assert!(!is_call(Method::GET, content_type, true));
        }
        for content_type in ["application/grp", "application/grpcx", "text/html"] {
            assert!(!is_call(Method::POST, content_type, true), "{content_type}");
        }
    }

    #[test]
    fn clients_of_http1_accept_trailers_if_they_state_it() {
        let takes = |protocol: Protocol, te: &str| {
            let request = Request::builder().header("te", te);
            let (mut head, ()) = request.body(()).expect("a request").into_parts();
            head.extensions.insert(RequestInfo {
                protocol,
                secure: true,
                priority: spdy_frame::priority::Priority::HIGHEST,
            });
            StreamTraits::of(&head, false).takes_trailers
        };
        assert!(takes(Protocol::Http2, ""));
        assert!(takes(Protocol::Http3, ""));
        assert!(!takes(Protocol::Http1, "gzip"));
        assert!(takes(Protocol::Http1, "gzip, Trailers"));
    }
}

//! What an origin's status is about: the requested resource, this one request, or the origin itself.

use http::StatusCode;

/// The label of an origin's response in counters.
pub(crate) fn class_of(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => "other",
    }
}

/// Whether the status is about the origin, not the resource.
pub(crate) fn is_origin_error(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// Whether the origin is overloaded, so that other requests for the same resource are better not sent.
pub(crate) fn is_overloaded(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    )
}

/// Whether the status is about this one request, so that another for the same resource may have another result.
pub(crate) fn is_request_error(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::NOT_ACCEPTABLE
            | StatusCode::PROXY_AUTHENTICATION_REQUIRED
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::PRECONDITION_FAILED
            | StatusCode::RANGE_NOT_SATISFIABLE
            | StatusCode::MISDIRECTED_REQUEST
            | StatusCode::TOO_EARLY
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            | StatusCode::LOOP_DETECTED
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_class_has_its_label() {
        for (status, label) in [
            (101, "1xx"),
            (204, "2xx"),
            (308, "3xx"),
            (451, "4xx"),
            (503, "5xx"),
            (600, "other"),
            (999, "other"),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            assert_eq!(class_of(status), label);
        }
    }
}

//! What an origin's answer is about, by its status: the thing that was asked for, this one request, or the origin itself.

use http::StatusCode;

/// The label of an origin's answer in counters.
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

/// Whether it tells of its origin, not of what was asked for.
pub(crate) fn is_origin_error(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// Whether it tells that there is too much to do, so that all who want the same had better not ask as well.
pub(crate) fn is_overloaded(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    )
}

/// Whether it tells what is wrong with this one request, so that another for the same may fare otherwise.
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

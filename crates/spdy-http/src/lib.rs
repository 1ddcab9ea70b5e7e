//! HTTP over a SPDY session: requests, responses, header rules, push. (Contract)

pub mod http1_text;
pub mod request;
pub mod response;

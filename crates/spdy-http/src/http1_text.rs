//! How long a head would be as HTTP/1.1 text: the measure of "header bytes before compression".
/// Bytes of the request line, Host, the headers and the empty line.
pub fn request_head_bytes(head: &http::request::Parts) -> usize { let _ = head; todo!() }
/// Bytes of the status line, the headers and the empty line.
pub fn response_head_bytes(head: &http::response::Parts) -> usize { let _ = head; todo!() }

//! Passwords of clients by HTTP's Basic scheme (RFC 7617): files of Apache's `htpasswd`.

pub(crate) mod basic_credentials;
pub(crate) mod check_queue;
pub mod password_file;
pub(crate) mod password_hash;

//! The driver.
use crate::error::Error;
use crate::runtime::SharedRuntime;
use tokio::io::{AsyncRead, AsyncWrite};
/// The half of a session that does the I/O: nothing moves unless it is run.
#[derive(Debug)]
pub struct Connection<T> { io: T }
impl<T: AsyncRead + AsyncWrite + Unpin> Connection<T> {
    /// Drives the session until it ends: `Ok` in order, else why.
    pub async fn run(self) -> Result<(), Error> { let _ = self.io; todo!() }
}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Connection<T> {
    /// Runs it as a task of the session's runtime; the streams tell what became of it.
    pub fn spawn(self) { let _: Option<SharedRuntime> = None; todo!() }
}

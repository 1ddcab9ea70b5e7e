//! The program of both clocks: a request is 100 bytes with the length of the response.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;
use spdy::runtime::Runtime;
use spdy_net::network::{BoxIo, Network};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::calibrate::download_cell::{ConnectionMode, DownloadCell};

/// Length of a request.
const REQUEST_LEN: usize = 100;
/// Maximum length of a response that may be requested, bytes.
const MAX_ANSWER: u64 = 1 << 30;

/// Serves requests until the client disconnects.
pub(crate) async fn serve(mut io: BoxIo) -> io::Result<()> {
    let mut request = [0; REQUEST_LEN];
    loop {
        io.read_exact(&mut request).await?;
        let text = std::str::from_utf8(&request).map_err(|_| invalid_request(&request))?;
        let len: u64 = text.trim().parse().map_err(|_| invalid_request(&request))?;
        if len > MAX_ANSWER {
            return Err(invalid_request(&request));
        }
        let answer = vec![b'.'; len as usize]; // at most MAX_ANSWER
        io.write_all(&answer).await?;
    }
}

fn invalid_request(request: &[u8]) -> io::Error {
    let what = format!(
        "expected a length, found {:?}",
        String::from_utf8_lossy(request)
    );
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Downloads the objects of `cell` from `server`. Returns the time from the first SYN to the last byte.
pub(crate) async fn fetch(
    network: &dyn Network,
    runtime: &dyn Runtime,
    cell: &DownloadCell,
    server: SocketAddr,
) -> io::Result<Duration> {
    let began = runtime.now();
    let left = AtomicU32::new(cell.objects);
    let connections =
        (0..cell.manner.connections()).map(|_| connection(network, cell, server, &left));
    try_join_all(connections).await?;
    Ok(runtime.now() - began)
}

/// One connection, which takes objects from the shared list until it is empty.
async fn connection(
    network: &dyn Network,
    cell: &DownloadCell,
    server: SocketAddr,
    left: &AtomicU32,
) -> io::Result<()> {
    let mut io = network.connect(server).await?;
    let request = format!("{:<REQUEST_LEN$}", cell.bytes);
    if cell.manner == ConnectionMode::One {
        let all = request.repeat(cell.objects as usize);
        io.write_all(all.as_bytes()).await?;
        return read(&mut io, cell.bytes * u64::from(cell.objects)).await;
    }
    while left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        })
        .is_ok()
    {
        io.write_all(request.as_bytes()).await?;
        read(&mut io, cell.bytes).await?;
    }
    Ok(())
}

async fn read(io: &mut BoxIo, mut left: u64) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    while left > 0 {
        match io.read(&mut buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            len => left -= len as u64,
        }
    }
    Ok(())
}

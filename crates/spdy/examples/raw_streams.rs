//! Streams without HTTP, with headers of one's own: two ends of a pipe, one of which shouts back.
//!
//! ```text
//! cargo run -p spdy --example raw_streams
//! ```

use spdy::client::OpenOptions;
use spdy::server::Accept;
use spdy::{Error, HeaderBlock, client, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (accept, connection) = server::handshake(far);
    connection.spawn();
    tokio::spawn(echo_uppercase(accept));

    let (session, connection) = client::handshake(near);
    connection.spawn();
    for word in ["hello", "streams"] {
        let headers = HeaderBlock::from_iter([("streamtype", "words")]);
        let mut stream = session.open(headers, OpenOptions::default()).await?;
        stream.write_all(word.as_bytes()).await?;
        stream.shutdown().await?; // only our half: the answer is still to come
        let reply = stream.reply().await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        tokio::io::stdout()
            .write_all(format!("{} {reply:?}: {answer}\n", stream.id()).as_bytes())
            .await?;
    }
    Ok(())
}

/// Answers each stream with its data, in upper case.
async fn echo_uppercase(mut accept: Accept) -> Result<(), Error> {
    while let Some(incoming) = accept.next().await {
        let mut stream = incoming.accept_raw(&HeaderBlock::from_iter([("volume", "loud")]))?;
        tokio::spawn(async move {
            while let Some(Ok(bytes)) = stream.receive().await {
                stream.send(bytes.to_ascii_uppercase().into()).await?;
            }
            stream.finish()
        });
    }
    Ok(())
}

//! Diagnoses why nodes are unreachable. The cluster client reports only that it has no connection.

use std::time::Duration;

use redis::{AsyncConnectionConfig, Client, RedisResult, TlsCertificates};

use crate::config::{Config, redact};

/// Timeout for a connection to one node, and for its answer.
const NODE_TIMEOUT: Duration = Duration::from_secs(1);

/// The error of each unreachable node of `config`: its address, and the reason.
pub(crate) async fn node_errors(config: Config) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    for node in &config.nodes {
        if let Err(error) = ping_node(node, config.authorities.clone()).await {
            faults.push((redact(node), error.to_string()));
        }
    }
    faults
}

/// Connects to a node, and sends PING.
async fn ping_node(node: &str, authorities: Option<Vec<u8>>) -> RedisResult<()> {
    let client = match authorities {
        Some(pem) if node.starts_with("rediss:") => {
            let certificates = TlsCertificates {
                client_tls: None,
                root_cert: Some(pem),
            };
            Client::build_with_tls(node, certificates)?
        }
        _ => Client::open(node)?,
    };
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(NODE_TIMEOUT))
        .set_response_timeout(Some(NODE_TIMEOUT));
    let connected = client.get_multiplexed_async_connection_with_config(&config);
    let mut connection = connected.await?;
    redis::cmd("PING").query_async(&mut connection).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Starts a node that replies `answer` to every command.
    async fn node(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has a free port");
        let address = listener.local_addr().expect("the listener is bound");
        tokio::spawn(async move {
            while let Ok((mut io, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    while let Ok(len @ 1..) = io.read(&mut request).await {
                        // Each command begins with its number of words.
                        let commands = request[..len].iter().filter(|byte| **byte == b'*').count();
                        let _ = io.write_all(answer.repeat(commands).as_bytes()).await;
                    }
                });
            }
        });
        address.to_string()
    }

    #[tokio::test]
    async fn node_errors_have_a_reason_and_no_password() {
        let wrong =
            node("-WRONGPASS invalid username-password pair or user is disabled.\r\n").await;
        let closed = node("-NOAUTH Authentication required.\r\n").await;
        let web = node("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let config = Config {
            nodes: vec![
                format!("redis://me:secret@{wrong}"),
                format!("redis://{closed}"),
                format!("redis://{web}"),
                "redis://127.0.0.1:1".to_owned(),
            ],
            ..Config::default()
        };
        let faults = node_errors(config).await;
        let (nodes, reasons): (Vec<_>, Vec<_>) = faults.into_iter().unzip();
        let of_web = format!("redis://{web}");
        assert_eq!(nodes.len(), 4, "{reasons:?}");
        assert!(nodes[0].ends_with(&wrong) && !nodes[0].contains("secret"));
        assert_eq!(nodes[2], of_web);
        for (reason, word) in
            reasons
                .iter()
                .zip(["Password authentication failed", "NOAUTH", "", "refused"])
        {
            assert!(!reason.is_empty() && reason.contains(word), "{reason}");
            assert!(!reason.contains("secret"), "{reason}");
        }
    }
}

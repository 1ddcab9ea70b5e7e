//! The commands that are sent to the cluster. Only this file uses the client.
//!
//! | operation | commands |
//! | --- | --- |
//! | read the index of a URL | `HGETALL index` |
//! | one object | `GET object` |
//! | store | `MULTI`, `HSET index`, `EXPIRE index`, `SET object EX`, `HLEN index`, `EXEC`: one slot |
//! | delete a URL | `HKEYS index`, `UNLINK index object…` |
//! | write a purge | `XADD log MAXLEN` |
//! | read purges | `XRANGE log mark +` |
//! | probe a part | `EXISTS probe` |
//!
//! They work with Redis 6.2 and every Valkey version; there are no scripts. The client also requests the slot table.

use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use redis::cluster::{ClusterClient, ClusterConfig};
use redis::cluster_async::ClusterConnection;
use redis::io::tcp::TcpSettings;
use redis::{FromRedisValue, ProtocolVersion, RedisError, TlsCertificates, Value, cmd, pipe};
use spdy_cache::shared_tier::PurgeVersion;

use crate::config::{Config, ConfigError};
use crate::key_names::IndexKey;
use crate::purge_entry::Entry;
use crate::purge_log::MAX_ENTRIES;

/// Timeout for connecting to a node.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout for the acknowledgement of sent data (TCP_USER_TIMEOUT). A node whose machine is gone sends no error, and after it is
/// back the next retransmission may take minutes: longer than a new connection.
#[cfg(target_os = "linux")]
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout for operations that no request waits for.
const WORK_TIMEOUT: Duration = Duration::from_secs(1);
/// Retries of the client when a node reports that another node has the slot.
const RETRIES: u32 = 3;
/// Maximum delay between these retries, milliseconds.
const RETRY_WAIT_MS: u64 = 20;
/// Number of log entries that are read at a time.
pub(crate) const PAGE: usize = 512;

/// A connection to a cluster.
pub(crate) struct Store {
    client: ClusterClient,
    /// Each running request has a clone of it.
    connection: Mutex<ClusterConnection>,
    background_timeout: Duration,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// No answer, or only one that reports that the cluster is down.
    #[error("no response: {0}")]
    NoAnswer(RedisError),
    /// No answer in time.
    #[error("no response within {0:?}")]
    Timeout(Duration),
    /// A node rejected the command.
    #[error("command rejected: {0}")]
    Refused(RedisError),
    /// A node accepts entries of the log, but does not store them.
    #[error("the purge log is empty on every read")]
    LogNotStored,
}

impl Failure {
    /// True if the node that should answer is up.
    pub(crate) fn was_answered(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::LogNotStored)
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        let is_silence = error.is_io_error()
            || error.is_timeout()
            || error.is_connection_dropped()
            || error.is_connection_refusal()
            || error.is_cluster_error()
            || error.is_unrecoverable_error()
            || error.kind() == redis::ErrorKind::ClusterConnectionNotFound;
        match is_silence {
            true => Self::NoAnswer(error),
            false => Self::Refused(error),
        }
    }
}

impl Store {
    /// Begins connecting to the cluster, which need not be up yet.
    pub(crate) fn open(config: &Config) -> Result<Self, ConfigError> {
        let client = client(config)?;
        let connection = Mutex::new(connect(&client));
        Ok(Self {
            client,
            connection,
            background_timeout: work_timeout(config),
        })
    }

    /// Discards the state of the cluster, and discovers it again. Running requests continue with the old state.
    pub(crate) fn renew(&self) {
        *self.connection.lock() = connect(&self.client);
    }

    /// The timeout for work that no request waits for.
    pub(crate) fn background_timeout(&self) -> Duration {
        self.background_timeout
    }

    fn connection(&self) -> ClusterConnection {
        self.connection.lock().clone()
    }

    /// Reads the index of a URL: the name and the head of each object.
    pub(crate) async fn index(&self, place: &IndexKey) -> Result<Vec<(String, Bytes)>, Failure> {
        self.query(cmd("HGETALL").arg(&place.index)).await
    }

    /// Reads an object.
    pub(crate) async fn object(&self, name: &str) -> Result<Option<Bytes>, Failure> {
        self.query(cmd("GET").arg(name)).await
    }

    /// Writes an object and its index entry, atomically. Returns the number of objects of the URL.
    pub(crate) async fn write(
        &self,
        place: &IndexKey,
        name: &str,
        head: &[u8],
        object: &[u8],
        lifetime: Duration,
    ) -> Result<usize, Failure> {
        let seconds = lifetime.as_secs().max(1);
        let mut writes = pipe();
        writes.atomic();
        writes
            .cmd("HSET")
            .arg(&place.index)
            .arg(name)
            .arg(head)
            .ignore();
        writes.cmd("EXPIRE").arg(&place.index).arg(seconds).ignore();
        writes.cmd("SET").arg(place.object(name)).arg(object);
        writes.arg("EX").arg(seconds).ignore();
        writes.cmd("HLEN").arg(&place.index);
        let mut connection = self.connection();
        let query = writes.query_async::<(usize,)>(&mut connection);
        Ok(with_timeout(self.background_timeout, query).await?.0)
    }

    /// Deletes all objects of a URL.
    pub(crate) async fn delete(&self, place: &IndexKey) -> Result<(), Failure> {
        let work = async {
            let names: Vec<String> = self.query(cmd("HKEYS").arg(&place.index)).await?;
            if names.is_empty() {
                return Ok(());
            }
            let mut unlink = cmd("UNLINK");
            unlink.arg(&place.index);
            for name in &names {
                unlink.arg(place.object(name));
            }
            self.query::<usize>(&unlink).await.map(drop)
        };
        let late = |_| Err(Failure::Timeout(self.background_timeout));
        tokio::time::timeout(self.background_timeout, work)
            .await
            .unwrap_or_else(late)
    }

    /// Appends an entry to the log.
    pub(crate) async fn append_log(&self, log: &str, entry: &Entry) -> Result<(), Failure> {
        let mut add = cmd("XADD");
        add.arg(log).arg("MAXLEN").arg(MAX_ENTRIES).arg("*");
        add.arg("e").arg(entry.encode());
        let mut connection = self.connection();
        with_timeout(
            self.background_timeout,
            add.query_async::<Value>(&mut connection),
        )
        .await?;
        Ok(())
    }

    /// The entries of the log from `from` on (inclusive), at most [`PAGE`] of them.
    pub(crate) async fn log(
        &self,
        log: &str,
        from: PurgeVersion,
    ) -> Result<Vec<(PurgeVersion, Entry)>, Failure> {
        let mut range = cmd("XRANGE");
        range
            .arg(log)
            .arg(id_of(from))
            .arg("+")
            .arg("COUNT")
            .arg(PAGE);
        let mut connection = self.connection();
        let query = range.query_async::<Vec<(String, Vec<Bytes>)>>(&mut connection);
        let entries = with_timeout(self.background_timeout, query).await?;
        let read = entries.iter().map(|(id, fields)| {
            let bytes = fields.get(1).map(|bytes| &bytes[..]);
            (version_of(id), Entry::decode(bytes.unwrap_or_default()))
        });
        Ok(read.collect())
    }

    /// Checks that the part with `name` answers within `timeout`.
    pub(crate) async fn probe(&self, name: &str, timeout: Duration) -> Result<(), Failure> {
        let mut exists = cmd("EXISTS");
        exists.arg(name);
        let mut connection = self.connection();
        with_timeout(timeout, exists.query_async::<usize>(&mut connection)).await?;
        Ok(())
    }

    async fn query<T: FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, Failure> {
        let mut connection = self.connection();
        Ok(command.query_async(&mut connection).await?)
    }
}

fn tcp() -> TcpSettings {
    // Many requests share a connection: none should wait for the acknowledgement of another.
    let settings = TcpSettings::default().set_nodelay(true);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(ARRIVAL_TIMEOUT);
    settings
}

/// The timeout for operations that no request waits for.
fn work_timeout(config: &Config) -> Duration {
    WORK_TIMEOUT.max(config.timeout)
}

/// The client that discovers the cluster; not connected yet.
pub(crate) fn client(config: &Config) -> Result<ClusterClient, ConfigError> {
    let mut client = ClusterClient::builder(config.nodes.iter().map(String::as_str))
        .connection_timeout(CONNECT_TIMEOUT)
        .response_timeout(work_timeout(config))
        // Each caller sets its own timeout: `within`.
        .overall_response_timeout(None)
        .retries(RETRIES)
        .min_retry_wait(1)
        .max_retry_wait(RETRY_WAIT_MS)
        .tcp_settings(tcp())
        // It notifies the client at once that a connection has ended.
        .use_protocol(ProtocolVersion::RESP3);
    if let Some(pem) = &config.authorities {
        client = client.certs(TlsCertificates {
            client_tls: None,
            root_cert: Some(pem.clone()),
        });
    }
    let client = client.build();
    client.map_err(|error| ConfigError::Cluster(error.to_string()))
}

/// The client, connecting to the configured nodes.
fn connect(client: &ClusterClient) -> ClusterConnection {
    client.get_pending_async_connection_with_config(ClusterConfig::default())
}

async fn with_timeout<T>(
    timeout: Duration,
    work: impl Future<Output = Result<T, RedisError>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(timeout, work).await {
        Ok(answered) => Ok(answered?),
        Err(_) => Err(Failure::Timeout(timeout)),
    }
}

/// Formats the ID of a stream entry, which is two numbers.
fn id_of(version: PurgeVersion) -> String {
    format!("{}-{}", version.0 >> 64, version.0 & u128::from(u64::MAX))
}

fn version_of(id: &str) -> PurgeVersion {
    let (first, second) = id.split_once('-').unwrap_or((id, "0"));
    let number = |text: &str| u128::from(text.parse::<u64>().unwrap_or_default());
    PurgeVersion(number(first) << 64 | number(second))
}

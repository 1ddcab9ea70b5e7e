//! The tier that `spdy accelerate` shares with other machines: its start, and its position in the purge log.
//!
//! Purges by others while the program was not running are applied to its disk when it starts: it reads the purge log from its
//! last position. A file beside the disk cache has that position. It is written after all earlier purges are done.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use spdy_cache::shared_tier::{PurgeTarget, PurgeVersion};
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_service::error::Usage;
use spdy_valkey::config::{Config as TierConfig, ConfigError};
use spdy_valkey::tier::Tier;
use tokio::task::JoinHandle;

/// How long the program waits for the tier before it accepts requests, and before it ends.
const TIER_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval of checks for purges by other machines, and for nodes that are gone or back.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between writes of the position in the purge log.
const MARK_INTERVAL: Duration = Duration::from_secs(10);

/// The tier, and the task that stores its position.
#[derive(Debug)]
pub(crate) struct SharedTier {
    pub(crate) tier: Arc<Tier>,
    /// The file with the position in the purge log, if there is a disk, and the task that updates it.
    mark_task: Option<(PathBuf, JoinHandle<()>)>,
}

impl SharedTier {
    /// Connects `proxy` to the shared `tier`, if configured. Waits up to `TIER_TIMEOUT` for the cluster, so that the first requests
    /// can hit responses of other machines.
    pub(crate) async fn start(
        config: &Config,
        tier: Option<TierConfig>,
        proxy: &Arc<Proxy>,
    ) -> anyhow::Result<Option<Self>> {
        let Some(tier) = tier else {
            return Ok(None);
        };
        let path = config
            .cache
            .disk
            .as_ref()
            .map(|folder| folder.join("purge-log-position"));
        let before = path.as_deref().map(read).unwrap_or_default();
        let cache = Arc::downgrade(&proxy.cache);
        let on_purge = move |target: &PurgeTarget, soft: bool| {
            if let Some(cache) = cache.upgrade() {
                cache.apply_remote_purge(target, soft);
            }
        };
        let tier = Tier::start(tier, before, Arc::new(on_purge));
        let tier = Arc::new(tier.map_err(|error| usage_error(&error))?);
        proxy.cache.set_shared_tier(tier.clone());
        // The cluster may be unreachable: do not wait longer.
        let _ = tokio::time::timeout(TIER_TIMEOUT, tier.started()).await;
        let mark_task = path.map(|path| {
            let notes = write_marks(tier.clone(), proxy.clone(), path.clone());
            (path, tokio::spawn(notes))
        });
        Ok(Some(Self { tier, mark_task }))
    }

    /// Writes everything that is still queued.
    pub(crate) async fn end(&self, proxy: &Proxy) {
        // Responses that are not written by then are fetched again.
        let _ = tokio::time::timeout(TIER_TIMEOUT, self.tier.flushed()).await;
        if let Some((path, notes)) = &self.mark_task {
            notes.abort();
            // If this fails, the last position stays, and later purges are applied again.
            let _ = tokio::time::timeout(TIER_TIMEOUT, write_mark(&self.tier, proxy, path)).await;
        }
    }
}

/// The configured shared tier, if any: the cluster and its trusted authorities. Opens no connection.
pub(crate) fn tier(config: &Config) -> anyhow::Result<Option<TierConfig>> {
    let Some(shared) = &config.cache.shared else {
        return Ok(None);
    };
    let authorities = shared
        .authority
        .as_deref()
        .map(|path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display())));
    let nodes = shared.urls.iter();
    let tier = TierConfig {
        nodes: nodes.map(|node| node.reveal().to_owned()).collect(),
        authorities: authorities.transpose()?,
        prefix: shared.prefix.clone(),
        max_object_bytes: shared.object_kib << 10,
        lifetime: Duration::from_secs(shared.ttl_s),
        timeout: Duration::from_millis(shared.timeout_ms),
        poll: POLL_INTERVAL,
    };
    tier.check().map_err(|error| usage_error(&error))?;
    Ok(Some(tier))
}

fn usage_error(error: &ConfigError) -> Usage {
    Usage(format!("cache.shared: {error}"))
}

/// Writes the position in the purge log every `MARK_INTERVAL`.
async fn write_marks(tier: Arc<Tier>, proxy: Arc<Proxy>, path: PathBuf) {
    let mut notes = tokio::time::interval(MARK_INTERVAL);
    loop {
        notes.tick().await;
        write_mark(&tier, &proxy, &path).await;
    }
}

async fn write_mark(tier: &Tier, proxy: &Proxy, path: &Path) {
    let position = tier.log_position();
    if let Some(disk) = proxy.cache.disk()
        && !disk.flush_removals().await
    {
        // A purge is not done before its files are removed: after a restart it is applied again.
        return;
    }
    let to = path.to_owned();
    let written = tokio::task::spawn_blocking(move || write(&to, position)).await;
    let written = written.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    if let Err(error) = written {
        tracing::warn!(%error, path = %path.display(), "cannot save the purge log position: a restart applies old purges again");
    }
}

/// The stored position; the default if the file cannot be read.
fn read(path: &Path) -> PurgeVersion {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    PurgeVersion(u128::from_str_radix(text.trim(), 16).unwrap_or_default())
}

fn write(path: &Path, position: PurgeVersion) -> std::io::Result<()> {
    if position == PurgeVersion::default() {
        // No position yet, since the cluster is unreachable: the position of the previous run stays.
        return Ok(());
    }
    let new = path.with_extension("new");
    // If the file is truncated, its number is one that the log does not have.
    std::fs::write(&new, format!("{:032x}\n", position.0))?;
    std::fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_purge_mark_survives_a_restart_and_ignores_garbage() {
        let folder = tempfile::tempdir().expect("create a folder");
        let path = folder.path().join("purge-log-position");
        assert_eq!(read(&path), PurgeVersion::default());
        let mark = PurgeVersion(1_795_279_831_641 << 64 | 7);
        write(&path, mark).expect("write the file");
        assert_eq!(read(&path), mark);
        write(&path, PurgeVersion::default()).expect("write the file");
        assert_eq!(read(&path), mark, "no purge since");
        std::fs::write(&path, "what?").expect("write the file");
        assert_eq!(read(&path), PurgeVersion::default());
    }
}

//! Raises the limit of open files of `spdy accelerate`, with a note if the system allows too few.
//!
//! A shell's soft limit is 1024 on most systems, for programs that use select(2); the hard limit is the real one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use spdy_proxy::config::Config;
use spdy_proxy::upstream::static_limit::MAX_STATIC_RESPONSES;
use spdy_service::notice::Notices;

/// Files in addition to the connections of clients: listeners, connections to origins, reads and writes of the disk cache.
const RESERVED_FILES: u64 = 512;

/// Raises the soft limit to the hard one. Prints a note if the limits of `config` need more.
pub(crate) fn raise_limit(config: &Config, notices: &Notices) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    let limit = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::debug!(%error, "cannot raise the soft limit of open files");
            current
        }
    };
    let (connections, sockets) = (config.limits.max_connections, config.websocket.open);
    let files = if config.has_folders() {
        MAX_STATIC_RESPONSES
    } else {
        0
    };
    let needed_files = needed_files(connections, sockets, files);
    if let Some(limit) = limit.filter(|limit| *limit < needed_files) {
        let of_folders = match files {
            0 => String::new(),
            files => format!(" and {files} files of folders"),
        };
        notices.error(format_args!("the limit of open files is {limit}"), format_args!(": {connections} connections and {sockets} WebSockets to origins{of_folders} need {needed_files}; \
             raise the limit (`ulimit -Hn`, LimitNOFILE= of systemd), or lower `max_connections` of `[limits]`"));
    }
}

/// A file for each connection of a client, one more for each WebSocket to an origin, and `files` of folders.
fn needed_files(connections: u32, sockets: usize, files: usize) -> u64 {
    let [sockets, files] = [sockets, files].map(|count| u64::try_from(count).unwrap_or(u64::MAX));
    sockets.min(connections.into()) + u64::from(connections) + files + RESERVED_FILES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_websocket_is_two_files_and_there_are_no_more_than_connections() {
        assert_eq!(
            needed_files(16_384, 4_096, 0),
            16_384 + 4_096 + RESERVED_FILES
        );
        assert_eq!(needed_files(100, 4_096, 0), 200 + RESERVED_FILES);
        // A response from a folder needs a file, and a connection can have many responses.
        assert_eq!(needed_files(100, 0, 2_048), 2_148 + RESERVED_FILES);
    }
}

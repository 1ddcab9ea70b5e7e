//! How many WebSockets may be open, and how long one may be silent.

use std::time::Duration;

use serde::Deserialize;

/// The longest silence that may be waited for, seconds.
const DAY_S: u64 = 24 * 60 * 60;

/// WebSockets to the sites' own origins.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebSocketConfig {
    /// Time without a byte in either direction after which a WebSocket is closed. A peer with longer pauses must send
    /// pings. Range: 1 to 86400. Default 300.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 86_400)))]
    pub idle_timeout_s: u64,
    /// WebSockets open at once from one client. `0`, or more than `open`: no limit for each client, for use behind a
    /// balancer that hides its clients. Default 256.
    pub per_client: usize,
    /// WebSockets open at once in total. Range: at least 1. Default 4096.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub open: usize,
}

impl Default for WebSocketConfig {
    fn default() -> Self {
        Self {
            idle_timeout_s: 300,
            per_client: 256,
            open: 4096,
        }
    }
}

impl WebSocketConfig {
    /// How long nothing may pass.
    #[must_use]
    pub fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout_s)
    }

    /// A key with an invalid value: the key, what is valid, and the value.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str, u64)> {
        if !(1..=DAY_S).contains(&self.idle_timeout_s) {
            let key = "websocket.idle_timeout_s";
            return Some((key, "1 to 86400", self.idle_timeout_s));
        }
        (self.open == 0).then_some(("websocket.open", "at least 1", 0))
    }

    /// How many one client may have open, if that is a limit.
    pub(crate) fn per_client_limit(&self) -> Option<usize> {
        Some(self.per_client).filter(|most| *most > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_invalid_websocket_values_are_rejected() {
        let fault = |idle_timeout_s, per_client, open| {
            let config = WebSocketConfig {
                idle_timeout_s,
                per_client,
                open,
            };
            config.fault().map(|(key, _, found)| (key, found))
        };
        let idle = "websocket.idle_timeout_s";
        for (config, expected) in [
            ((300, 256, 4096), None),
            ((300, 0, 4096), None),
            ((300, 256, 100), None),
            ((DAY_S, 1, 1), None),
            ((DAY_S + 1, 1, 1), Some((idle, DAY_S + 1))),
            ((0, 1, 1), Some((idle, 0))),
            ((300, 0, 0), Some(("websocket.open", 0))),
        ] {
            let (idle, of_client, open) = config;
            assert_eq!(fault(idle, of_client, open), expected, "{config:?}");
        }
    }
}

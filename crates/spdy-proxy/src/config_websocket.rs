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
    /// How long nothing may pass, in either direction, before one is ended; 1 to 86400. Default 300: who is silent for longer sends
    /// a ping.
    pub idle_timeout_s: u64,
    /// Open at once from one address, or one /56 of IPv6. Default 256: as many as a browser opens.
    pub per_client: usize,
    /// Open at once in all. Default 4096.
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

    /// A key that cannot work, what would do, and what is there.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str, u64)> {
        if !(1..=DAY_S).contains(&self.idle_timeout_s) {
            let what = "websocket.idle_timeout_s";
            return Some((what, "1 to 86400", self.idle_timeout_s));
        }
        if self.open == 0 {
            return Some(("websocket.open", "at least 1", 0));
        }
        let is_range = (1..=self.open).contains(&self.per_client);
        let want = "at least 1, and no more than websocket.open";
        (!is_range).then_some(("websocket.per_client", want, self.per_client as u64))
    }
}

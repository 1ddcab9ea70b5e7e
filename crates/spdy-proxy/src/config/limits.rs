//! Limits for clients.

use serde::Deserialize;

/// The smallest limit of a request head, bytes.
const MIN_HEAD_BYTES: u32 = 8192;

/// Limits for clients.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientLimitsConfig {
    /// Connections open at once, over all clients and listeners. Range: at least 1. Default 16384.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_connections: u32,
    /// Connections open at once from one address (for IPv6, from one /64). `0`: no limit. Default 4096.
    pub connections_per_address: u32,
    /// New connections a second from one address, five seconds' worth at once. `0`: no limit. Default 1000.
    pub connection_rate: u32,
    /// Connections of one address that may be ended for abuse within a minute. Above it, new connections of the address
    /// are closed unread for the rest of the minute. `0`: no limit. Default 10.
    pub abuses_per_address: u32,
    /// Requests in progress on one SPDY, HTTP/2 or HTTP/3 connection, over HTTP/3 at most 4096. Range: at least 1.
    /// Default 100.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_streams: u32,
    /// Time without requests after which a connection is closed. Range: at least 1. Default 180.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub idle_timeout_s: u64,
    /// Time without data after which a SPDY session gets a PING. The session is closed after 10 more seconds without
    /// data. Undertow's clients never reply to a PING. Range: at least 1. Default none.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub keepalive_s: Option<u64>,
    /// The lowest rate at which a client must send a body or read a response, in bytes a second over a minute of
    /// waiting. `0`: no limit. Default 240.
    pub min_rate: u32,
    /// Time for requests in progress to end when the program stops. Default 5.
    pub drain_timeout_s: u64,
    /// The largest request head, in bytes. Range: at least 8192. Default 65536.
    #[cfg_attr(feature = "schema", schemars(range(min = 8192)))]
    pub max_head_bytes: u32,
}

impl Default for ClientLimitsConfig {
    fn default() -> Self {
        Self {
            max_connections: 16_384,
            connections_per_address: 4096,
            connection_rate: 1000,
            abuses_per_address: 10,
            max_streams: 100,
            idle_timeout_s: 180,
            keepalive_s: None,
            min_rate: 240,
            drain_timeout_s: 5,
            max_head_bytes: 65_536,
        }
    }
}

impl ClientLimitsConfig {
    /// A key with an invalid value: the key, what is valid, and the value.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str, u32)> {
        let none = [
            ("limits.max_connections", self.max_connections == 0),
            ("limits.max_streams", self.max_streams == 0),
            ("limits.idle_timeout_s", self.idle_timeout_s == 0),
            ("limits.keepalive_s", self.keepalive_s == Some(0)),
        ];
        let none = none.into_iter().find(|(_, is_none)| *is_none);
        if let Some((key, _)) = none {
            return Some((key, "at least 1", 0));
        }
        let is_small = self.max_head_bytes < MIN_HEAD_BYTES;
        is_small.then_some((
            "limits.max_head_bytes",
            "at least 8192",
            self.max_head_bytes,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_below_the_least_value_are_refused() {
        let fault = |text: &str| {
            let limits: ClientLimitsConfig =
                toml::from_str(text).expect("the text is a valid [limits]");
            limits.fault().map(|(key, _, found_key)| (key, found_key))
        };
        assert_eq!(fault(""), None);
        assert_eq!(
            fault("connections_per_address = 0\nabuses_per_address = 0"),
            None
        );
        for key in [
            "max_connections",
            "max_streams",
            "idle_timeout_s",
            "keepalive_s",
        ] {
            assert_eq!(fault(&format!("{key} = 1")), None);
            let (found_key, value) = fault(&format!("{key} = 0")).expect("a fault");
            assert_eq!((found_key, value), (format!("limits.{key}").as_str(), 0));
        }
        assert_eq!(fault("max_head_bytes = 8192"), None);
        let expected = ("limits.max_head_bytes", 8191);
        assert_eq!(fault("max_head_bytes = 8191"), Some(expected));
    }
}

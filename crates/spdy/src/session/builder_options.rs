//! The choices of a session, by name: what client and server builders share.

/// Writes the setters that both builders have.
macro_rules! session_options {
    ($builder:ty) => {
        impl $builder {
            /// How header blocks are compressed. Default: private values are compressed separately.
            #[must_use]
            pub fn compression(mut self, compression: spdy_frame::compress::Compression) -> Self {
                self.config.compression = compression;
                self
            }
            /// How far back header compression looks: 11 to 15, for 2 to 32 KiB a session.
            #[must_use]
            pub fn compression_window_bits(mut self, bits: u8) -> Self {
                self.config.compression_window_bits = Some(bits);
                self
            }
            /// Which header values are private, and whether a private value may repeat as a whole. Default: all values
            /// but those of a list of headers that hold no secrets, and cookies, authorizations and the referer may
            /// repeat. A value that is marked by [`HeaderValue::set_sensitive`](http::HeaderValue::set_sensitive)
            /// never does.
            #[must_use]
            pub fn secrets(mut self, secrets: spdy_frame::secrets::Secrets) -> Self {
                self.config.secrets = secrets;
                self
            }
            /// Streams the peer may have open at once (SETTINGS_MAX_CONCURRENT_STREAMS).
            #[must_use]
            pub fn max_concurrent_streams(mut self, streams: u32) -> Self {
                self.config.max_concurrent_streams = streams;
                self
            }
            /// Receive window of a new stream, bytes (SETTINGS_INITIAL_WINDOW_SIZE).
            #[must_use]
            pub fn initial_window_bytes(mut self, bytes: u32) -> Self {
                self.config.initial_window_bytes = bytes;
                self
            }
            /// Receive window of the session, bytes (SPDY/3.1). A client that sets none has room for the windows
            /// of 100 streams. With fewer, responses that are not read hold up others.
            #[must_use]
            pub fn session_window_bytes(mut self, bytes: u32) -> Self {
                self.config.session_window_bytes = Some(bytes);
                self
            }
            /// Largest DATA payload written at once, bytes.
            #[must_use]
            pub fn data_frame_bytes(mut self, bytes: usize) -> Self {
                self.config.data_frame_bytes = bytes;
                self
            }
            /// Bytes of DATA that one stream may hold unsent.
            #[must_use]
            pub fn send_buffer_bytes(mut self, bytes: usize) -> Self {
                self.config.send_buffer_bytes = bytes;
                self
            }
            /// Streams that we assume we may open before the peer's SETTINGS arrives.
            #[must_use]
            pub fn assumed_peer_streams(mut self, streams: u32) -> Self {
                self.config.assumed_peer_streams = streams;
                self
            }
            /// `false`: neither obey nor enforce windows, as peers without flow control need it.
            #[must_use]
            pub fn flow_control(mut self, on: bool) -> Self {
                self.config.flow_control = on;
                self
            }
            /// Sends PING after `interval` of silence, and ends the session if no input at all arrives for `timeout`
            /// after that. `None`, the default, sends none.
            ///
            /// Any input is a sign of life: Undertow never answers a PING, and counts as dead if it sends nothing
            /// else for so long. Leave it off with such peers. Without windows (SPDY/2, or flow control off) a peer
            /// that stops at DATA has longer, and gets one PING:
            /// [`keepalive_unread_timeout`](spdy_session::config::Config::keepalive_unread_timeout).
            #[must_use]
            pub fn keepalive(
                mut self,
                interval: Option<std::time::Duration>,
                timeout: std::time::Duration,
            ) -> Self {
                self.config.keepalive_interval = interval;
                self.config.keepalive_timeout = timeout;
                self
            }
            /// Shows every frame to `observer`, in both directions. It is called while the session is
            /// locked: it must not call back into it.
            #[must_use]
            pub fn observer(
                mut self,
                observer: std::sync::Arc<dyn spdy_session::observe::Observe>,
            ) -> Self {
                self.config.observer = Some(observer);
                self
            }
            /// Sends the trailers of a body as HEADERS before the last DATA. Off by default: several peers fail on
            /// them, and none can request them.
            #[must_use]
            pub fn send_trailers(mut self, on: bool) -> Self {
                self.send_trailers = on;
                self
            }
            /// Counts the session in `metrics`, from its handshake on.
            #[must_use]
            pub fn metrics(mut self, metrics: &crate::metrics::Metrics) -> Self {
                self.metrics = Some(metrics.clone());
                self
            }
            /// Every limit and choice of the session machine. All are used except `push`, which a client's handshake
            /// sets.
            pub fn config_mut(&mut self) -> &mut spdy_session::config::Config {
                &mut self.config
            }
            /// The version of SPDY spoken.
            #[must_use]
            pub fn version(&self) -> spdy_frame::version::Version {
                self.config.version
            }
        }
    };
}
pub(crate) use session_options;

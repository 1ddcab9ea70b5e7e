//! The options of a session that client and server builders share.

/// Defines the setters that both builders have.
macro_rules! session_options {
    ($builder:ty) => {
        impl $builder {
            /// How header blocks are compressed. Default: private values are compressed separately.
            #[must_use]
            pub fn compression(mut self, compression: spdy_frame::compress::Compression) -> Self {
                self.config.compression = compression;
                self
            }
            /// Window size of header compression, as a power of two: 11 to 15, for 2 to 32 KiB a session.
            #[must_use]
            pub fn compression_window_bits(mut self, bits: u8) -> Self {
                self.config.compression_window_bits = Some(bits);
                self
            }
            /// Which header values are private, and whether a private value may be compressed as a repetition of itself. Default:
            /// all values except those of a list of headers without secrets; cookies, authorizations and the referer may repeat as
            /// a whole. A value marked by [`HeaderValue::set_sensitive`](http::HeaderValue::set_sensitive) never does.
            #[must_use]
            pub fn secrets(mut self, secrets: spdy_frame::secrets::Secrets) -> Self {
                self.config.secrets = secrets;
                self
            }
            /// Limit of concurrent streams of the peer (SETTINGS_MAX_CONCURRENT_STREAMS).
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
            /// Receive window of the session, bytes (SPDY/3.1). A client's default is the sum of 100 stream windows. With less,
            /// unread responses can block other streams.
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
            /// Limit of unsent DATA per stream, bytes.
            #[must_use]
            pub fn send_buffer_bytes(mut self, bytes: usize) -> Self {
                self.config.send_buffer_bytes = bytes;
                self
            }
            /// Limit of streams that we open before the peer's SETTINGS arrives.
            #[must_use]
            pub fn assumed_peer_streams(mut self, streams: u32) -> Self {
                self.config.assumed_peer_streams = streams;
                self
            }
            /// `false`: neither obey nor enforce windows. Peers without flow control need it.
            #[must_use]
            pub fn flow_control(mut self, on: bool) -> Self {
                self.config.flow_control = on;
                self
            }
            /// Sends PING after `interval` without input, and ends the session if no input arrives for `timeout` after that.
            /// `None`, the default, sends none.
            ///
            /// Any input counts: Undertow never answers a PING, and is considered dead if it sends nothing else during that time.
            /// Leave it off with such peers. Without windows (SPDY/2, or flow control off) a peer that stops reading DATA has more
            /// time, and gets only one PING: [`keepalive_unread_timeout`](spdy_session::config::Config::keepalive_unread_timeout).
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
            /// Passes every frame to `observer`, in both directions. It is called while the session is locked, so it must not call
            /// the session.
            #[must_use]
            pub fn observer(
                mut self,
                observer: std::sync::Arc<dyn spdy_session::observe::Observe>,
            ) -> Self {
                self.config.observer = Some(observer);
                self
            }
            /// Sends the trailers of a body as HEADERS before the last DATA. Off by default: several peers fail on them, and a peer
            /// cannot request them.
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
            /// All limits and choices of the session machine. All are used except `push`, which is set by a client's handshake.
            pub fn config_mut(&mut self) -> &mut spdy_session::config::Config {
                &mut self.config
            }
            /// The version of SPDY.
            #[must_use]
            pub fn version(&self) -> spdy_frame::version::Version {
                self.config.version
            }
        }
    };
}
pub(crate) use session_options;

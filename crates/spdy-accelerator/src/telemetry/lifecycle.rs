//! Starts telemetry with the program, applies a reload to it, and ends it.

use std::sync::Arc;
use std::time::Duration;

use spdy::runtime::SharedRuntime;
use spdy_net::latch::Latch;
use spdy_proxy::config::telemetry::TelemetryConfig;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::telemetry::spans::Spans;
use spdy_service::notice::Notices;
use spdy_service::random;
use tokio::task::JoinHandle;

use super::export_task::ExportTask;
use super::otlp_client::OtlpClient;
use super::queue::Queue;
use super::settings::Settings;

/// How long the program waits at its end for spans that the collector has not accepted yet.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The export of spans.
#[derive(Debug)]
pub(crate) struct Telemetry {
    pub(crate) queue: Arc<Queue>,
    collector: Arc<OtlpClient>,
    config: TelemetryConfig,
    sending: JoinHandle<()>,
    stop: Latch,
    notices: Notices,
}

impl Telemetry {
    /// Starts the export of spans for the requests of `proxy`, with `settings`.
    pub(crate) fn start(
        settings: Settings,
        proxy: &Proxy,
        runtime: &SharedRuntime,
        notices: &Notices,
    ) -> anyhow::Result<Self> {
        let queue = Arc::new(Queue::new(settings.config.queue, random::bytes()?));
        let rules = settings.config.rules(settings.sampler);
        proxy
            .telemetry
            .set_spans(Spans::new(rules, queue.clone(), runtime.clone()));
        let collector = Arc::new(OtlpClient::new(&settings, runtime));
        let stop = Latch::new();
        let export = ExportTask {
            queue: queue.clone(),
            collector: collector.clone(),
            resource: settings.resource,
            runtime: runtime.clone(),
            stop: stop.clone(),
            notices: notices.clone(),
            is_collector_down: false,
        };
        Ok(Self {
            queue,
            collector,
            config: settings.config,
            sending: tokio::spawn(export.run()),
            stop,
            notices: notices.clone(),
        })
    }

    /// Prints the URL that spans are sent to.
    pub(crate) fn announce(&self) {
        let uri = self.collector.uri();
        self.notices.info(format_args!("sending spans to {uri}"));
    }

    /// Handles a reload. If `[telemetry]` is unchanged, the collector gets its headers as read again, with new tokens. A change only prints
    /// a note, and needs a restart.
    pub(crate) fn reload(running: Option<&Self>, settings: Option<Settings>, notices: &Notices) {
        let before = running.map(|running| &running.config);
        if before != settings.as_ref().map(|settings| &settings.config) {
            notices.warning(
                "[telemetry] changed",
                ", which takes effect only after a restart",
            );
        } else if let (Some(running), Some(settings)) = (running, settings) {
            running.collector.set_headers(settings.headers);
        }
    }

    /// Sends the queued spans, up to a timeout.
    pub(crate) async fn end(mut self) {
        self.stop.set();
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut self.sending)
            .await
            .is_err()
        {
            self.sending.abort();
            self.notices
                .warning("some spans were not sent", ": the collector is too slow");
        }
    }
}

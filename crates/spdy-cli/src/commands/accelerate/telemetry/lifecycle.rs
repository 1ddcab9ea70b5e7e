//! Starts telemetry with the program, applies a reload to it, and ends it.

use std::sync::Arc;
use std::time::Duration;

use spdy::runtime::SharedRuntime;
use spdy_net::latch::Latch;
use spdy_proxy::config::telemetry::TelemetryConfig;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::telemetry::spans::Spans;
use tokio::task::JoinHandle;

use super::export_task::ExportTask;
use super::otlp_client::OtlpClient;
use super::queue::Queue;
use super::settings::Settings;
use crate::output::{DIM, Printer, WARN};

/// How long the program waits at its end for what the collector has not taken yet.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Spans are made, and sent.
#[derive(Debug)]
pub(in crate::commands) struct Telemetry {
    pub(in crate::commands) queue: Arc<Queue>,
    collector: Arc<OtlpClient>,
    config: TelemetryConfig,
    sending: JoinHandle<()>,
    stop: Latch,
    printer: Printer,
}

impl Telemetry {
    /// Starts the export of spans for the requests of `proxy`, with `settings`.
    pub(in crate::commands) fn start(
        settings: Settings,
        proxy: &Proxy,
        runtime: &SharedRuntime,
        printer: &Printer,
    ) -> anyhow::Result<Self> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)
            .map_err(|error| anyhow::anyhow!("cannot get random numbers: {error}"))?;
        let queue = Arc::new(Queue::new(settings.config.queue, seed));
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
            printer: printer.clone(),
            is_collector_down: false,
        };
        Ok(Self {
            queue,
            collector,
            config: settings.config,
            sending: tokio::spawn(export.run()),
            stop,
            printer: printer.clone(),
        })
    }

    /// Prints the URL that spans are sent to.
    pub(in crate::commands) fn announce(&self) {
        let uri = self.collector.uri();
        self.printer
            .note(format_args!("{DIM}sending spans to {uri}{DIM:#}"));
    }

    /// Handles a reload. If `[telemetry]` is unchanged, the collector gets its headers as read again, with new tokens. A change only prints
    /// a note, and needs a restart.
    pub(in crate::commands) fn reload(
        running: Option<&Self>,
        settings: Option<Settings>,
        printer: &Printer,
    ) {
        let before = running.map(|running| &running.config);
        if before != settings.as_ref().map(|settings| &settings.config) {
            printer.note(format_args!(
                "{WARN}[telemetry] changed{WARN:#}, which takes effect only after a restart"
            ));
        } else if let (Some(running), Some(settings)) = (running, settings) {
            running.collector.set_headers(settings.headers);
        }
    }

    /// Sends what waits, if that does not take too long.
    pub(in crate::commands) async fn end(mut self) {
        self.stop.set();
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut self.sending)
            .await
            .is_err()
        {
            self.sending.abort();
            self.printer.note(format_args!(
                "{WARN}some spans were not sent{WARN:#}: the collector is too slow"
            ));
        }
    }
}

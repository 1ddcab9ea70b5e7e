//! An OpenTelemetry collector on loopback: accepts OTLP over HTTP, rejects spans, returns errors or never responds.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use spdy_testkit::wait::until;

use crate::support::origins::echo::ReceivedRequest;

/// How the collector handles spans.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Behavior {
    /// Accepts all spans.
    Accepts,
    /// Rejects one span of each request.
    RejectsOne,
    /// Responds with this status.
    RespondsWith(u16),
    /// Never responds.
    Hangs,
}

/// A collector that listens until the test process ends.
#[derive(Clone)]
pub(crate) struct OtelCollector {
    pub(crate) address: SocketAddr,
    behavior: Arc<Mutex<Behavior>>,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    exports: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl OtelCollector {
    pub(crate) fn start(behavior: Behavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
        Self::start_at(listener, behavior)
    }

    /// Starts a collector on `listener`.
    pub(crate) fn start_at(listener: TcpListener, behavior: Behavior) -> Self {
        let collector = Self {
            address: listener.local_addr().expect("a bound socket"),
            behavior: Arc::new(Mutex::new(behavior)),
            requests: Arc::default(),
            exports: Arc::default(),
        };
        let server = collector.clone();
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let server = server.clone();
                // A client that disconnects early is no error.
                thread::spawn(move || _ = server.serve_connection(&socket));
            }
        });
        collector
    }

    /// Changes the behaviour of later requests.
    pub(crate) fn set_behavior(&self, behavior: Behavior) {
        *self.behavior.lock().expect("no thread panicked") = behavior;
    }

    /// All requests so far, accepted or not.
    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().expect("no thread panicked").clone()
    }

    /// All accepted export requests so far.
    pub(crate) fn exports(&self) -> Vec<ExportTraceServiceRequest> {
        self.exports.lock().expect("no thread panicked").clone()
    }

    /// All accepted spans so far.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let all = self.exports().into_iter();
        let all = all.flat_map(|request| request.resource_spans);
        let all = all.flat_map(|resource_spans| resource_spans.scope_spans);
        all.flat_map(|scope_spans| scope_spans.spans).collect()
    }

    /// Waits until at least `count` spans were accepted, and returns all.
    pub(crate) fn wait_for_spans(&self, count: usize) -> Vec<Span> {
        until("the collector has the spans", || {
            self.spans().len() >= count
        });
        self.spans()
    }

    fn serve_connection(&self, socket: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(socket);
        while let Some(http_request) = ReceivedRequest::read(&mut reader)? {
            let behavior = *self.behavior.lock().expect("no thread panicked");
            let request = ExportTraceServiceRequest::decode(&http_request.body[..]);
            let request = request.expect("a valid export request");
            self.requests
                .lock()
                .expect("no thread panicked")
                .push(http_request);
            let rejected = i64::from(behavior == Behavior::RejectsOne);
            let response = ExportTraceServiceResponse {
                partial_success: (rejected > 0).then(|| ExportTracePartialSuccess {
                    rejected_spans: rejected,
                    error_message: "one is too old".to_owned(),
                }),
            };
            let status = match behavior {
                Behavior::Accepts | Behavior::RejectsOne => {
                    self.exports
                        .lock()
                        .expect("no thread panicked")
                        .push(request);
                    200
                }
                Behavior::RespondsWith(status) => status,
                Behavior::Hangs => continue,
            };
            let response = response.encode_to_vec();
            let head = format!(
                "HTTP/1.1 {status} So\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n",
                response.len()
            );
            let mut writer = socket;
            writer.write_all(&[head.as_bytes(), &response].concat())?;
        }
        Ok(())
    }
}

/// The value of attribute `name` as text; empty if it is missing.
pub(crate) fn attribute_text(attributes: &[KeyValue], name: &str) -> String {
    let attribute = attributes.iter().find(|attribute| attribute.key == name);
    let value = attribute.and_then(|attribute| attribute.value.as_ref()?.value.as_ref());
    match value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(value)) => value.to_string(),
        Some(other) => format!("{other:?}"),
        None => String::new(),
    }
}

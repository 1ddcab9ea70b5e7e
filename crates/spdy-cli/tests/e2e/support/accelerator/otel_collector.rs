//! A collector of OpenTelemetry's on loopback: takes OTLP over HTTP, or does what collectors do on bad days.

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

/// What it does with spans.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Behavior {
    /// It takes them.
    Takes,
    /// All but one.
    TakesAllButOne,
    /// It answers with this status.
    Answers(u16),
    /// It says nothing.
    Hangs,
}

/// One that listens until the program ends.
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

    /// The same, where `listener` listens.
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

    /// From now on it is so.
    pub(crate) fn be(&self, behavior: Behavior) {
        *self.behavior.lock().expect("no thread panicked") = behavior;
    }

    /// Everything that came so far, taken or not.
    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().expect("no thread panicked").clone()
    }

    /// What it took so far.
    pub(crate) fn exports(&self) -> Vec<ExportTraceServiceRequest> {
        self.exports.lock().expect("no thread panicked").clone()
    }

    /// The spans in that.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let all = self.exports().into_iter();
        let all = all.flat_map(|request| request.resource_spans);
        let all = all.flat_map(|of_resource| of_resource.scope_spans);
        all.flat_map(|of_scope| of_scope.spans).collect()
    }

    /// The same, once there are so many.
    pub(crate) fn spans_once(&self, count: usize) -> Vec<Span> {
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
            let rejected = i64::from(behavior == Behavior::TakesAllButOne);
            let response = ExportTraceServiceResponse {
                partial_success: (rejected > 0).then(|| ExportTracePartialSuccess {
                    rejected_spans: rejected,
                    error_message: "one is too old".to_owned(),
                }),
            };
            let status = match behavior {
                Behavior::Takes | Behavior::TakesAllButOne => {
                    self.exports
                        .lock()
                        .expect("no thread panicked")
                        .push(request);
                    200
                }
                Behavior::Answers(status) => status,
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

/// What is said under `name`, as text; nothing where nothing is.
pub(crate) fn attribute_text(attributes: &[KeyValue], name: &str) -> String {
    let attribute = attributes.iter().find(|attribute| attribute.key == name);
    let value = attribute.and_then(|attribute| attribute.value.as_ref()?.value.as_ref());
    match value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(is_so)) => is_so.to_string(),
        Some(other) => format!("{other:?}"),
        None => String::new(),
    }
}

//! The URLs of exec, attach and port-forward: those of the API server, which clients request, and those of the kubelet, which the API
//! server requests.
//!
//! ```text
//! API server  /api/v1/namespaces/NAMESPACE/pods/POD/exec?container=CONTAINER&command=ls&stdout=true&stderr=true
//!             /api/v1/namespaces/NAMESPACE/pods/POD/attach?container=CONTAINER&stdin=true&stdout=true&tty=true
//!             /api/v1/namespaces/NAMESPACE/pods/POD/portforward?ports=80
//! kubelet     /exec/NAMESPACE/POD/CONTAINER?command=ls&output=1&error=1       after POD, there may be its UID
//!             /attach/NAMESPACE/POD/CONTAINER?input=1&output=1&tty=1
//!             /portForward/NAMESPACE/POD?port=80
//! ```

use std::borrow::Cow;

use form_urlencoded::Serializer;
use http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::request::{
    AttachRequest, ExecRequest, PortForwardRequest, StreamOptions, StreamingRequest,
};

/// A request for streams to a pod, as a URL of Kubernetes carries it.
///
/// ```
/// use spdy_cri::{PodCall, PodRequest, StreamOptions};
///
/// let request = PodRequest {
///     namespace: "default".to_owned(),
///     pod: "web-0".to_owned(),
///     pod_uid: None,
///     container: Some("nginx".to_owned()),
///     call: PodCall::Exec {
///         command: vec!["ls".to_owned(), "/tmp".to_owned()],
///         stream_options: StreamOptions { stdout: true, ..StreamOptions::default() },
///     },
/// };
/// let url = "/exec/default/web-0/nginx?command=ls&command=%2Ftmp&output=1";
/// assert_eq!(request.kubelet_url()?, url);
/// assert_eq!(PodRequest::parse_kubelet(&url.parse().expect("a URL"))?, request);
/// assert_eq!(
///     request.api_server_url()?,
///     "/api/v1/namespaces/default/pods/web-0/exec?container=nginx&command=ls&command=%2Ftmp&stdout=true"
/// );
/// # Ok::<_, spdy_cri::PodRequestError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PodRequest {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's UID. Only the kubelet's URLs may have one.
    pub pod_uid: Option<String>,
    /// The name of the container, not its id. `None` is the pod's only container, which only the API server's URLs may leave out.
    /// Port-forward has none.
    pub container: Option<String>,
    /// What to do in the pod.
    pub call: PodCall,
}

/// What a [`PodRequest`] requests.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PodCall {
    /// Run a command.
    Exec {
        /// Program and arguments; no shell.
        command: Vec<String>,
        /// The streams of the command.
        stream_options: StreamOptions,
    },
    /// Attach to the container's process.
    Attach {
        /// The streams of the process.
        stream_options: StreamOptions,
    },
    /// Forward ports.
    PortForward {
        /// Ports that the client may request; empty for any. Only plain WebSocket requires them.
        ports: Vec<u16>,
    },
}

/// A URL that is none of exec, attach and port-forward.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PodRequestError {
    /// The path has another form.
    #[error("invalid path {found:?}: expected {expected}")]
    Path {
        /// The possible forms.
        expected: &'static str,
        /// The path.
        found: String,
    },
    /// A port is not a number from 1 to 65,535.
    #[error("invalid port {found:?}: expected 1 to 65535")]
    Port {
        /// The text.
        found: String,
    },
    /// A name cannot be a segment of a path.
    #[error("invalid name {found:?}: expected no /, % or control character, and neither . nor ..")]
    Name {
        /// The name.
        found: String,
    },
    /// The query has bytes that are not UTF-8.
    #[error("invalid query {found:?}: expected UTF-8 after decoding")]
    Query {
        /// The query.
        found: String,
    },
    /// A kubelet's URL of exec and attach names a container.
    #[error("no container: expected a name, because the kubelet does not choose one")]
    NoContainer,
}

/// The paths of the API server.
const API_SERVER_PATHS: &str = "/api/v1/namespaces/NAMESPACE/pods/POD/exec, attach or portforward";
/// The paths of the kubelet.
const KUBELET_PATHS: &str =
    "/exec/NAMESPACE/POD/CONTAINER, /attach/NAMESPACE/POD/CONTAINER or /portForward/NAMESPACE/POD";

/// Escaped in a segment of a path: everything but RFC 3986's unreserved characters.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The names of the parameters of exec and attach, and the value that requests a stream.
struct Parameters {
    stdin: &'static str,
    stdout: &'static str,
    stderr: &'static str,
    /// Of port-forward.
    ports: &'static str,
    enabled: &'static str,
    /// True if the value requests a stream.
    is_enabled: fn(&str) -> bool,
}

/// `PodExecOptions`, `PodAttachOptions` and `PodPortForwardOptions` of the API. A boolean is true unless it is `0` or `false`
/// (apimachinery's `Convert_Slice_string_To_bool`).
const API_SERVER: Parameters = Parameters {
    stdin: "stdin",
    stdout: "stdout",
    stderr: "stderr",
    ports: "ports",
    enabled: "true",
    is_enabled: |value| value != "0" && !value.eq_ignore_ascii_case("false"),
};

/// The kubelet's `remotecommand.NewOptions` and `portforward.NewV4Options`.
const KUBELET: Parameters = Parameters {
    stdin: "input",
    stdout: "output",
    stderr: "error",
    ports: "port",
    enabled: "1",
    is_enabled: |value| value == "1",
};

impl PodRequest {
    /// Parses path and query of a request to the API server. Other parts of `uri`, and parameters that it does not know, are ignored.
    ///
    /// With a terminal there is no stderr, as in the kubelet.
    ///
    /// # Errors
    ///
    /// The path, a name, the query or a port is invalid.
    pub fn parse_api_server(uri: &Uri) -> Result<Self, PodRequestError> {
        check_query(uri)?;
        let invalid = || PodRequestError::Path {
            expected: API_SERVER_PATHS,
            found: uri.path().to_owned(),
        };
        let segments = segments(uri).ok_or_else(invalid)?;
        let segments: Vec<_> = segments.iter().map(|segment| &**segment).collect();
        let ["api", "v1", "namespaces", namespace, "pods", pod, verb] = segments[..] else {
            return Err(invalid());
        };
        let call = match verb {
            "exec" => API_SERVER.exec(uri),
            "attach" => API_SERVER.attach(uri),
            "portforward" => API_SERVER.port_forward(uri)?,
            _ => return Err(invalid()),
        };
        let container = match call {
            PodCall::PortForward { .. } => None,
            PodCall::Exec { .. } | PodCall::Attach { .. } => values(uri, "container")
                .find(|name| !name.is_empty())
                .map(|name| check_name(&name).map(str::to_owned))
                .transpose()?,
        };
        Ok(Self {
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            pod_uid: None,
            container,
            call,
        })
    }

    /// Parses path and query of a request to a kubelet. Other parts of `uri`, and parameters that it does not know, are ignored.
    ///
    /// With a terminal there is no stderr, as in the kubelet.
    ///
    /// # Errors
    ///
    /// The path, the query or a port is invalid.
    pub fn parse_kubelet(uri: &Uri) -> Result<Self, PodRequestError> {
        check_query(uri)?;
        let invalid = || PodRequestError::Path {
            expected: KUBELET_PATHS,
            found: uri.path().to_owned(),
        };
        let segments = segments(uri).ok_or_else(invalid)?;
        let segments: Vec<_> = segments.iter().map(|segment| &**segment).collect();
        let (verb, names) = segments.split_first().ok_or_else(invalid)?;
        let (call, container, names) = match (*verb, names) {
            ("exec", [names @ .., container]) => (KUBELET.exec(uri), Some(*container), names),
            ("attach", [names @ .., container]) => (KUBELET.attach(uri), Some(*container), names),
            ("portForward", names) => (KUBELET.port_forward(uri)?, None, names),
            _ => return Err(invalid()),
        };
        let (namespace, pod, pod_uid) = match *names {
            [namespace, pod] => (namespace, pod, None),
            [namespace, pod, uid] => (namespace, pod, Some(uid)),
            _ => return Err(invalid()),
        };
        Ok(Self {
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            pod_uid: pod_uid.map(str::to_owned),
            container: container.map(str::to_owned),
            call,
        })
    }

    /// Formats path and query for the API server. They contain no UID.
    ///
    /// # Errors
    ///
    /// A name is invalid.
    pub fn api_server_url(&self) -> Result<String, PodRequestError> {
        let verb = match self.call {
            PodCall::Exec { .. } => "exec",
            PodCall::Attach { .. } => "attach",
            PodCall::PortForward { .. } => "portforward",
        };
        let (namespace, pod) = (segment(&self.namespace)?, segment(&self.pod)?);
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/{verb}");
        let container = self.container.as_deref().map(check_name).transpose()?;
        Ok(API_SERVER.url(path, container, &self.call))
    }

    /// Formats path and query for a kubelet.
    ///
    /// # Errors
    ///
    /// Exec or attach without a container, or an invalid name.
    pub fn kubelet_url(&self) -> Result<String, PodRequestError> {
        let (verb, has_container) = match self.call {
            PodCall::Exec { .. } => ("exec", true),
            PodCall::Attach { .. } => ("attach", true),
            PodCall::PortForward { .. } => ("portForward", false),
        };
        let container = match &self.container {
            Some(container) if has_container => Some(container),
            None if has_container => return Err(PodRequestError::NoContainer),
            _ => None,
        };
        let names = [Some(&self.namespace), Some(&self.pod)];
        let names = names.into_iter().chain([self.pod_uid.as_ref(), container]);
        let mut path = format!("/{verb}");
        for name in names.flatten() {
            path.push('/');
            path.push_str(&segment(name)?);
        }
        Ok(KUBELET.url(path, None, &self.call))
    }

    /// The request for a [`Responder`](crate::Responder) or a [`StreamingServer`](crate::StreamingServer). `id` is the runtime's id
    /// of the container, or for port-forward of the pod sandbox.
    #[must_use]
    pub fn into_request(self, id: String) -> StreamingRequest {
        match self.call {
            PodCall::Exec {
                command,
                stream_options,
            } => StreamingRequest::Exec(ExecRequest {
                container: id,
                command,
                stream_options,
            }),
            PodCall::Attach { stream_options } => StreamingRequest::Attach(AttachRequest {
                container: id,
                stream_options,
            }),
            PodCall::PortForward { ports } => {
                StreamingRequest::PortForward(PortForwardRequest { sandbox: id, ports })
            }
        }
    }
}

/// The segments of the path without escapes. Each is a valid name.
fn segments(uri: &Uri) -> Option<Vec<Cow<'_, str>>> {
    let decode = |segment| percent_decode_str(segment).decode_utf8().ok();
    let path = uri.path().strip_prefix('/')?;
    path.split('/')
        .map(|segment| decode(segment).filter(|segment| check_name(segment).is_ok()))
        .collect()
}

/// A name must be a segment of a path as it is, as apimachinery's `IsValidPathSegmentName` requires: with `/` or `..` in a name, two
/// pods could have one path.
fn check_name(name: &str) -> Result<&str, PodRequestError> {
    let is_valid = !matches!(name, "" | "." | "..")
        && !name
            .contains(|character: char| matches!(character, '/' | '%') || character.is_control());
    match is_valid {
        true => Ok(name),
        false => Err(PodRequestError::Name {
            found: name.to_owned(),
        }),
    }
}

/// Another decoder would replace invalid bytes, and so run another command.
fn check_query(uri: &Uri) -> Result<(), PodRequestError> {
    let query = uri.query().unwrap_or_default();
    match percent_decode_str(query).decode_utf8() {
        Ok(_) => Ok(()),
        Err(_) => Err(PodRequestError::Query {
            found: query.to_owned(),
        }),
    }
}

/// The values of a parameter, in their order.
fn values<'a>(uri: &'a Uri, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
    let query = uri.query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes())
        .filter(move |(found, _)| found == name)
        .map(|(_, value)| value)
}

fn segment(name: &str) -> Result<String, PodRequestError> {
    Ok(utf8_percent_encode(check_name(name)?, SEGMENT).to_string())
}

impl Parameters {
    fn exec(&self, uri: &Uri) -> PodCall {
        PodCall::Exec {
            command: values(uri, "command").map(Cow::into_owned).collect(),
            stream_options: self.stream_options(uri),
        }
    }

    fn attach(&self, uri: &Uri) -> PodCall {
        PodCall::Attach {
            stream_options: self.stream_options(uri),
        }
    }

    fn port_forward(&self, uri: &Uri) -> Result<PodCall, PodRequestError> {
        let mut ports = Vec::new();
        for value in values(uri, self.ports) {
            for text in value.split(',') {
                let port = text.parse().ok().filter(|port| *port > 0);
                let found = || PodRequestError::Port {
                    found: text.to_owned(),
                };
                ports.push(port.ok_or_else(found)?);
            }
        }
        Ok(PodCall::PortForward { ports })
    }

    fn stream_options(&self, uri: &Uri) -> StreamOptions {
        // The first value counts, as in Go.
        let has = |name| {
            values(uri, name)
                .next()
                .is_some_and(|value| (self.is_enabled)(&value))
        };
        let tty = has("tty");
        StreamOptions {
            stdin: has(self.stdin),
            stdout: has(self.stdout),
            stderr: has(self.stderr) && !tty,
            tty,
        }
    }

    /// Adds the query to a path.
    fn url(&self, path: String, container: Option<&str>, call: &PodCall) -> String {
        let mut query = Serializer::new(String::new());
        let stream_options = match call {
            PodCall::Exec { stream_options, .. } | PodCall::Attach { stream_options } => {
                query.extend_pairs(container.map(|name| ("container", name)));
                *stream_options
            }
            PodCall::PortForward { ports } => {
                query.extend_pairs(ports.iter().map(|port| (self.ports, port.to_string())));
                StreamOptions::default()
            }
        };
        if let PodCall::Exec { command, .. } = call {
            query.extend_pairs(command.iter().map(|word| ("command", word)));
        }
        let streams = [
            (self.stdin, stream_options.stdin),
            (self.stdout, stream_options.stdout),
            (self.stderr, stream_options.stderr),
            ("tty", stream_options.tty),
        ];
        for (name, _) in streams.into_iter().filter(|(_, enabled)| *enabled) {
            query.append_pair(name, self.enabled);
        }
        let query = query.finish();
        match query.is_empty() {
            true => path,
            false => format!("{path}?{query}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn kubelet(url: &str) -> Result<PodRequest, PodRequestError> {
        PodRequest::parse_kubelet(&url.parse().expect("a URI"))
    }

    fn api_server(url: &str) -> Result<PodRequest, PodRequestError> {
        PodRequest::parse_api_server(&url.parse().expect("a URI"))
    }

    #[test]
    fn the_urls_of_kubectl_and_of_the_api_server_are_parsed() {
        // kubectl exec -i -t web -- sh -c 'echo $A'
        let client = "https://host:6443/api/v1/namespaces/default/pods/web/exec?command=sh&command=-c&command=echo+%24A\
                      &container=nginx&stdin=true&stdout=true&tty=true";
        let server = "/exec/default/web/nginx?command=sh&command=-c&command=echo+%24A&input=1&output=1&tty=1";
        let request = api_server(client).expect("exec");
        assert_eq!(kubelet(server).expect("exec"), request);
        let PodCall::Exec { command, .. } = request.call else {
            panic!("{request:?}")
        };
        assert_eq!(command, ["sh", "-c", "echo $A"]);

        let forward = kubelet("/portForward/default/web?port=80%2C443&port=8080").expect("ports");
        let ports = vec![80, 443, 8080];
        assert_eq!(forward.call, PodCall::PortForward { ports });
        let with_uid = kubelet("/exec/default/web/1234/nginx?command=ls&output=1").expect("exec");
        assert_eq!(with_uid.pod_uid.as_deref(), Some("1234"));
        assert_eq!(with_uid.container.as_deref(), Some("nginx"));
    }

    #[test]
    fn a_terminal_has_no_stderr_and_the_servers_have_their_own_booleans() {
        let streams = |request: PodRequest| match request.call {
            PodCall::Attach { stream_options: s } => [s.stdin, s.stdout, s.stderr, s.tty],
            call => panic!("{call:?}"),
        };
        let attach = kubelet("/attach/d/p/c?input=true&output=1&error=1&tty=1").expect("attach");
        assert_eq!(streams(attach), [false, true, false, true]);
        let attach = "/api/v1/namespaces/d/pods/p/attach?stdin=False&stdout&stderr=yes&stderr=0";
        let attach = api_server(attach).expect("attach");
        assert_eq!(streams(attach), [false, true, true, false]);
    }

    #[test]
    fn other_paths_and_ports_are_refused_with_the_expected_form() {
        for path in [
            "/exec/d/p",
            "/exec/d//c",
            "/exec/d/p/u/c/x",
            "/portForward/d",
            "/run/d/p/c",
            "/exec/d/p/%ff",
            "/exec/a%2Fb/c/d",
            "/exec/a/%2e%2e/d",
            "/exec/a/./d",
            "/exec/a/b%00/d",
            "/",
        ] {
            let error = kubelet(path).expect_err(path);
            let expected = format!("invalid path {path:?}: expected {KUBELET_PATHS}");
            assert_eq!(error.to_string(), expected);
        }
        for path in [
            "/api/v1/namespaces/d/pods/p/log",
            "/api/v1/pods/p/exec",
            "/exec/d/p/c",
        ] {
            let error = api_server(path).expect_err(path);
            assert!(matches!(error, PodRequestError::Path { .. }), "{error:?}");
        }
        for port in ["0", "65536", "http", "", "80,"] {
            let error = kubelet(&format!("/portForward/d/p?port={port}")).expect_err(port);
            assert!(matches!(error, PodRequestError::Port { .. }), "{error:?}");
        }
    }

    #[test]
    fn names_that_change_the_path_are_refused() {
        for name in ["", ".", "..", "a/b", "a%2Fb", "a\n"] {
            let mut request = kubelet("/exec/d/p/c?command=ls&output=1").expect("exec");
            request.pod = name.to_owned();
            let found = name.to_owned();
            let error = Err(PodRequestError::Name { found });
            assert_eq!(request.kubelet_url(), error);
            assert_eq!(request.api_server_url(), error);
        }
        let url = "/api/v1/namespaces/d/pods/p/exec?container=..&command=ls&stdout=1";
        let found = "..".to_owned();
        assert_eq!(api_server(url), Err(PodRequestError::Name { found }));
    }

    #[test]
    fn a_command_that_is_not_utf8_is_refused() {
        let error = kubelet("/exec/d/p/c?command=rm&command=%ff&output=1");
        let found = "command=rm&command=%ff&output=1".to_owned();
        assert_eq!(error, Err(PodRequestError::Query { found }));
    }

    #[test]
    fn the_kubelet_does_not_choose_a_container() {
        let mut request = kubelet("/attach/d/p/c?input=1").expect("attach");
        request.container = None;
        assert_eq!(request.kubelet_url(), Err(PodRequestError::NoContainer));
    }

    /// A valid name, with characters that URLs escape.
    const NAME: &str = "[a-zé+&?#= ][a-z0-9.é+&?#= ]{0,9}";

    fn calls() -> impl Strategy<Value = PodCall> {
        let streams = any::<(bool, bool, bool, bool)>().prop_map(|(stdin, stdout, stderr, tty)| {
            StreamOptions {
                stdin,
                stdout,
                stderr: stderr && !tty,
                tty,
            }
        });
        let exec = (vec(".*", 0..4), streams.clone());
        prop_oneof![
            exec.prop_map(|(command, stream_options)| PodCall::Exec {
                command,
                stream_options
            }),
            streams.prop_map(|stream_options| PodCall::Attach { stream_options }),
            vec(1_u16.., 0..4).prop_map(|ports| PodCall::PortForward { ports }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_formatted_is_parsed_unchanged(
            namespace in NAME, pod in NAME, uid in proptest::option::of(NAME), container in NAME, call in calls(),
        ) {
            let has_container = !matches!(call, PodCall::PortForward { .. });
            let mut request = PodRequest {
                namespace,
                pod,
                pod_uid: uid,
                container: has_container.then_some(container),
                call,
            };
            prop_assert_eq!(kubelet(&request.kubelet_url().expect("a container")).expect("valid"), request.clone());
            request.pod_uid = None;
            prop_assert_eq!(api_server(&request.api_server_url().expect("names")).expect("valid"), request);
        }
    }
}

//! Options of every command that makes requests: method, headers, body.

use anyhow::Context;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

/// The request: method, headers and body.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestArgs {
    /// Request method [default: GET, or POST with --data]
    #[arg(short = 'X', long, value_name = "METHOD")]
    method: Option<Method>,

    /// Request header, "name: value"; may be repeated
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = parse_header)]
    headers: Vec<(HeaderName, HeaderValue)>,

    /// Request body; @FILE reads it from a file
    #[arg(short, long, value_name = "TEXT|@FILE")]
    data: Option<String>,
}

impl RequestArgs {
    /// The method.
    pub(crate) fn method(&self) -> Method {
        match (&self.method, &self.data) {
            (Some(method), _) => method.clone(),
            (None, Some(_)) => Method::POST,
            (None, None) => Method::GET,
        }
    }

    /// Whether there is a body.
    pub(crate) fn has_body(&self) -> bool {
        self.data.is_some()
    }

    /// The body.
    pub(crate) fn body(&self) -> anyhow::Result<Bytes> {
        Ok(match self.data.as_deref() {
            None => Bytes::new(),
            Some(text) => match text.strip_prefix('@') {
                Some(file) => std::fs::read(file)
                    .with_context(|| format!("cannot read {file}"))?
                    .into(),
                None => Bytes::copy_from_slice(text.as_bytes()),
            },
        })
    }

    /// The headers of the request: User-Agent and `usual`, replaced by those of the command line.
    pub(crate) fn headers(&self, usual: &[(HeaderName, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let agent = concat!("spdy/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        for (name, value) in usual {
            headers.insert(name, HeaderValue::from_static(value));
        }
        for (name, _) in &self.headers {
            headers.remove(name);
        }
        for (name, value) in &self.headers {
            headers.append(name, value.clone());
        }
        headers
    }
}

fn parse_header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("expected \"name: value\"")?;
    let name = name
        .trim()
        .parse()
        .map_err(|_| format!("{name:?} is not a valid header name"))?;
    let value = value
        .trim()
        .parse()
        .map_err(|_| format!("{value:?} is not a valid header value"))?;
    Ok((name, value))
}

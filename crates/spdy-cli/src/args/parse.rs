//! Parses values of options: counts, seconds, addresses, URLs.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
#[cfg(any(feature = "lab", feature = "serve"))]
use std::str::FromStr;
use std::time::Duration;

/// Parses a count of at least one.
pub(crate) fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    let count = text.parse();
    count.map_err(|_| "expected a whole number, 1 or more, such as 4".to_owned())
}

/// Parses a timeout in seconds.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| format!("{text:?} is not a number of seconds"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(format!("expected a time above 0 s, found {text} s")),
    }
}

/// Parses an address to listen on.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected an IP address and a port, such as 127.0.0.1:8443 or [::]:443".to_owned()
    })
}

/// Parses the URL of a site, as a `Url` or a `Uri`.
#[cfg(any(feature = "lab", feature = "serve"))]
pub(crate) fn parse_http_url<T: FromStr>(text: &str) -> Result<T, String> {
    let is_http = |text: &str| {
        url::Url::parse(text)
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    };
    if let (true, Ok(url)) = (is_http(text), text.parse()) {
        return Ok(url);
    }
    let guess = format!("http://{text}");
    let guess = Some(guess).filter(|guess| !text.contains("://") && is_http(guess));
    let hint = guess.map_or(String::new(), |guess| format!(" (did you mean {guess}?)"));
    Err(format!("not an http or https URL{hint}"))
}

#[cfg(all(test, feature = "lab"))]
mod tests {
    use super::*;

    #[test]
    fn urls_without_a_scheme_get_a_hint() {
        let parse = parse_http_url::<url::Url>;
        assert!(parse("https://example.com/a?b").is_ok());
        for (text, hint) in [
            ("example.com", " (did you mean http://example.com?)"),
            ("localhost:8080", " (did you mean http://localhost:8080?)"),
            ("ftp://example.com", ""),
            ("", ""),
            ("http://", ""),
        ] {
            let expected = format!("not an http or https URL{hint}");
            assert_eq!(parse(text).unwrap_err(), expected, "{text:?}");
        }
    }
}

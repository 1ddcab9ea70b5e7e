//! The URL of a PostgreSQL database, whose password is never shown.
//!
//! ```text
//! postgres://user:password@host:port/database?sslmode=verify-full&sslrootcert=roots.pem&...
//! ```
//!
//! It is parsed as in libpq, except for the part before the host: that ends with the last `@` before the first `/` or `?`, so a
//! password may contain an `@`, and has `%2F` and `%3F` for those two. `sslmode` and `sslrootcert` are handled here; all other
//! parameters are passed to the client.

use std::fmt::{self, Debug, Display};
use std::path::PathBuf;
use std::time::Duration;

use postgres::Config;
use postgres::config::{Host, SslMode};

use crate::experiment::cell::unescaped;

/// Timeout for connecting, for the acknowledgement of sent data, and of idleness before the first keepalive probe, unless
/// `connect_timeout`, `tcp_user_timeout` and `keepalives_idle` set others.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of keepalive probes, and the interval between them.
const PROBES: (u32, Duration) = (3, Duration::from_secs(10));

/// The environment variable for a password that should not be in a list of processes.
const PASSWORD_FROM: &str = "PGPASSWORD";

/// Characters that a name has only as `%40`, `%3F`, `%26` or `%3D`. If a name has one of them unescaped, it may be the end of a
/// password, and names are shown.
const RESERVED_CHARS: [char; 4] = ['@', '?', '&', '='];

/// The URL of a database.
#[derive(Clone)]
pub struct PostgresUrl(String);

/// Encryption of the connection to a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Encryption {
    /// None.
    Disable,
    /// If the server supports it, without verification: libpq's default.
    #[default]
    Prefer,
    /// Always, without verification; with own roots, like [`VerifyFull`](Self::VerifyFull).
    Require,
    /// Always, with verification of the server's name.
    VerifyFull,
}

/// A parsed URL.
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) encryption: Encryption,
    /// Trusted roots, instead of the system's list.
    pub(crate) roots: Option<PathBuf>,
}

impl PostgresUrl {
    /// Returns `text` as a URL if it has the scheme of PostgreSQL.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let schemes = ["postgres://", "postgresql://"];
        let ours = schemes.iter().any(|scheme| text.starts_with(scheme));
        ours.then(|| Self(text.to_owned()))
    }

    /// Parses it, without reading the environment.
    fn read(&self) -> Result<Target, String> {
        let (_, rest) = self.0.split_once("://").unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let user = login.and_then(|login| login.split(':').next());
        let user = user.unwrap_or_default();
        for (what, name) in [("user", user), ("host", hosts), ("database", path)] {
            check_reserved(what, name)?;
        }
        // The client would take the first `@` as the end of the login, so those inside it are escaped.
        let escaped = |text: &str| text.replace('@', "%40");
        let login = login.map_or_else(String::new, |login| format!("{}@", escaped(login)));
        let (mut encryption, mut roots) = (Encryption::default(), None);
        let mut others = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if ["user", "host", "dbname", "sslmode", "sslrootcert"].contains(&key) {
                check_reserved(key, value)?;
            }
            match key {
                "sslmode" => {
                    encryption = match value {
                        "disable" => Encryption::Disable,
                        "prefer" => Encryption::Prefer,
                        "require" => Encryption::Require,
                        "verify-full" => Encryption::VerifyFull,
                        other => {
                            return Err(format!(
                                "sslmode is {other:?}, expected disable, prefer, require or verify-full"
                            ));
                        }
                    }
                }
                "sslrootcert" => roots = Some(PathBuf::from(unescaped(value))),
                // Its name is not shown: it may be the end of a password.
                key if !PARAMETERS.contains(&key) => {
                    let names = PARAMETERS.join(", ");
                    return Err(format!(
                        "it has an unknown parameter: expected one of sslmode, sslrootcert, {names}"
                    ));
                }
                _ => others.push(escaped(parameter)),
            }
        }
        let url = format!("postgres://{login}{hosts}{path}?{}", others.join("&"));
        let mut config: Config = url.parse().map_err(|error| chain(&error))?;
        config.ssl_mode(match encryption {
            Encryption::Disable => SslMode::Disable,
            Encryption::Prefer => SslMode::Prefer,
            Encryption::Require | Encryption::VerifyFull => SslMode::Require,
        });
        if encryption == Encryption::Require && roots.is_some() {
            encryption = Encryption::VerifyFull;
        }
        Ok(Target {
            config,
            encryption,
            roots,
        })
    }

    /// The parsed URL with the environment.
    pub(crate) fn target(&self) -> Result<Target, String> {
        let mut target = self.read()?;
        let config = &mut target.config;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(
                "it has no host: expected postgres://HOST/DATABASE, or ?host=FOLDER of a socket"
                    .to_owned(),
            );
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(CONNECT_TIMEOUT);
        }
        if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
            config.keepalives_idle(CONNECT_TIMEOUT);
            config.keepalives_retries(PROBES.0);
            config.keepalives_interval(PROBES.1);
        }
        if config.get_application_name().is_none() {
            config.application_name("spdy lab");
        }
        if config.get_password().is_none()
            && let Ok(password) = std::env::var(PASSWORD_FROM)
        {
            config.password(password);
        }
        Ok(target)
    }
}

/// Parameters that the client supports, besides those that are handled here.
const PARAMETERS: [&str; 18] = [
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "sslnegotiation",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "channel_binding",
    "load_balance_hosts",
];

/// Returns an error if `name`, which would be shown as the URL's `what`, may be more than a name.
fn check_reserved(what: &str, name: &str) -> Result<(), String> {
    match name.contains(RESERVED_CHARS) {
        true => Err(format!(
            "its {what} has an @ ? & or =: use %40, %3F, %26 or %3D in a name, and %2F for a / in a password"
        )),
        false => Ok(()),
    }
}

/// An error with its causes: the client's own messages have little detail by themselves.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Shows it without the password and all other parameters; an invalid or ambiguous URL is not shown at all.
impl Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        let Ok(Target { config, .. }) = self.read() else {
            return f.write_str("...");
        };
        if let Some(user) = config.get_user() {
            write!(f, "{user}@")?;
        }
        let ports = config.get_ports();
        for (at, host) in config.get_hosts().iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match host {
                Host::Tcp(name) => write!(f, "{comma}{name}")?,
                Host::Unix(path) => write!(f, "{comma}{}", path.display())?,
            }
            // A single port applies to every host.
            if let Some(port) = ports.get(at).or(ports.first()) {
                write!(f, ":{port}")?;
            }
        }
        write!(f, "/{}", config.get_dbname().unwrap_or_default())
    }
}

impl Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> PostgresUrl {
        PostgresUrl::new(text).unwrap_or_else(|| panic!("{text} is a PostgreSQL URL"))
    }

    #[test]
    fn a_valid_or_invalid_url_is_shown_without_its_secrets() {
        let cases = [
            (
                "postgres://ann:hush@db.test:5433/sweep",
                "postgres://ann@db.test:5433/sweep",
            ),
            (
                "postgresql://db.test/sweep?user=ann&password=hush",
                "postgres://ann@db.test:5432/sweep",
            ),
            (
                "postgres://ann:hush@/sweep?host=/run/pg&port=7",
                "postgres://ann@/run/pg:7/sweep",
            ),
            ("postgres://a:hush@db.test:port/sweep", "postgres://..."),
            (
                "postgres://a:hush@db.test/sweep?sslmode=maybe",
                "postgres://...",
            ),
            // An @ in the password, at any position.
            (
                "postgres://ann:hu@sh@db.test/sweep",
                "postgres://ann@db.test:5432/sweep",
            ),
            (
                "postgres://db.test/sweep?user=ann&password=hu@sh",
                "postgres://ann@db.test:5432/sweep",
            ),
            (
                "postgres://db.test?user=ann&password=hu@sh",
                "postgres://ann@db.test:5432/",
            ),
            (
                "postgres://ann%40corp:hu%3Fsh@db.test/sweep",
                "postgres://ann@corp@db.test:5432/sweep",
            ),
            // Other separators of a URL, unescaped in a password.
            ("postgres://a:hu?sh@db.test/sweep", "postgres://..."),
            ("postgres://a:hu/sh@db.test/sweep", "postgres://..."),
            ("postgres://a:12/hush@db.test/sweep", "postgres://..."),
            ("postgres://a:12?hush=3@db.test/sweep", "postgres://..."),
            ("postgres://a@b:hush@db.test/sweep", "postgres://..."),
            ("postgres://db.test&password=hush", "postgres://..."),
            ("postgres://db.test/sweep&password=hush", "postgres://..."),
            (
                "postgres://db.test/sweep?user=ann?password=hush",
                "postgres://...",
            ),
            (
                "postgres://db.test/sweep?sslmode=require?password=hush",
                "postgres://...",
            ),
            (
                "postgres://db.test/sweep?password=12&hush=3",
                "postgres://...",
            ),
        ];
        for (text, shown) in cases {
            assert_eq!(url(text).to_string(), shown, "{text}");
            let debugged = format!("{:?}", crate::store::location::Location::new(text.as_ref()));
            assert!(!debugged.contains("hu"), "{debugged}");
            if let Err(reason) = url(text).target() {
                assert!(!reason.contains("hu"), "{text}: {reason}");
            }
        }
    }

    #[test]
    fn sslmode_and_root_certificates_follow_libpq() {
        let cases = [
            ("", SslMode::Prefer, Encryption::Prefer),
            ("?sslmode=disable", SslMode::Disable, Encryption::Disable),
            ("?sslmode=require", SslMode::Require, Encryption::Require),
            (
                "?sslmode=verify-full",
                SslMode::Require,
                Encryption::VerifyFull,
            ),
            (
                "?sslmode=require&connect_timeout=3&sslrootcert=my%20roots.pem",
                SslMode::Require,
                Encryption::VerifyFull,
            ),
        ];
        for (query, mode, encryption) in cases {
            let target = url(&format!("postgres://db.test/sweep{query}")).target();
            let target = target.unwrap_or_else(|reason| panic!("{query}: {reason}"));
            assert_eq!(target.config.get_ssl_mode(), mode, "{query}");
            assert_eq!(target.encryption, encryption, "{query}");
            let roots = target
                .roots
                .is_some()
                .then(|| PathBuf::from("my roots.pem"));
            assert_eq!(target.roots, roots);
        }
        for odd in ["b@c", "b%40c", "b:@c"] {
            let odd_url = url(&format!("postgres://a:{odd}@db.test/sweep?sslmode=require"));
            let target = odd_url
                .target()
                .unwrap_or_else(|reason| panic!("{odd}: {reason}"));
            assert_eq!(target.encryption, Encryption::Require, "{odd}");
            let (host, password) = (target.config.get_hosts(), target.config.get_password());
            assert_eq!(host, [Host::Tcp("db.test".to_owned())], "{odd}");
            assert_eq!(password, Some(unescaped(odd).as_bytes()), "{odd}");
        }
        let last = url("postgres://db.test/sweep?password=hu@?").target();
        assert!(last.is_ok_and(|target| target.config.get_password() == Some(b"hu@?")));
        let message = url("postgres:///sweep").target().err();
        assert!(message.is_some_and(|reason| reason.contains("has no host")));
    }
}

//! The URL of a PostgreSQL database, which may hold a password and shows none.
//!
//! ```text
//! postgres://user:password@host:port/database?sslmode=verify-full&sslrootcert=roots.pem&...
//! ```
//!
//! It reads as that of libpq. `sslmode` and `sslrootcert` are ours to obey; all other parameters go to the client.

use std::fmt::{self, Debug, Display};
use std::path::PathBuf;
use std::time::Duration;

use postgres::Config;
use postgres::config::{Host, SslMode};

use crate::experiment::cell::unescaped;

/// How long a server may take to answer a wish to connect, to acknowledge what was sent, and to say nothing until it is asked
/// whether it is still there, unless `connect_timeout`, `tcp_user_timeout` and `keepalives_idle` say otherwise.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is asked then, and how far apart.
const PROBES: (u32, Duration) = (3, Duration::from_secs(10));

/// Where a password stands that is not to be seen in a list of processes.
const PASSWORD_FROM: &str = "PGPASSWORD";

/// The URL of a database.
#[derive(Clone)]
pub struct PostgresUrl(String);

/// Whether and how the way to a server is encrypted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Encryption {
    /// Not at all.
    Disable,
    /// If the server will, whoever it is: libpq's default.
    #[default]
    Prefer,
    /// Always, whoever the server is; with roots of one's own, as [`VerifyFull`](Self::VerifyFull).
    Require,
    /// Always, and the server must prove its name.
    VerifyFull,
}

/// A URL that was read.
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) encryption: Encryption,
    /// Who is believed, instead of the system's list.
    pub(crate) roots: Option<PathBuf>,
}

impl PostgresUrl {
    /// `text`, if it is a URL of PostgreSQL by its scheme.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let schemes = ["postgres://", "postgresql://"];
        let ours = schemes.iter().any(|scheme| text.starts_with(scheme));
        ours.then(|| Self(text.to_owned()))
    }

    /// What it says, without asking the environment.
    fn read(&self) -> Result<Target, String> {
        // A password may have a question mark.
        let user = self.0.find('@').unwrap_or(0);
        let mark = self.0[user..]
            .find('?')
            .map_or(self.0.len(), |at| user + at);
        let (base, query) = (&self.0[..mark], self.0.get(mark + 1..).unwrap_or_default());
        let (mut encryption, mut roots) = (Encryption::default(), None);
        let mut rest = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", mode)) => {
                    encryption = match mode {
                        "disable" => Encryption::Disable,
                        "prefer" => Encryption::Prefer,
                        "require" => Encryption::Require,
                        "verify-full" => Encryption::VerifyFull,
                        other => {
                            return Err(format!(
                                "sslmode is {other:?}: want disable, prefer, require or verify-full"
                            ));
                        }
                    }
                }
                Some(("sslrootcert", path)) => roots = Some(PathBuf::from(unescaped(path))),
                _ => rest.push(parameter),
            }
        }
        let url = format!("{base}?{}", rest.join("&"));
        let mut config: Config = url
            .trim_end_matches('?')
            .parse()
            .map_err(|error: postgres::Error| chain(&error))?;
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

    /// Where to connect to, and how.
    pub(crate) fn target(&self) -> Result<Target, String> {
        let mut target = self.read()?;
        let config = &mut target.config;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(
                "it names no host: want postgres://HOST/DATABASE, or ?host=FOLDER of a socket"
                    .to_owned(),
            );
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(PATIENCE);
        }
        if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
            config.keepalives_idle(PATIENCE);
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

/// An error with what it came of: the client's own say little by themselves.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Without the password and all other parameters; of what cannot be read, nothing is shown at all.
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
            // One port is that of every host.
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
        PostgresUrl::new(text).unwrap_or_else(|| panic!("{text} is a URL of PostgreSQL"))
    }

    #[test]
    fn a_url_is_shown_without_its_secrets_whether_it_can_be_read_or_not() {
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
                "postgres://a:hu?sh@db.test/sweep",
                "postgres://a@db.test:5432/sweep",
            ),
            (
                "postgres://a:hush@db.test/sweep?sslmode=maybe",
                "postgres://...",
            ),
        ];
        for (text, shown) in cases {
            assert_eq!(url(text).to_string(), shown, "{text}");
            let debugged = format!("{:?}", crate::store::location::Location::new(text.as_ref()));
            assert!(!debugged.contains("hu"), "{debugged}");
            if let Err(why) = url(text).target() {
                assert!(!why.contains("hu"), "{text}: {why}");
            }
        }
    }

    #[test]
    fn what_is_encrypted_and_who_is_believed_follows_libpq() {
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
            let target = target.unwrap_or_else(|why| panic!("{query}: {why}"));
            assert_eq!(target.config.get_ssl_mode(), mode, "{query}");
            assert_eq!(target.encryption, encryption, "{query}");
            let roots = target
                .roots
                .is_some()
                .then(|| PathBuf::from("my roots.pem"));
            assert_eq!(target.roots, roots);
        }
        let odd = url("postgres://a:b?c@db.test/sweep?sslmode=require").target();
        assert!(odd.is_ok_and(|target| target.encryption == Encryption::Require));
        let told = url("postgres:///sweep").target().err();
        assert!(told.is_some_and(|why| why.contains("names no host")));
    }
}

//! The program that serves the pages of a cell: ours, or another one in real time.

use std::fmt;
use std::str::FromStr;

use spdy_sim::options::RaceProtocol;

/// A program that serves pages.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ServerProgram {
    /// `spdy-server`, in either clock.
    #[default]
    Ours,
    /// nginx.
    Nginx,
    /// node-spdy, with the program in `interop/node-spdy`.
    NodeSpdy,
    /// Jetty's SPDY streams, with the program in `interop/jvm`.
    Jetty,
    /// Netty's SPDY codec, with the program in `interop/netty`.
    Netty,
}

impl ServerProgram {
    /// All values.
    pub const ALL: [Self; 5] = [
        Self::Ours,
        Self::Nginx,
        Self::NodeSpdy,
        Self::Jetty,
        Self::Netty,
    ];

    /// Its name in experiments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Nginx => "nginx",
            Self::NodeSpdy => "node-spdy",
            Self::Jetty => "jetty",
            Self::Netty => "netty",
        }
    }

    /// The protocols that it speaks here.
    #[must_use]
    pub const fn protocols(self) -> &'static [RaceProtocol] {
        match self {
            Self::Ours => &RaceProtocol::ALL,
            Self::Nginx => &[RaceProtocol::Http, RaceProtocol::Https, RaceProtocol::H2],
            Self::NodeSpdy => &[
                RaceProtocol::Https,
                RaceProtocol::Spdy,
                RaceProtocol::Spdy3,
                RaceProtocol::H2,
            ],
            Self::Jetty => &[RaceProtocol::Spdy3, RaceProtocol::Spdy2],
            Self::Netty => &[RaceProtocol::Spdy],
        }
    }

    /// Checks that it speaks `protocol`.
    ///
    /// # Errors
    ///
    /// The protocols that it speaks.
    pub(crate) fn check_protocol(self, protocol: RaceProtocol) -> Result<(), String> {
        if self.protocols().contains(&protocol) {
            return Ok(());
        }
        let names: Vec<_> = self.protocols().iter().map(|it| it.name()).collect();
        let expected = match &names[..] {
            [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            names => names.concat(),
        };
        Err(format!(
            "server={self} does not speak {protocol}: expected {expected}"
        ))
    }
}

impl fmt::Display for ServerProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no [`ServerProgram`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown server {0:?}: expected ours, nginx, node-spdy, jetty or netty")]
pub struct UnknownServer(pub String);

impl FromStr for ServerProgram {
    type Err = UnknownServer;

    fn from_str(name: &str) -> Result<Self, UnknownServer> {
        let found = Self::ALL.into_iter().find(|server| server.name() == name);
        found.ok_or_else(|| UnknownServer(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_name_parses_and_is_listed_in_the_error() {
        let unknown = "apache".parse::<ServerProgram>().expect_err("no server");
        for server in ServerProgram::ALL {
            assert_eq!(server.name().parse(), Ok(server));
            assert!(unknown.to_string().contains(server.name()), "{unknown}");
        }
    }

    #[test]
    fn a_server_is_refused_for_other_protocols_than_its_own() {
        assert_eq!(
            ServerProgram::Nginx.check_protocol(RaceProtocol::H2),
            Ok(())
        );
        let refused = |server: ServerProgram| server.check_protocol(RaceProtocol::H3);
        assert_eq!(
            refused(ServerProgram::Jetty),
            Err("server=jetty does not speak h3: expected spdy3 or spdy2".to_owned())
        );
        assert_eq!(
            refused(ServerProgram::Netty),
            Err("server=netty does not speak h3: expected spdy".to_owned())
        );
        assert_eq!(refused(ServerProgram::Ours), Ok(()));
    }
}

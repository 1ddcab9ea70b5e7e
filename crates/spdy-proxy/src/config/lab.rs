//! Settings for laboratories only.

use std::net::SocketAddr;

use serde::Deserialize;

/// Switches for laboratories, each with what it must not be near.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabConfig {
    /// Whether proxied URLs are written as `/HOST/PATH`, as in a paper, for listed hosts only. All listeners must be on
    /// loopback. Default `false`.
    pub paper_urls: bool,
}

impl LabConfig {
    /// The first of the addresses `listening` that is not allowed with the enabled switches, with the key and what it requires.
    #[must_use]
    pub fn fault(
        self,
        listening: impl IntoIterator<Item = SocketAddr>,
    ) -> Option<(&'static str, &'static str, SocketAddr)> {
        if !self.paper_urls {
            return None;
        }
        // They hide the site's own paths of the same name, and lose schemes and ports.
        let want = "listeners on loopback alone, for its URLs are those of a laboratory";
        let mut listening = listening.into_iter();
        let outside = listening.find(|address| !address.ip().to_canonical().is_loopback())?;
        Some(("lab.paper_urls", want, outside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paper_urls_require_all_listeners_on_loopback() {
        let on = LabConfig { paper_urls: true };
        let of = |texts: &[&str]| -> Vec<SocketAddr> {
            let texts = texts.iter();
            texts
                .map(|text| text.parse().expect("an address"))
                .collect()
        };
        let good = [
            "127.0.0.1:443",
            "[::1]:443",
            "127.9.9.9:0",
            "[::ffff:127.0.0.1]:80",
        ];
        assert_eq!(on.fault(of(&good)), None);
        for outside in [
            "0.0.0.0:443",
            "[::]:443",
            "192.0.2.1:443",
            "10.0.0.1:80",
            "[fe80::1]:80",
        ] {
            let all = of(&["127.0.0.1:80", outside]);
            let (key, _, found) = on.fault(all.clone()).expect("it is not on loopback");
            assert_eq!(
                (key, found.to_string()),
                ("lab.paper_urls", outside.to_owned())
            );
            assert_eq!(LabConfig::default().fault(all), None);
        }
    }
}

//! The site that tests speak of, and words of the data files.

pub(crate) mod aliases;
pub(crate) mod corpus;
pub(crate) mod fields;
pub(crate) mod page;

use std::sync::Arc;

use spdy_rewrite::kind::Kind;
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::capability::{Key, Keys};
use spdy_rewrite::rules::config::{Config, HostConfig, Scheme};
use url::Url;

pub(crate) fn key(kid: char, fill: u8) -> Key {
    Key::new(kid, &[fill; 32]).unwrap()
}

pub(crate) fn keys() -> Keys {
    Keys::new(key('a', 1), Some(key('o', 2)))
}

pub(crate) fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// The site's configuration in `vectors/moved-urls/abuse.txt`.
pub(crate) fn config() -> Config {
    let images = |host: &str| HostConfig {
        kinds: vec![Kind::Image],
        ..HostConfig::passive(host)
    };
    Config {
        hosts: vec![
            HostConfig::all_kinds("cdn.test"),
            HostConfig {
                path: "/lib/".to_owned(),
                ..images("folder.test")
            },
            images("*.wild.test"),
            images("port.test:8443"),
            HostConfig {
                scheme: Scheme::Http,
                ..images("plain.test")
            },
            HostConfig {
                kinds: vec![Kind::Image, Kind::Script],
                shared: true,
                ..images("shared.test")
            },
            HostConfig::passive("parts.test"),
            HostConfig {
                path: "/users/".to_owned(),
                ..images("parts.test")
            },
        ],
        deny: vec!["evil.test".to_owned()],
        own_hosts: vec!["img.site.test".to_owned()],
        pages_left: vec!["/admin/".to_owned()],
        lazy_attributes: ["data-src", "data-srcset", "data-bg"]
            .map(str::to_owned)
            .to_vec(),
        ..Config::default()
    }
}

pub(crate) fn compile(config: &Config, keys: Keys) -> Arc<Rules> {
    Arc::new(Rules::compile(&url("https://www.site.test"), config, Some(keys)).unwrap())
}

/// The site, discovering nothing.
pub(crate) fn rules() -> Arc<Rules> {
    compile(&config(), keys())
}

/// The site, discovering what pages name.
pub(crate) fn discovering() -> Arc<Rules> {
    let config = Config {
        discover: true,
        ..config()
    };
    compile(&config, keys())
}

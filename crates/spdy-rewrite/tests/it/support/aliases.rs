//! A site that gives two hosts names of their own, and moves a third.

use std::sync::Arc;

use spdy_rewrite::kind::Kind;
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::config::{Config, HostConfig};
use spdy_rewrite::urls::proxied_url::ProxiedUrl;

use super::{compile, keys, url};

pub(crate) fn config() -> Config {
    Config {
        names_under: Some("x.assets.test".to_owned()),
        hosts: vec![
            HostConfig::named("widgets.test"),
            HostConfig {
                kinds: vec![Kind::Image, Kind::Style],
                path: "/pub/".to_owned(),
                ..HostConfig::named("pictures.test:8443")
            },
            HostConfig::all_kinds("cdn.test"),
        ],
        ..Config::default()
    }
}

pub(crate) fn rules() -> Arc<Rules> {
    compile(&config(), keys())
}

/// The origin under which `host` is served.
pub(crate) fn name_of(rules: &Rules, host: &str) -> String {
    let url = url(&format!("https://{host}/"));
    rules
        .alias_of(&url)
        .expect("a named host")
        .origin()
        .to_owned()
}

pub(crate) fn opened(rules: &Rules, url_text: &str) -> ProxiedUrl {
    let url = url(url_text);
    let alias = rules.alias_of(&url).expect("a named host");
    let target = &url[url::Position::BeforePath..];
    rules
        .open_alias(alias, target)
        .expect("the URL is of the alias")
}

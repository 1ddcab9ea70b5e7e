//! Keys of the configuration that take effect only after a restart. A reload that finds one changed prints a note with its name.

use std::fmt::Debug;

use spdy_proxy::config::Config;
use spdy_proxy::config::cache::CacheConfig;
use spdy_proxy::config::learn::LearnConfig;
use spdy_proxy::config::limits::ClientLimitsConfig;
use spdy_proxy::config::listen::ListenConfig;
use spdy_service::notice::Notices;

/// A key, with its value in words.
type KeyValue = (&'static str, String);

/// Prints which keys of `now` differ from those at the start, and need a restart.
pub(crate) fn warn_changed(at_start: &Config, now: &Config, notices: &Notices) {
    let others = others(at_start, now);
    if !others.is_empty() {
        notices.error(
            format_args!("{} changed", others.join(", ")),
            ", which takes effect only after a restart",
        );
    }
}

/// `now` with the listeners of the start, because the URLs of pages and the scheme of connections depend on them.
pub(crate) fn keep_listeners(at_start: &Config, now: &Config) -> Config {
    let mut config = now.clone();
    config.listen.tls.clone_from(&at_start.listen.tls);
    config.listen.plain.clone_from(&at_start.listen.plain);
    config
}

fn others(at_start: &Config, now: &Config) -> Vec<&'static str> {
    let pairs = all(at_start).into_iter().zip(all(now));
    let other = pairs.filter(|(before, now)| before.1 != now.1);
    other.map(|((key, _), _)| key).collect()
}

/// All keys that need a restart. Tables that are compared as a whole are destructured here, so that a new key is not forgotten.
fn all(config: &Config) -> Vec<KeyValue> {
    let mut all = of_listeners(config);
    all.extend(of_limits(&config.limits));
    all.extend(of_cache(&config.cache));
    all.extend(of_learning(&config.learn));
    all
}

fn of_listeners(config: &Config) -> Vec<KeyValue> {
    let ListenConfig {
        tls: _, // `tls()` also has the default
        plain,
        protocols,
        public_port: _,
        public_addresses: _,
        trusted: _,
        proxy_protocol: _,
        client_certificates,
        remember_windows,
    } = &config.listen;
    // Their authorities are read again.
    let requires_certificates = client_certificates
        .as_ref()
        .map(|accepted| accepted.required);
    let admin = config.admin.as_ref().map(|admin| admin.address);
    vec![
        ("listen.tls", debug_text(&config.listen.tls())),
        ("listen.plain", debug_text(plain)),
        ("listen.protocols", debug_text(protocols)),
        (
            "listen.client_certificates",
            debug_text(&requires_certificates),
        ),
        ("listen.remember_windows", debug_text(remember_windows)),
        ("admin.address", debug_text(&admin)),
        ("dns.listen", debug_text(&config.dns.listen)),
        (
            "tls.write_authority",
            debug_text(&config.tls.write_authority),
        ),
    ]
}

fn of_limits(limits: &ClientLimitsConfig) -> Vec<KeyValue> {
    let ClientLimitsConfig {
        max_connections,
        connections_per_address,
        connection_rate,
        abuses_per_address,
        max_streams,
        idle_timeout_s,
        keepalive_s,
        min_rate,
        drain_timeout_s,
        max_head_bytes,
    } = limits;
    vec![
        ("limits.max_connections", debug_text(max_connections)),
        (
            "limits.connections_per_address",
            debug_text(connections_per_address),
        ),
        ("limits.connection_rate", debug_text(connection_rate)),
        ("limits.abuses_per_address", debug_text(abuses_per_address)),
        ("limits.max_streams", debug_text(max_streams)),
        ("limits.idle_timeout_s", debug_text(idle_timeout_s)),
        ("limits.keepalive_s", debug_text(keepalive_s)),
        ("limits.min_rate", debug_text(min_rate)),
        ("limits.drain_timeout_s", debug_text(drain_timeout_s)),
        ("limits.max_head_bytes", debug_text(max_head_bytes)),
    ]
}

fn of_cache(cache: &CacheConfig) -> Vec<KeyValue> {
    let CacheConfig {
        memory_mib,
        object_mib,
        in_flight_mib,
        disk,
        disk_mib,
        shared,
        after_cookies,
        fetch_timeout_s,
        lock_age_s,
        misses_per_second,
        range_fill_mib,
        recompress,
        images,
        obey_reload,
    } = cache;
    vec![
        ("cache.memory_mib", debug_text(memory_mib)),
        ("cache.object_mib", debug_text(object_mib)),
        ("cache.in_flight_mib", debug_text(in_flight_mib)),
        ("cache.disk", debug_text(disk)),
        ("cache.disk_mib", debug_text(disk_mib)),
        ("cache.shared", debug_text(shared)),
        ("cache.after_cookies", debug_text(after_cookies)),
        ("cache.fetch_timeout_s", debug_text(fetch_timeout_s)),
        ("cache.lock_age_s", debug_text(lock_age_s)),
        ("cache.misses_per_second", debug_text(misses_per_second)),
        ("cache.range_fill_mib", debug_text(range_fill_mib)),
        ("cache.recompress", debug_text(recompress)),
        ("cache.images", debug_text(images)),
        ("cache.obey_reload", debug_text(obey_reload)),
    ]
}

fn of_learning(learn: &LearnConfig) -> Vec<KeyValue> {
    let LearnConfig {
        push,
        early_hints,
        prefetch,
        prefetch_per_page,
        prefetches,
    } = learn;
    vec![
        ("learn.push", debug_text(push)),
        ("learn.early_hints", debug_text(early_hints)),
        ("learn.prefetch", debug_text(prefetch)),
        ("learn.prefetch_per_page", debug_text(prefetch_per_page)),
        ("learn.prefetches", debug_text(prefetches)),
    ]
}

fn debug_text(value: &impl Debug) -> String {
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        let site = "[[site]]\nnames = ['a.test']\norigin = 'https://b.test'\n";
        Config::parse(&format!("{text}\n{site}")).expect("a valid configuration")
    }

    #[test]
    fn restart_only_keys_are_reported_by_name() {
        let before = config("");
        for (text, expected) in [
            ("", &[][..]),
            (
                "[listen]\nplain = ['127.0.0.1:1']\npublic_port = 443",
                &["listen.tls", "listen.plain"],
            ),
            (
                "[cache]\nafter_cookies = true\nmemory_mib = 100",
                &["cache.memory_mib", "cache.after_cookies"],
            ),
            ("[learn]\npush = false", &["learn.push"]),
            ("[limits]\nmin_rate = 0", &["limits.min_rate"]),
            (
                "[admin]\naddress = '127.0.0.1:1'\ntoken_file = '/t'",
                &["admin.address"],
            ),
            ("[upstream]\nretries = 2", &[]),
            ("[timing]\ntoken_file = '/t'", &[]),
            ("[websocket]\nopen = 1", &[]),
        ] {
            assert_eq!(others(&before, &config(text)), expected, "{text}");
        }
    }
}

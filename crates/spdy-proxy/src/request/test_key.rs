//! A key of the site's own, for unit tests.

use spdy_cache::key::{Key, KeyParts};

/// The key of `target`.
pub(crate) fn key(target: &str) -> Key {
    let parts = KeyParts {
        site: "https://site.test",
        scheme: "https",
        host: "site.test",
        port: 443,
        target,
        rules: "",
    };
    Key::new(&parts).expect("a test key has no zero byte")
}

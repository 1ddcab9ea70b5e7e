//! Scripts that read the URL they were loaded from, and fail or behave differently under another one.
//!
//! The list is based on what their vendors or users published. Other hosts can be excluded by the `kinds` of their entry, and a
//! single script by `data-no-spdy`.

use crate::rules::host_name;

/// Hosts with such a script for which an alias does not help; hosts below them count too.
const HOSTS: [&str; 6] = [
    // Cloudflare Turnstile finds its own element by this host to read its parameters; its vendor forbids proxying and caching.
    "challenges.cloudflare.com",
    // Stripe's loader looks for an element with this host, and loads a second Stripe.js if it finds none.
    "js.stripe.com",
    // PayPal's SDK refuses to start if no element of the page has its URL (paypal-checkout-components#1219).
    "paypal.com",
    // Plausible sends its counts to the host in its element's URL. Plausible, Umami and Fathom distinguish visitors by their
    // addresses, and under an alias all would have the accelerator's.
    "plausible.io",
    // Umami sends its counts to the folder that it was loaded from.
    "umami.is",
    // Fathom sends its counts to the host that it was loaded from.
    "usefathom.com",
];

/// Hosts for which an alias helps: by it they load the same resources as from the host.
const PROXIABLE_HOSTS: [&str; 2] = [
    // Segment's analytics.js takes the host of its settings and plugins from the `src` of its element.
    "cdn.segment.com",
    // Snap's pixel takes the URL of its configuration from a stack trace (nuxt/scripts#822).
    "sc-static.net",
];

/// True if scripts of `host`, a name in lower case, are known to read their own URL, and not to work under their proxied URL.
pub(crate) fn has_self_url_scripts(host: &str, is_named: bool) -> bool {
    let by_path = PROXIABLE_HOSTS.iter().filter(|_| !is_named);
    let mut zones = HOSTS.iter().chain(by_path);
    zones.any(|zone| host_name::is_in_zone(host, zone))
}

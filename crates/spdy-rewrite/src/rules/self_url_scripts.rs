//! Scripts that look at the URL they were loaded from, and do something else, or nothing, under another one.
//!
//! The list is from what their makers or users published. A host that is not among them may be left by its entry's `kinds`, and one
//! script by `data-no-spdy`.

use crate::rules::host_name;

/// Hosts with such a script for which a name of their own does no better; what is under them counts too.
const HOSTS: [&str; 6] = [
    // Cloudflare Turnstile looks for its own element by this host for its parameters; its makers forbid to proxy or keep it.
    "challenges.cloudflare.com",
    // Stripe's loader looks for an element by this host, and loads a second Stripe.js if it finds none.
    "js.stripe.com",
    // PayPal's SDK refuses to begin if no element of the page has its URL (paypal-checkout-components#1219).
    "paypal.com",
    // Plausible sends its counts to the host that its element names. It, Umami and Fathom distinguish visitors by their addresses, and by
    // a name all would have the accelerator's.
    "plausible.io",
    // Umami sends what it counts to the folder that it was loaded from.
    "umami.is",
    // Fathom sends what it counts to the host that it was loaded from.
    "usefathom.com",
];

/// Those for which it does: what they load by it is what they would have loaded.
const PROXIABLE_HOSTS: [&str; 2] = [
    // Segment's analytics.js takes the host of its settings and plugins from the `src` of its element.
    "cdn.segment.com",
    // Snap's pixel takes the URL of its configuration from a stack trace (nuxt/scripts#822).
    "sc-static.net",
];

/// Whether scripts of `host`, a name in lower case, are known to read their own URL, and not to work by the one that they would get.
pub(crate) fn has_self_url_scripts(host: &str, is_named: bool) -> bool {
    let by_path = PROXIABLE_HOSTS.iter().filter(|_| !is_named);
    let mut zones = HOSTS.iter().chain(by_path);
    zones.any(|zone| host_name::is_in_zone(host, zone))
}

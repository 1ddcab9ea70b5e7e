#![doc = include_str!("../README.md")]
#![doc = include_str!("../GUIDE.md")]
//!
//! ## The house
//!
//! ```text
//!  rules/config.rs ──► rules/rule_set.rs (rules/host_name.rs, kind.rs) ──► what is moved, and why not            limits.rs, rules/host_limits.rs, rules/public_cdns.rs
//!                   │
//!                   ├── rules/path_normalization.rs                 how a server may read a path that is written otherwise
//!                   ├── urls/proxied_url.rs, rules/capability.rs     /.spdy/1/<cap>/s/host/path: made (once: rules/capability_cache.rs) and opened; rules/url_form.rs
//!                   ├── rules/host_aliases.rs                   https://<label>.<zone>/path: made and opened
//!                   ├── request/anonymize.rs, request/alias_request.rs  a request for it: checked, and written anew
//!                   ├── response/sanitize_response.rs, response/redirect.rs,        its answer: what of it is passed on
//!                   │   response/alias_response.rs
//!                   ├── rules/refusal.rs                      or a reason
//!                   │
//!                   ├── html/page_head.rs                    a page's head (csp/page_location.rs): csp/policy.rs (csp/inline.rs), html/link_header.rs, response/rewritten_head.rs
//!                   ├── html/rewriter.rs (html/element.rs)       its bytes: html/srcset.rs, html/entities.rs, html/import_map.rs, reference/stylesheet_integrity.rs (reference/integrity.rs)
//!                   ├── css/stylesheet.rs (css/urls.rs)            its sheets; reference/rewrite_reference.rs judges what stands in both (reference/origin_cache.rs)
//!                   └── reference/page_report.rs                  what was moved, what not, and why
//! ```
//!
//! No I/O, no clock, no randomness: the same input gives the same bytes. Names are not resolved here, and addresses not checked; the
//! caller that connects does that.

pub mod csp;
pub mod css;
pub mod html;
pub mod kind;
pub mod limits;
pub mod reference;
pub mod referrer;
pub mod request;
pub mod response;
pub mod rules;
pub mod urls;

mod charset;

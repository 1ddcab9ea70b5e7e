#![doc = include_str!("../README.md")]
//!
//! ## The house
//!
//! ```text
//!  config.rs ──► rules.rs (host.rs, kind.rs) ──► what is moved, and why not            limits.rs, host_limits.rs, shared_hosts.rs
//!                   │
//!                   ├── path_reading.rs                 how a server may read a path that is written otherwise
//!                   ├── moved_url.rs, capability.rs     /.spdy/1/<cap>/s/host/path: made (once: made.rs) and opened; form.rs
//!                   ├── named_host.rs                   https://<label>.<zone>/path: made and opened
//!                   ├── anonymous.rs, named_request.rs  a request for it: checked, and written anew
//!                   ├── hygiene.rs, redirect.rs,        its answer: what of it is passed on
//!                   │   named_answer.rs
//!                   ├── refusal.rs                      or a reason
//!                   │
//!                   ├── page_head.rs                    a page's head (page_at.rs): csp.rs (csp_page.rs), link_header.rs, rewritten.rs
//!                   ├── html.rs (html_element.rs)       its bytes: srcset.rs, entities.rs, import_map.rs, pinned_sheet.rs (integrity.rs)
//!                   ├── css.rs (css_urls.rs)            its sheets; reference.rs judges what stands in both (judged_origins.rs)
//!                   └── page_report.rs                  what was moved, what not, and why
//! ```
//!
//! No I/O, no clock, no chance: the same input gives the same bytes. Names are not resolved here, and addresses not
//! judged; whoever connects does that.

pub mod anonymous;
pub mod capability;
pub mod config;
pub mod csp;
pub mod css;
pub mod css_urls;
pub mod entities;
pub mod entry;
pub mod guarded;
pub mod host_limits;
pub mod html;
pub mod hygiene;
pub mod integrity;
pub mod kind;
pub mod limits;
pub mod link_header;
pub mod moved_url;
pub mod named_host;
pub mod named_request;
pub mod page_head;
pub mod page_report;
pub mod redirect;
pub mod reference;
pub mod referrer;
pub mod refusal;
pub mod rewritten;
pub mod rules;
pub mod rules_error;
pub mod seen;
pub mod shared_hosts;
pub mod srcset;
pub mod verdict;

mod charset;
mod csp_page;
mod csp_source;
mod form;
mod host;
mod html_element;
mod html_import_map;
mod html_page;
mod html_selectors;
mod import_map;
mod judged_origins;
mod link_rel;
mod made;
mod named_answer;
mod own_url;
mod page_at;
mod path_reading;
mod pinned_sheet;

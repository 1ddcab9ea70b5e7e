//! Pages and the resources of other hosts that are served under the site's own names.

mod alias_storage;
mod aliases;
mod anonymity;
mod dry_run;
mod page_codings;
mod page_report;
mod page_updates;
mod pages;
mod paper_urls;
mod pinned_pages;
mod proxied_limits;
mod proxied_policies;
mod proxied_resources;
mod redirects;
mod site_names;

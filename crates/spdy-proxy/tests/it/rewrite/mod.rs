//! Pages and the resources of other hosts that are served under the site's own names.

mod aliases;
mod anonymity;
mod dry_run;
mod page_report;
mod pages;
mod paper_urls;
mod pinned_pages;
mod proxied_limits;
mod proxied_resources;
mod redirects;
mod site_names;

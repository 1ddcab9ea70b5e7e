//! The rewriting rules on pages, style sheets, requests and responses, without a connection.

mod abuse;
mod aliases;
mod css;
mod html;
mod laws;
mod own_names_over_http;
mod paper_urls;
mod policies;
mod redirects;
mod requests;
mod responses;
mod rules;
mod support;

//! How a browser loads a page.

mod odd_pages;
mod request_order;
mod scheduler;

//! How a browser loads a page.

mod hints;
mod odd_pages;
mod request_order;
mod request_order_laws;
mod scheduler;

//! Page loads of a browser.

mod hints;
mod layout;
mod modules;
mod odd_pages;
mod paint;
mod preconnect;
mod request_order;
mod request_order_laws;
mod scheduler;
mod think_times;

//! Fetching from an origin: in the foreground, in the background, revalidation, range fills.

pub(crate) mod background;
pub mod client_limits;
pub(crate) mod conditions;
pub(crate) mod context;
pub(crate) mod delivery;
pub(crate) mod fetch_state;
pub(crate) mod finished_page;
pub(crate) mod follow_redirect;
pub(crate) mod foreground;
pub(crate) mod negative;
pub(crate) mod origin_exchange;
pub(crate) mod origin_spans;
pub(crate) mod page_observer;
pub(crate) mod process_response;
pub(crate) mod pump;
pub(crate) mod range_fill;
pub(crate) mod revalidate;
pub(crate) mod served_head;
pub(crate) mod storable;

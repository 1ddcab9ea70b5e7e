//! Fetching from an origin: in the foreground, in the background, revalidation, range fills.

pub(crate) mod conditions;
pub(crate) mod follow_redirect;
pub(crate) mod negative;
pub(crate) mod origin_exchange;
pub(crate) mod origin_spans;
pub(crate) mod process_response;
pub(crate) mod pump;
pub(crate) mod range_fill;
pub(crate) mod range_fill_credit;
pub(crate) mod revalidate;

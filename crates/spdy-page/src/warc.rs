//! Any WARC as a replica.
use crate::open::{ImportOptions, OpenError, Opened};
use crate::record::Record;
pub(crate) fn import(
    _records: &[Record],
    _name: &str,
    _options: &ImportOptions,
) -> Result<Opened, OpenError> {
    Err(OpenError::NoPageLoad {
        why: "not written yet".to_owned(),
    })
}

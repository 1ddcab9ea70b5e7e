//! What a user sees of a load, as the browser measured it. `docs/reference/visual-metrics.md` defines the metrics.

use serde::Serialize;

/// Metrics of one load; a browser without them, such as Chromium 49, has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VisualMetrics {
    /// From the start of the load to the first contentful paint, if there was one.
    pub fcp_ms: Option<f64>,
    /// From the start of the load to the largest contentful paint.
    pub lcp_ms: Option<f64>,
    /// The URL of the image that is the largest content; `None` for text.
    pub lcp_url: Option<String>,
    /// Cumulative layout shift.
    pub cls: Option<f64>,
    /// Total blocking time, from the first contentful paint until the page was quiet.
    pub tbt_ms: Option<f64>,
    /// [Speed Index](crate::live::filmstrip::Filmstrip::speed_index_ms), if there are [files](crate::live::browser_load::BrowserLoader::keep_files).
    pub speed_index_ms: Option<f64>,
}

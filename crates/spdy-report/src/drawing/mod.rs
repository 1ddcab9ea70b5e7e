//! Drawings as data: shapes that are put on a page, where a style sheet colours them for light and dark, or on paper.

pub(super) mod figure;
pub(super) mod panel;
pub(super) mod pixels;
pub(super) mod shape_style;

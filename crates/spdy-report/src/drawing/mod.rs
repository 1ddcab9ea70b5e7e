//! Drawings as data. A drawing is put on a page, whose style sheet colours it for light and dark, or on paper.

pub(super) mod figure;
pub(super) mod letters;
pub(super) mod panel;
pub(super) mod paper;
#[cfg(feature = "full")]
pub(super) mod pixels;
pub(super) mod shape_style;

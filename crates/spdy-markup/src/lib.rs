//! What the text of HTML, CSS and scripts names, and how the text is read.
//!
//! | module | subject |
//! | --- | --- |
//! | [`css_urls`] | the URLs of a style sheet: where each one is, and what it is used for |
//! | [`font_faces`] | the fonts of a style sheet, and how text is shown until they have loaded |
//! | [`es_modules`] | the imports of a script, and their URLs by an import map |
//! | [`srcset`] | the URLs of a `srcset` attribute |
//! | [`entities`] | character references in attribute values: decode, encode |
//! | [`charset`] | the encoding of a page or a style sheet, and its bytes as text |
//!
//! The modules do not depend on each other. They find URLs and do not judge them: `spdy-rewrite` decides which URLs the accelerator
//! rewrites, and `spdy-page` decides which URLs a page load requests. No I/O, no clock, no randomness.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod charset;
pub mod css_urls;
pub mod entities;
pub mod es_modules;
pub mod font_faces;
pub mod srcset;

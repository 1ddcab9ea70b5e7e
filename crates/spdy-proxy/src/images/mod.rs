//! Converts PNG and JPEG images to WebP.
//!
//! ```text
//!  png.rs   PNG  ──┐
//!                  ├──▶ Pixels ──▶ webp.rs: WebP, without loss or with it
//!  jpeg.rs  JPEG ──┘
//! ```
//!
//! Images are untrusted. Decoders in Rust read them, within the limits of `limits.rs`. The encoder is libwebp, which is C. It only gets
//! pixels of a checked size.
//!
//! An image is not converted if a browser would show the result at another size, turned, in other colours, or not moving.

pub mod convert;
mod exif;
mod jpeg;
pub mod limits;
mod pixels;
mod png;
mod webp;

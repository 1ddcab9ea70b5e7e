//! Writes a drawing to a file, in the format of the file's extension.

use std::path::{Path, PathBuf};

#[cfg(feature = "lab")]
const EXPECTED_ENDING: &str = "expected a file name that ends in .svg or .png";
#[cfg(not(feature = "lab"))]
const EXPECTED_ENDING: &str =
    "expected a file name that ends in .svg (.png is in builds with the feature lab)";

/// The path of a picture.
///
/// # Errors
///
/// What its name must end in.
pub(crate) fn parse_picture_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("svg") => Ok(path),
        #[cfg(feature = "lab")]
        Some("png") => Ok(path),
        _ => Err(EXPECTED_ENDING.to_owned()),
    }
}

/// The bytes of the drawing `svg` for the file `path`.
pub(crate) fn encode_picture(svg: String, path: &Path) -> Vec<u8> {
    match path.extension() {
        #[cfg(feature = "lab")]
        Some(ending) if ending == "png" => spdy_report::png(&svg),
        _ => svg.into_bytes(),
    }
}

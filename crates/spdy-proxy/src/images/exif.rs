//! Reads the Exif data that browsers obey: the orientation, and the size that replaces that of the pixels.

/// `Orientation`: 1 is upright.
const ORIENTATION: u16 = 0x0112;
/// The offset of the Exif directory.
const EXIF_DIRECTORY: u16 = 0x8769;
const PIXEL_X_DIMENSION: u16 = 0xa002;
const PIXEL_Y_DIMENSION: u16 = 0xa003;

/// Whether an image of `width` times `height` pixels with the Exif data `tiff` is shown the same without it. `false` if the data is malformed.
///
/// A browser shows an image of 200 pixels and 144 dpi in 100 pixels if `PixelXDimension` is 100.
pub(super) fn is_plain(tiff: &[u8], width: u32, height: u32) -> bool {
    read(tiff, width, height).unwrap_or(false)
}

fn read(tiff: &[u8], width: u32, height: u32) -> Option<bool> {
    let data = Tiff {
        bytes: tiff,
        is_little_endian: match tiff.get(..4)? {
            b"II\x2a\0" => true,
            b"MM\0\x2a" => false,
            _ => return None,
        },
    };
    let first = data.u32(4)?;
    let is_upright = matches!(data.value(first, ORIENTATION)?, None | Some(1));
    let is_size = match data.value(first, EXIF_DIRECTORY)? {
        None => true,
        Some(directory) => {
            let is = |tag, pixels| {
                Some(
                    data.value(directory, tag)?
                        .is_none_or(|found| found == pixels),
                )
            };
            is(PIXEL_X_DIMENSION, width)? && is(PIXEL_Y_DIMENSION, height)?
        }
    };
    Some(is_upright && is_size)
}

struct Tiff<'a> {
    bytes: &'a [u8],
    is_little_endian: bool,
}

impl Tiff<'_> {
    fn u16(&self, at: usize) -> Option<u16> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(match self.is_little_endian {
            true => u16::from_le_bytes(bytes),
            false => u16::from_be_bytes(bytes),
        })
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(match self.is_little_endian {
            true => u32::from_le_bytes(bytes),
            false => u32::from_be_bytes(bytes),
        })
    }

    /// The number with `tag` in the directory at byte `directory`: `Some(None)` without one, `None` if it cannot be read.
    fn value(&self, directory: u32, tag: u16) -> Option<Option<u32>> {
        let directory = directory as usize;
        for entry in 0..usize::from(self.u16(directory)?) {
            let at = directory.checked_add(2 + entry * 12)?;
            if self.u16(at)? == tag {
                return match self.u16(at + 2)? {
                    3 => Some(Some(u32::from(self.u16(at + 8)?))),
                    4 => Some(Some(self.u32(at + 8)?)),
                    _ => None,
                };
            }
        }
        Some(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with `entries` of tag, type and value, at the beginning, and a second one.
    fn tiff(entries: &[(u16, u16, u32)], second: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut bytes = b"MM\0\x2a\0\0\0\x08".to_vec();
        for directory in [entries, second] {
            bytes.extend((directory.len() as u16).to_be_bytes());
            for (tag, kind, value) in directory {
                bytes.extend(tag.to_be_bytes());
                bytes.extend(kind.to_be_bytes());
                bytes.extend([0, 0, 0, 1]);
                match kind {
                    3 => bytes.extend([&(*value as u16).to_be_bytes()[..], &[0, 0]].concat()),
                    _ => bytes.extend(value.to_be_bytes()),
                }
            }
            bytes.extend([0; 4]);
        }
        bytes
    }

    #[test]
    fn only_upright_images_of_their_own_size_are_plain() {
        // The second directory begins after the first with one entry: 8 + 2 + 12 + 4.
        let second = (EXIF_DIRECTORY, 4, 26);
        for (entries, exif, expected) in [
            (vec![], vec![], true),
            (vec![(ORIENTATION, 3, 1)], vec![], true),
            (vec![(ORIENTATION, 3, 6)], vec![], false),
            (vec![(ORIENTATION, 2, 1)], vec![], false),
            (vec![second], vec![(PIXEL_X_DIMENSION, 4, 200)], true),
            (vec![second], vec![(PIXEL_X_DIMENSION, 3, 100)], false),
            (vec![second], vec![(PIXEL_Y_DIMENSION, 3, 100)], true),
            (vec![second], vec![(PIXEL_Y_DIMENSION, 4, 50)], false),
            (vec![(EXIF_DIRECTORY, 4, 9999)], vec![], false),
        ] {
            let tiff = tiff(&entries, &exif);
            assert_eq!(is_plain(&tiff, 200, 100), expected, "{entries:?} {exif:?}");
        }
        assert!(!is_plain(b"", 1, 1));
        assert!(is_plain(b"II\x2a\0\x08\0\0\0\0\0", 1, 1));
        assert!(!is_plain(b"II\x2a\0\xff\xff\xff\xff\0\0", 1, 1));
    }
}

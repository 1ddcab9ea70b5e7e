//! The byte order of a capture file: that of the machine that wrote it, by the first bytes.

/// Byte order of a number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum ByteOrder {
    #[default]
    Little,
    Big,
}

impl ByteOrder {
    /// The 32 bits at `at`, if they are complete.
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let four = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => u32::from_be_bytes(four),
            Self::Little => u32::from_le_bytes(four),
        })
    }

    /// The 16 bits at `at`, if they are complete.
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let two = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => u16::from_be_bytes(two),
            Self::Little => u16::from_le_bytes(two),
        })
    }
}

//! Bytes written as hexadecimal digits, two for each, without spaces.

use std::ops::Deref;

use serde::{Deserialize, Deserializer, de};

/// Bytes that a vector spells in hex.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Hex(pub Vec<u8>);

impl Deref for Hex {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        parse(&digits)
            .map(Self)
            .ok_or_else(|| de::Error::custom(format!("invalid hex: {digits}")))
    }
}

/// The bytes that `digits` spell, if they are an even number of hex digits.
#[must_use]
pub fn parse(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = digits
        .chars()
        .map(|c| c.to_digit(16))
        .collect::<Option<_>>()?;
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    Some(
        pairs
            .iter()
            .map(|[high, low]| (high << 4 | low) as u8)
            .collect(),
    )
}

/// `bytes` as hex digits.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{encode, parse};

    #[test]
    fn encoded_hex_decodes_to_itself() {
        assert_eq!(parse("00ff7e"), Some(vec![0x00, 0xff, 0x7e]));
        assert_eq!(encode(&[0x00, 0xff, 0x7e]), "00ff7e");
        assert_eq!(parse("0"), None);
        assert_eq!(parse("0g"), None);
    }
}

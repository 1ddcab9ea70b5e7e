//! The JSON of a NetLog, one event at a time.
//!
//! The parameters of an event depend on its type, and Chromium changes them between versions: every parameter may have any type, and
//! the caller converts it to text or a number.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Identifies a source; those of the browser's other processes are negative.
pub(super) type Id = i64;

/// One parameter of any type.
#[derive(Clone, Debug, Default)]
pub(super) enum LooseValue<'a> {
    /// Absent, or of a type that is not used here.
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Number(f64),
    /// The texts of a list.
    Texts(Vec<Cow<'a, str>>),
    /// An object with a number `id`: another source.
    Source(Id),
}

impl<'a> LooseValue<'a> {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn texts(&self) -> &[Cow<'a, str>] {
        match self {
            Self::Texts(texts) => texts,
            _ => &[],
        }
    }

    /// A number, or a text with a number.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    pub(super) fn source(&self) -> Option<Id> {
        match self {
            Self::Source(id) => Some(*id),
            _ => None,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LooseValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Anything;
        impl<'de> Visitor<'de> for Anything {
            type Value = LooseValue<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_bool<E: de::Error>(self, _: bool) -> Result<LooseValue<'de>, E> {
                Ok(LooseValue::Nothing)
            }

            fn visit_unit<E: de::Error>(self) -> Result<LooseValue<'de>, E> {
                Ok(LooseValue::Nothing)
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<LooseValue<'de>, E> {
                Ok(LooseValue::Number(value as f64))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<LooseValue<'de>, E> {
                Ok(LooseValue::Number(value as f64))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<LooseValue<'de>, E> {
                Ok(LooseValue::Number(value))
            }

            fn visit_borrowed_str<E: de::Error>(
                self,
                value: &'de str,
            ) -> Result<LooseValue<'de>, E> {
                Ok(LooseValue::Text(Cow::Borrowed(value)))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<LooseValue<'de>, E> {
                Ok(LooseValue::Text(Cow::Owned(value.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<LooseValue<'de>, A::Error> {
                let mut texts = Vec::new();
                while let Some(value) = seq.next_element::<LooseValue<'de>>()? {
                    if let LooseValue::Text(text) = value {
                        texts.push(text);
                    }
                }
                Ok(LooseValue::Texts(texts))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LooseValue<'de>, A::Error> {
                let mut found = LooseValue::Nothing;
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    if key != "id" {
                        map.next_value::<IgnoredAny>()?;
                    } else if let LooseValue::Number(id) = map.next_value::<LooseValue<'de>>()? {
                        // Larger numbers than a float's exact range are no ids: the cast saturates.
                        found = LooseValue::Source(id as Id);
                    }
                }
                Ok(found)
            }
        }
        deserializer.deserialize_any(Anything)
    }
}

/// The used parameters of any event.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Params<'a> {
    #[serde(borrow, default)]
    pub(super) byte_count: LooseValue<'a>,
    #[serde(borrow, default)]
    pub(super) bytes: LooseValue<'a>,
    #[serde(borrow, default)]
    pub(super) headers: LooseValue<'a>,
    #[serde(borrow, default)]
    pub(super) line: LooseValue<'a>,
    #[serde(borrow, default)]
    pub(super) method: LooseValue<'a>,
    #[serde(borrow, default)]
    pub(super) net_error: LooseValue<'a>,
    #[serde(borrow, default)]
    pub(super) network_isolation_key: LooseValue<'a>,
    #[serde(borrow, default)]
    pub(super) priority: LooseValue<'a>,
    #[serde(borrow, default)]
    pub(super) remote_address: LooseValue<'a>,
    #[serde(borrow, default)]
    pub(super) request_type: LooseValue<'a>,
    #[serde(borrow, default)]
    pub(super) source_dependency: LooseValue<'a>,
    #[serde(borrow, default)]
    pub(super) stream_id: LooseValue<'a>,
    #[serde(borrow, default)]
    pub(super) url: LooseValue<'a>,
}

/// The source of an event.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Source {
    pub(super) id: Id,
}

/// One line of `events`.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default)]
    pub(super) params: Params<'a>,
    #[serde(default)]
    pub(super) phase: u64,
    #[serde(default)]
    pub(super) source: Source,
    /// Milliseconds.
    #[serde(borrow, default)]
    pub(super) time: LooseValue<'a>,
    #[serde(default, rename = "type")]
    pub(super) kind: u64,
}

/// The names of numbers, and the difference between the log's clock and the calendar.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Constants {
    pub(super) log_event_types: BTreeMap<String, u64>,
    pub(super) log_event_phase: BTreeMap<String, u64>,
    pub(super) net_error: BTreeMap<String, i64>,
    /// Milliseconds from 1970 to the zero of the log's clock.
    pub(super) time_tick_offset: f64,
}

//! Parses the JSON of a NetLog, and passes its events to the [`Log`] one at a time.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::event::Event;
use super::log::Log;

/// Parses `text` into `log`; true if the text is cut off.
///
/// # Errors
///
/// It is no JSON, or an event has another structure than all events.
pub(super) fn parse(text: &[u8], log: &mut Log) -> Result<bool, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    match deserializer.deserialize_map(Top(log)) {
        Ok(()) => Ok(false),
        Err(fault) if fault.is_eof() => Ok(true),
        Err(fault) => Err(fault),
    }
}

struct Top<'l>(&'l mut Log);

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a NetLog")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &key[..] {
                "constants" => self.0.set_constants(map.next_value()?),
                "events" => map.next_value_seed(Events(self.0))?,
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

struct Events<'l>(&'l mut Log);

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(event) = seq.next_element::<Event<'de>>()? {
            self.0.take(&event);
        }
        Ok(())
    }
}

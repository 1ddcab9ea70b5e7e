//! HAR of actual writers: HTTP Archive 1.1 and 1.2, and the fields of Chrome, WebPageTest and sitespeed.io.
//!
//! Numbers may be strings, and missing values -1, null or absent; a value of an unexpected type counts as absent. Only `request.url`
//! is required, later.
//!
//! Every entry needs about a kilobyte of memory, and `{}` is an entry: so [`Shape`] counts pages and entries before any is parsed,
//! and everything else here needs a small multiple of its text.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Number of pages and entries of a HAR. Counting them stores nothing of the text.
#[derive(Debug, Deserialize)]
pub(crate) struct Shape {
    pub(crate) log: LogShape,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LogShape {
    #[serde(default)]
    pub(crate) pages: Count,
    #[serde(default)]
    pub(crate) entries: Count,
}

/// The number of elements of an array; 0 for other values.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count(pub(crate) usize);

#[derive(Debug, Deserialize)]
pub(crate) struct Har {
    pub(crate) log: Log,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Log {
    #[serde(default)]
    pub(crate) version: Text,
    #[serde(default)]
    pub(crate) creator: Creator,
    #[serde(default)]
    pub(crate) pages: Option<Vec<Page>>,
    #[serde(default)]
    #[expect(
        clippy::vec_box,
        reason = "entries are large, and a growing Vec of them would use three times the memory"
    )]
    pub(crate) entries: Vec<Box<Entry>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Creator {
    #[serde(default)]
    pub(crate) name: Text,
    #[serde(default)]
    pub(crate) version: Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page {
    #[serde(default)]
    pub(crate) id: Text,
    #[serde(default)]
    pub(crate) title: Text,
    #[serde(default)]
    pub(crate) started_date_time: Text,
    #[serde(default)]
    pub(crate) page_timings: PageTimings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageTimings {
    #[serde(default)]
    pub(crate) on_content_load: Number,
    #[serde(default)]
    pub(crate) on_load: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    #[serde(default)]
    pub(crate) pageref: Text,
    #[serde(default)]
    pub(crate) started_date_time: Text,
    #[serde(default)]
    pub(crate) request: Request,
    #[serde(default)]
    pub(crate) response: Response,
    #[serde(default)]
    pub(crate) timings: Timings,
    #[serde(default, rename = "serverIPAddress")]
    pub(crate) server_ip_address: Text,
    #[serde(default)]
    pub(crate) connection: Text,
    #[serde(default, rename = "_ip_addr")]
    pub(crate) ip_addr: Text,
    #[serde(default, rename = "_fromCache")]
    pub(crate) from_cache: Text,
    #[serde(default, rename = "_resourceType")]
    pub(crate) resource_type: Text,
    #[serde(default, rename = "_contentType")]
    pub(crate) content_type: Text,
    #[serde(default, rename = "_all_start")]
    pub(crate) all_start: Number,
    #[serde(default, rename = "_objectSize")]
    pub(crate) object_size: Number,
    #[serde(default, rename = "_initiator")]
    pub(crate) initiator: HarInitiator,
    #[serde(default, rename = "_initiator_detail")]
    pub(crate) initiator_detail: Text,
    #[serde(default, rename = "_webSocketMessages")]
    pub(crate) web_socket_messages: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    #[serde(default)]
    pub(crate) method: Text,
    #[serde(default)]
    pub(crate) url: Text,
    #[serde(default)]
    pub(crate) headers: Fields,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Response {
    #[serde(default)]
    pub(crate) status: Number,
    #[serde(default)]
    pub(crate) status_text: Text,
    #[serde(default)]
    pub(crate) http_version: Text,
    #[serde(default)]
    pub(crate) headers: Fields,
    #[serde(default)]
    pub(crate) content: Content,
    #[serde(default, rename = "redirectURL")]
    pub(crate) redirect_url: Text,
    #[serde(default)]
    pub(crate) headers_size: Number,
    #[serde(default)]
    pub(crate) body_size: Number,
    #[serde(default, rename = "_transferSize")]
    pub(crate) transfer_size: Number,
    #[serde(default, rename = "_error")]
    pub(crate) error: Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Content {
    #[serde(default)]
    pub(crate) size: Number,
    #[serde(default)]
    pub(crate) compression: Number,
    #[serde(default)]
    pub(crate) mime_type: Text,
    #[serde(default)]
    pub(crate) text: Text,
    #[serde(default)]
    pub(crate) encoding: Text,
}

/// Fields with a name; others are dropped.
#[derive(Debug, Default)]
pub(crate) struct Fields(pub(crate) Vec<Header>);

/// The URL of a request's initiator: a URL (WebPageTest, sitespeed.io), Chrome's object, or its first call frame with a URL.
#[derive(Debug, Default)]
pub(crate) struct HarInitiator(pub(crate) Option<String>);

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Header {
    #[serde(default)]
    pub(crate) name: Text,
    #[serde(default)]
    pub(crate) value: Text,
}

/// Milliseconds; -1 if a phase did not happen.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Timings {
    #[serde(default)]
    pub(crate) blocked: Number,
    #[serde(default)]
    pub(crate) dns: Number,
    #[serde(default)]
    pub(crate) connect: Number,
    #[serde(default)]
    pub(crate) send: Number,
    #[serde(default)]
    pub(crate) wait: Number,
    #[serde(default)]
    pub(crate) receive: Number,
}

/// A string, or a value that can be converted to one; else empty.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Text(pub(crate) String);

impl Text {
    /// The text, if it is not empty.
    pub(crate) fn some(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.0.as_str())
    }
}

/// A number, or a string with a number; else `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Number(pub(crate) Option<f64>);

impl Number {
    /// The number as a count, if it is one: not negative, and exact as a float.
    pub(crate) fn count(self) -> Option<u64> {
        self.0
            .filter(|number| (0.0..9e15).contains(number))
            .map(|number| number as u64)
    }
}

/// A JSON value of any type. A value of another type is skipped.
trait Lenient<'de>: Default {
    fn of_bool(_: bool) -> Self {
        Self::default()
    }

    fn of_number(_: f64) -> Self {
        Self::default()
    }

    fn of_text(_: &str) -> Self {
        Self::default()
    }

    fn of_seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

fn lenient<'de, T: Lenient<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Any<T>(PhantomData<T>);
    impl<'de, T: Lenient<'de>> Visitor<'de> for Any<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("anything")
        }

        fn visit_bool<E: de::Error>(self, value: bool) -> Result<T, E> {
            Ok(T::of_bool(value))
        }

        fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
            Ok(T::of_number(value as f64))
        }

        fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
            Ok(T::of_number(value as f64))
        }

        fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
            Ok(T::of_number(value))
        }

        fn visit_str<E: de::Error>(self, value: &str) -> Result<T, E> {
            Ok(T::of_text(value))
        }

        fn visit_unit<E: de::Error>(self) -> Result<T, E> {
            Ok(T::default())
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::of_map(map)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<T, A::Error> {
            T::of_seq(seq)
        }
    }
    deserializer.deserialize_any(Any(PhantomData))
}

/// Implements `Deserialize` for lenient types.
macro_rules! deserialize_leniently {
    ($($of:ty),*) => {$(
        impl<'de> Deserialize<'de> for $of {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                lenient(deserializer)
            }
        }
    )*};
}
deserialize_leniently!(Count, Text, Number, HarInitiator, Stack, Frames, Fields);

impl<'de> Lenient<'de> for Count {
    fn of_seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Self, A::Error> {
        let mut count = 0;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Self(count))
    }
}

impl Lenient<'_> for Text {
    fn of_bool(value: bool) -> Self {
        Self(if value {
            "true".to_owned()
        } else {
            String::new()
        })
    }

    fn of_number(value: f64) -> Self {
        // Five characters can represent three hundred digits.
        Self(match value == 0.0 || (1e-6..1e16).contains(&value.abs()) {
            true => value.to_string(),
            false => format!("{value:e}"),
        })
    }

    fn of_text(value: &str) -> Self {
        Self(value.to_owned())
    }
}

impl Lenient<'_> for Number {
    fn of_number(value: f64) -> Self {
        Self(Some(value))
    }

    fn of_text(value: &str) -> Self {
        Self(value.trim().parse().ok())
    }
}

/// `text` as an http or https URL.
fn url_of_web(text: &str) -> Option<String> {
    text.starts_with("http").then(|| text.to_owned())
}

impl<'de> Lenient<'de> for HarInitiator {
    fn of_text(value: &str) -> Self {
        Self(url_of_web(value))
    }

    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let (mut url, mut stack) = (None, Stack::default());
        while let Some(key) = map.next_key::<Text>()? {
            match key.0.as_str() {
                "url" => url = url_of_web(&map.next_value::<Text>()?.0),
                "stack" => stack = map.next_value()?,
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(Self(url.or(stack.0)))
    }
}

/// The first URL in the frames of a call stack, or in those of its parents.
#[derive(Debug, Default)]
struct Stack(Option<String>);

impl<'de> Lenient<'de> for Stack {
    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let (mut frames, mut parent) = (Frames::default(), Self::default());
        while let Some(key) = map.next_key::<Text>()? {
            match key.0.as_str() {
                "callFrames" => frames = map.next_value()?,
                "parent" => parent = map.next_value()?,
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(Self(frames.0.or(parent.0)))
    }
}

/// The first URL of call frames.
#[derive(Debug, Default)]
struct Frames(Option<String>);

impl<'de> Lenient<'de> for Frames {
    fn of_seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Self, A::Error> {
        let mut first = None;
        while let Some(HarInitiator(url)) = seq.next_element()? {
            first = first.or(url);
        }
        Ok(Self(first))
    }
}

impl<'de> Lenient<'de> for Fields {
    fn of_seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Self, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = seq.next_element::<Header>()? {
            if field.name.some().is_some() {
                fields.push(field);
            }
        }
        Ok(Self(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_of_any_json_type_are_parsed() {
        let har: Har = serde_json::from_str(
            r#"{"log":{"version":1.2,"entries":[{"_objectSize":"12","_fromCache":"disk","connection":7,
                "response":{"status":"200","bodySize":null,"headersSize":[1],"content":{"size":-1,"text":{"a":1}}},
                "timings":{"wait":1.5,"unknown":true}}]}}"#,
        )
        .unwrap();
        let entry = &har.log.entries[0];
        assert_eq!(
            (har.log.version.0.as_str(), entry.connection.0.as_str()),
            ("1.2", "7")
        );
        assert_eq!(
            (entry.object_size.count(), entry.response.status.count()),
            (Some(12), Some(200))
        );
        assert_eq!(
            (
                entry.response.content.size.count(),
                entry.response.content.text.some()
            ),
            (None, None)
        );
        assert_eq!(entry.timings.wait.0, Some(1.5));
    }
}

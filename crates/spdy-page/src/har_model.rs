//! HAR as its writers write it: HTTP Archive 1.1 and 1.2, and the fields of Chrome, WebPageTest and sitespeed.io.
//!
//! Numbers come as strings, absent things as -1, null or not at all; what is of no known type
//! counts as absent. Only what makes an entry an entry (`request.url`) is insisted on, later.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

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
    pub(crate) entries: Vec<Entry>,
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
    pub(crate) initiator: Option<serde_json::Value>,
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
    pub(crate) headers: Vec<Header>,
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
    pub(crate) headers: Vec<Header>,
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

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Header {
    #[serde(default)]
    pub(crate) name: Text,
    #[serde(default)]
    pub(crate) value: Text,
}

/// Milliseconds; -1 where a phase did not happen.
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

/// A string, or what can be read as one; else empty.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Text(pub(crate) String);

impl Text {
    /// The text, if there is any.
    pub(crate) fn some(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.0.as_str())
    }
}

/// A number, or a string that is one; else nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Number(pub(crate) Option<f64>);

impl Number {
    /// The number as a count, if it is one: not negative, not beyond what a float counts exactly.
    pub(crate) fn count(self) -> Option<u64> {
        self.0
            .filter(|number| (0.0..9e15).contains(number))
            .map(|number| number as u64)
    }
}

/// What a scalar is; containers are read past.
enum Scalar {
    Nothing,
    Text(String),
    Number(f64),
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar::Text(if value {
                    "true".to_owned()
                } else {
                    String::new()
                }))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar::Number(value as f64))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Scalar, E> {
                Ok(Scalar::Number(value as f64))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Scalar, E> {
                Ok(Scalar::Number(value))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(value.to_owned()))
            }

            fn visit_string<E: de::Error>(self, value: String) -> Result<Scalar, E> {
                Ok(Scalar::Text(value))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Scalar, E> {
                Ok(Scalar::Nothing)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar::Nothing)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar::Nothing)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Scalar::deserialize(deserializer)? {
            Scalar::Nothing => String::new(),
            Scalar::Text(text) => text,
            Scalar::Number(number) => number.to_string(),
        }))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Scalar::deserialize(deserializer)? {
            Scalar::Number(number) => Some(number),
            Scalar::Text(text) => text.trim().parse().ok(),
            Scalar::Nothing => None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_come_as_anything() {
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

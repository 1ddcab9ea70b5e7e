//! A validator for the part of JSON Schema (draft 2020-12) that our own schema uses. It panics at an unknown keyword, so that none
//! is ignored.

use serde_json::{Map, Value};

/// Keywords that do not constrain a value.
const ANNOTATIONS: [&str; 6] = [
    "$schema",
    "$defs",
    "title",
    "description",
    "default",
    "format",
];

/// The first error of `value` by `schema`: its path and the keyword.
pub(crate) fn first_error(schema: &Value, value: &Value) -> Option<String> {
    Checker { root: schema }.first_error(schema, value, "")
}

struct Checker<'a> {
    root: &'a Value,
}

impl Checker<'_> {
    fn first_error(&self, schema: &Value, value: &Value, at: &str) -> Option<String> {
        let keywords = schema.as_object().expect("a schema is an object");
        let check = |(keyword, constraint): (&String, &Value)| {
            let is_valid = match keyword.as_str() {
                keyword if ANNOTATIONS.contains(&keyword) => true,
                "type" => has_type(constraint, value),
                "const" => constraint == value,
                "enum" => list(constraint).contains(value),
                "minimum" => value
                    .as_f64()
                    .is_none_or(|value| Some(value) >= constraint.as_f64()),
                "maximum" => value
                    .as_f64()
                    .is_none_or(|value| Some(value) <= constraint.as_f64()),
                "required" => {
                    let keys = list(constraint).iter().filter_map(Value::as_str);
                    let object = value.as_object();
                    let mut missing =
                        keys.filter(|key| object.is_some_and(|object| !object.contains_key(*key)));
                    missing.next().is_none()
                }
                "anyOf" => list(constraint)
                    .iter()
                    .any(|schema| self.first_error(schema, value, at).is_none()),
                "oneOf" => {
                    let matching = list(constraint)
                        .iter()
                        .filter(|schema| self.first_error(schema, value, at).is_none());
                    matching.count() == 1
                }
                "$ref" => return self.first_error(self.definition(constraint), value, at),
                "items" => {
                    let mut items = value.as_array().into_iter().flatten();
                    return items.find_map(|item| self.first_error(constraint, item, at));
                }
                "properties" => {
                    let mut properties = object(constraint).iter();
                    return properties.find_map(|(key, schema)| {
                        self.first_error(schema, value.get(key)?, &format!("{at}/{key}"))
                    });
                }
                "additionalProperties" => {
                    return self.check_additional(keywords, constraint, value, at);
                }
                unknown => panic!("unsupported schema keyword {unknown}"),
            };
            (!is_valid).then(|| format!("{at}: {keyword}"))
        };
        keywords.iter().find_map(check)
    }

    fn check_additional(
        &self,
        keywords: &Map<String, Value>,
        constraint: &Value,
        value: &Value,
        at: &str,
    ) -> Option<String> {
        let listed = keywords.get("properties").map(object);
        let mut entries = value.as_object()?.iter();
        entries.find_map(|(key, value)| {
            if listed.is_some_and(|listed| listed.contains_key(key)) {
                return None;
            }
            match constraint {
                Value::Bool(true) => None,
                Value::Bool(false) => Some(format!("{at}/{key}: additionalProperties")),
                schema => self.first_error(schema, value, &format!("{at}/{key}")),
            }
        })
    }

    fn definition(&self, reference: &Value) -> &Value {
        let reference = reference.as_str().expect("a reference is text");
        let pointer = reference
            .strip_prefix('#')
            .expect("a reference into the same schema");
        self.root.pointer(pointer).expect("a definition")
    }
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn has_type(expected: &Value, value: &Value) -> bool {
    let is_of = |name: &Value| match name.as_str().expect("the name of a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    };
    match expected {
        Value::Array(names) => names.iter().any(is_of),
        name => is_of(name),
    }
}

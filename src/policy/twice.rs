//! Reads JSON and notices a name that is there twice in one object. Other readers silently take the last one.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::PolicyError;

/// A JSON value, and the first name that stands twice in one of its objects.
pub(super) struct Read {
    pub(super) value: Value,
    /// Its place, with a dot for a part, and the later value.
    twice: Option<(String, Value)>,
}

impl Read {
    /// For what an app ships: nobody can say which of the two values was meant.
    pub(super) fn once(self) -> Result<Value, PolicyError> {
        match self.twice {
            None => Ok(self.value),
            Some((name, value)) => Err(PolicyError::new(name, value, "must not be there twice")),
        }
    }

    fn plain(value: impl Into<Value>) -> Read {
        Read {
            value: value.into(),
            twice: None,
        }
    }
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Read, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Read;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Read, E> {
        Ok(Read::plain(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Read, E> {
        Ok(Read::plain(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Read, E> {
        Ok(Read::plain(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Read, E> {
        Ok(Read::plain(
            Number::from_f64(value).map_or(Value::Null, Value::Number),
        ))
    }

    fn visit_str<E>(self, value: &str) -> Result<Read, E> {
        Ok(Read::plain(value))
    }

    fn visit_unit<E>(self) -> Result<Read, E> {
        Ok(Read::plain(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Read, A::Error> {
        let mut read = Read::plain(Value::Null);
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Read>()? {
            read.twice = read.twice.or(item.twice);
            list.push(item.value);
        }
        read.value = Value::Array(list);
        Ok(read)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Read, A::Error> {
        let mut read = Read::plain(Value::Null);
        let mut object = Map::new();
        while let Some((name, field)) = fields.next_entry::<String, Read>()? {
            let within = field
                .twice
                .map(|(part, value)| (format!("{name}.{part}"), value));
            let again = object
                .contains_key(&name)
                .then(|| (name.clone(), field.value.clone()));
            read.twice = read.twice.or(within).or(again);
            object.insert(name, field.value);
        }
        read.value = Value::Object(object);
        Ok(read)
    }
}

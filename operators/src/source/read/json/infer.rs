//! Columns of a table of JSON from its first rows.

use std::collections::HashMap;
use std::fmt;

use arrow_schema::{DataType, Field, Fields};
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::source::read::columns::first::{FirstLines, Look};

/// Maximum number of inferred columns and members.
pub(crate) const FIELDS_MAX: usize = 4_096;

/// Kind of the values of a column so far.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Null,
    Flag,
    /// Whole numbers, with the least and the greatest value.
    Whole(i64, u64),
    Number,
    Text,
    List(Box<Seen>),
    Object(Members),
    /// Values that have no common type.
    Mixed,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Members {
    fields: Vec<(String, Seen)>,
    places: HashMap<String, usize>,
}

impl Seen {
    /// Adds the values of `other`.
    fn merge(&mut self, other: Self) {
        let seen = std::mem::replace(self, Self::Null);
        *self = match (seen, other) {
            (Self::Null, seen) | (seen, Self::Null) => seen,
            (Self::Whole(least, greatest), Self::Whole(low, high)) => {
                Self::Whole(least.min(low), greatest.max(high))
            }
            (Self::Whole(..) | Self::Number, Self::Whole(..) | Self::Number) => Self::Number,
            (Self::List(mut items), Self::List(others)) => {
                items.merge(*others);
                Self::List(items)
            }
            (Self::Object(mut members), Self::Object(others)) => {
                for (name, value) in others.fields {
                    members.add(name, value);
                }
                Self::Object(members)
            }
            (seen, other) if seen == other => seen,
            (seen, other) if seen.is_scalar() && other.is_scalar() => Self::Text,
            _ => Self::Mixed,
        };
    }

    fn is_scalar(&self) -> bool {
        !matches!(self, Self::List(_) | Self::Object(_) | Self::Mixed)
    }

    /// Number of columns and members.
    fn fields(&self) -> usize {
        match self {
            Self::List(items) => items.fields(),
            Self::Object(members) => {
                members.fields.iter().map(|(_, value)| 1 + value.fields()).sum()
            }
            _ => 0,
        }
    }

    /// The type of a column of these values. The error is the name of the column or member without
    /// a type.
    fn data_type(&self, name: &str) -> Result<DataType, String> {
        Ok(match self {
            Self::Null | Self::Text => DataType::Utf8,
            Self::Flag => DataType::Boolean,
            Self::Whole(_, greatest) if i64::try_from(*greatest).is_ok() => DataType::Int64,
            Self::Whole(0.., _) => DataType::UInt64,
            Self::Whole(..) | Self::Number => DataType::Float64,
            Self::List(items) => DataType::new_list(items.data_type(&format!("{name}[]"))?, true),
            // An empty object does not show any columns.
            Self::Object(members) if members.fields.is_empty() => return Err(name.to_owned()),
            Self::Object(members) => DataType::Struct(members.columns(&format!("{name}."))?),
            Self::Mixed => return Err(name.to_owned()),
        })
    }
}

impl Members {
    fn add(&mut self, name: String, value: Seen) {
        match self.places.get(&name) {
            Some(&place) => self.fields[place].1.merge(value),
            None => {
                self.places.insert(name.clone(), self.fields.len());
                self.fields.push((name, value));
            }
        }
    }

    fn columns(&self, within: &str) -> Result<Fields, String> {
        let field = |(name, value): &(String, Seen)| {
            Ok(Field::new(name, value.data_type(&format!("{within}{name}"))?, true))
        };
        self.fields.iter().map(field).collect()
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Seen;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Seen, E> {
        Ok(Seen::Null)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Seen, E> {
        Ok(Seen::Flag)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Seen, E> {
        Ok(Seen::Whole(0, value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Seen, E> {
        Ok(Seen::Whole(value, 0))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Seen, E> {
        Ok(Seen::Number)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Seen, E> {
        Ok(Seen::Text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Seen, A::Error> {
        let mut seen = Seen::Null;
        while let Some(item) = items.next_element::<Seen>()? {
            seen.merge(item);
        }
        Ok(Seen::List(Box::new(seen)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Seen, A::Error> {
        let mut members = Members::default();
        while let Some(name) = entries.next_key::<String>()? {
            if members.fields.len() > FIELDS_MAX {
                entries.next_value::<IgnoredAny>()?;
            } else {
                members.add(name, entries.next_value()?);
            }
        }
        Ok(Seen::Object(members))
    }
}

impl<'de> Deserialize<'de> for Seen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Values)
    }
}

/// The members of the objects of all lines so far.
pub(crate) struct Objects(Seen);

/// The first rows of a table of JSON.
pub(crate) type FirstRows = FirstLines<Objects>;

impl Default for Objects {
    fn default() -> Self {
        Self(Seen::Null)
    }
}

impl Look for Objects {
    fn add(&mut self, line: &str) {
        let row = serde_json::from_str::<Seen>(line);
        if let Ok(row @ Seen::Object(_)) = row
            && self.0.fields() <= FIELDS_MAX
        {
            self.0.merge(row);
        }
    }
}

impl FirstRows {
    /// The columns of the rows.
    ///
    /// # Errors
    /// A sentence that says why there are none.
    pub(crate) fn columns(&self) -> Result<Fields, String> {
        let Seen::Object(members) = &self.look.0 else {
            let reason =
                if self.has_lines() { "no line is an object of JSON" } else { "it has no lines" };
            return Err(reason.to_owned());
        };
        if self.look.0.fields() > FIELDS_MAX {
            return Err(format!("the first rows have more than {FIELDS_MAX} columns and members"));
        }
        if members.fields.is_empty() {
            return Err("the objects of its first rows are empty".to_owned());
        }
        members.columns("").map_err(|name| {
            format!("in the first rows, `{name}` is an empty object or has values of several kinds")
        })
    }
}

//! Labels of states: what was counted, and the type of the items.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use trommel_engine::operator::OperatorError;

use crate::frequent_items::parameters::operator::FrequentItems;
use crate::shared::state::{Stamp, counted_type, read_bytes};

/// Words before the type of items in a label.
const TYPE: &str = " (items of type ";

/// The label of a state of items of the type `item`, which are counted as `counted`.
pub(crate) fn label_of(label: &str, item: &DataType, counted: &DataType) -> String {
    if item == counted { label.to_owned() } else { format!("{label}{TYPE}{item})") }
}

/// The name and the type of items in a label.
pub(crate) fn parts_of(label: &str) -> (&str, Option<&str>) {
    let typed = label.strip_suffix(')').and_then(|label| label.rsplit_once(TYPE));
    typed.map_or((label, None), |(label, kind)| (label, Some(kind)))
}

/// The type that is written as `text`; `None` if the text cannot be read, such as a type of many
/// columns that did not fit the label.
fn parse_type(text: &str) -> Option<DataType> {
    let parsed = match text.parse().ok()? {
        DataType::Struct(fields) => {
            // The parser does not remove the escapes of names.
            let name = |field: &Field| field.name().replace("\\\"", "\"").replace("\\\\", "\\");
            let field = |field: &Arc<Field>| field.as_ref().clone().with_name(name(field));
            DataType::Struct(fields.iter().map(field).collect())
        }
        other => other,
    };
    // A type that differs from the written type would be refused later, with a message about a type
    // that nobody wrote.
    (parsed.to_string() == text).then_some(parsed)
}

/// The items that a state counts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredItems {
    /// The name of the counted things; may be empty.
    pub label: String,
    /// An input whose items the state counts: the column `item`, or several columns that are one
    /// item.
    pub schema: SchemaRef,
}

impl StoredItems {
    /// Texts without a name of the counted things.
    #[must_use]
    pub fn texts() -> Self {
        let schema = Schema::new(vec![Field::new("item", DataType::Utf8, false)]);
        Self { label: String::new(), schema: Arc::new(schema) }
    }
}

impl FrequentItems {
    /// The items of a state in a file that [`snapshot`](Self::snapshot) wrote. With an empty input
    /// of these columns, a stage can begin with the state and emit its rows.
    ///
    /// # Errors
    /// If the file cannot be read, is not the state of counters, or does not say the type.
    pub fn stored_items(path: &Path) -> Result<StoredItems, OperatorError> {
        let state = read_bytes(path)?;
        let label = Stamp::of(&state)?.label;
        let (name, kind) = parts_of(&label);
        let refuse = || format!("{}: the state does not say the type of its items", path.display());
        let kind = match kind {
            Some(kind) => parse_type(kind).ok_or_else(refuse)?,
            None => counted_type(&state).ok_or_else(refuse)?,
        };
        let schema = match kind {
            DataType::Struct(fields) => Schema::new(fields),
            item => Schema::new(vec![Field::new("item", item, false)]),
        };
        Ok(StoredItems { label: name.to_owned(), schema: Arc::new(schema) })
    }
}

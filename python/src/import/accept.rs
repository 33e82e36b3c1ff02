//! The table of accepted data: Arrow types by the purpose of a column.
//!
//! | a column of | is accepted from | as |
//! |---|---|---|
//! | items | whole numbers | UInt32 up to 32 bits, else UInt64 |
//! | | texts | Utf8 |
//! | weights | whole numbers | UInt64 |
//! | texts, names | texts | Utf8 |
//! | sets | lists of whole numbers or texts | `List<UInt32>`; texts are numbered |
//! | transactions | lists of whole numbers | `List<UInt32>` |
//! | | lists of texts | `List<Utf8>`, or of dictionaries where they come so |
//! | terms | lists of whole numbers or texts | `List<UInt32>` or `List<Utf8>` |
//! | vectors | lists of numbers | `FixedSizeList<Float32>` of the length of the first one |
//! | carried columns | everything | the same |
//!
//! Whole numbers are Int8 to Int64 and UInt8 to UInt64, texts are Utf8, LargeUtf8 and Utf8View,
//! numbers are these, floats and decimals. Each may come as a dictionary or run-end encoded, but
//! for numbers of vectors. Lists are List, LargeList, ListView, LargeListView and FixedSizeList. A
//! column of type Null, and a list of it, has no type: it takes that of the rows after it, or of
//! another source.
//!
//! A row that is null stays one. A null in a list is refused, as is a number that does not fit.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};

use super::fault::Fault;
use super::types::{element, is_text, plain};

/// The purpose of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Items,
    Weights,
    Texts,
    Names,
    Sets,
    Transactions,
    Terms,
    Vectors,
    Carried,
}

impl Kind {
    /// The kind of a form; none for rows as they are.
    pub(super) fn of(form: &str) -> Option<Self> {
        match form {
            "items" => Some(Self::Items),
            "texts" => Some(Self::Texts),
            "sets" => Some(Self::Sets),
            "transactions" => Some(Self::Transactions),
            "terms" => Some(Self::Terms),
            "vectors" => Some(Self::Vectors),
            _ => None,
        }
    }

    /// Whether the rows get ids.
    pub(super) fn has_ids(self) -> bool {
        matches!(self, Self::Sets | Self::Vectors)
    }

    /// Whether the sources of a pipeline need one type.
    pub(super) fn is_shared(self) -> bool {
        matches!(self, Self::Transactions | Self::Terms | Self::Vectors)
    }

    /// The type of a column that has none.
    pub(super) fn usual(self) -> DataType {
        match self {
            Self::Items | Self::Texts | Self::Names => DataType::Utf8,
            Self::Weights => DataType::UInt64,
            Self::Sets | Self::Transactions | Self::Terms => sets(),
            Self::Vectors => vectors(1),
            Self::Carried => DataType::Null,
        }
    }

    /// A row, and what is in its list.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Items => ("item", "item"),
            Self::Weights => ("weight", "weight"),
            Self::Texts => ("text", "text"),
            Self::Names => ("name", "name"),
            Self::Sets => ("set", "token"),
            Self::Transactions => ("transaction", "item"),
            Self::Terms => ("document", "term"),
            Self::Vectors => ("vector", "coordinate"),
            Self::Carried => ("value", "value"),
        }
    }

    /// The types that are accepted, in words.
    fn expected(self) -> &'static str {
        match self {
            Self::Items => "whole numbers of up to 64 bits or texts",
            Self::Weights => "whole numbers of up to 64 bits",
            Self::Texts | Self::Names => "texts",
            Self::Sets | Self::Transactions | Self::Terms => {
                "lists of whole numbers or of texts, one a row"
            }
            Self::Vectors => "lists of numbers, one a row",
            Self::Carried => "any type",
        }
    }
}

/// Sets of numbers.
pub(super) fn sets() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::UInt32, false)))
}

/// Vectors of `size` coordinates.
pub(super) fn vectors(size: i32) -> DataType {
    DataType::new_fixed_size_list(DataType::Float32, size, true)
}

/// The type that `column` settles for all rows of its source; none if it has no type.
///
/// # Errors
/// If the type is not accepted, or the first vector has no coordinates.
pub(super) fn settled(kind: Kind, column: &ArrayRef) -> Result<Option<DataType>, Fault> {
    let found = column.data_type();
    let refused = || {
        let is_flat = is_text(plain(found)) || plain(found).is_integer();
        let (found, expected) = (found.clone(), kind.expected());
        Fault::Type { column: None, found, expected, is_flat: is_flat && kind.is_list() }
    };
    let flat = plain(found);
    if *flat == DataType::Null {
        return Ok((kind == Kind::Sets).then(sets));
    }
    Ok(Some(match kind {
        Kind::Carried => found.clone(),
        Kind::Items | Kind::Texts | Kind::Names if is_text(flat) => DataType::Utf8,
        Kind::Items if flat.is_integer() => match flat.primitive_width() {
            Some(8) => DataType::UInt64,
            _ => DataType::UInt32,
        },
        Kind::Weights if flat.is_integer() => DataType::UInt64,
        Kind::Items | Kind::Texts | Kind::Names | Kind::Weights => return Err(refused()),
        Kind::Sets | Kind::Transactions | Kind::Terms => {
            let element = element(found).ok_or_else(refused)?;
            match plain(element) {
                DataType::Null if kind != Kind::Sets => return Ok(None),
                DataType::Null => sets(),
                value if value.is_integer() => sets(),
                value if is_text(value) && kind == Kind::Sets => sets(),
                value if is_text(value) => DataType::new_list(text_element(kind, element), true),
                _ => return Err(refused()),
            }
        }
        Kind::Vectors => match (element(found).ok_or_else(refused)?, found) {
            (item, _) if !item.is_numeric() && !item.is_null() => return Err(refused()),
            (_, DataType::FixedSizeList(_, size)) => vectors(*size),
            (DataType::Null, _) => return no_coordinates(column),
            _ => return Ok(first_length(column)?.map(vectors)),
        },
    }))
}

/// Texts in lists: as a dictionary where they come so, which is faster.
fn text_element(kind: Kind, element: &DataType) -> DataType {
    match element {
        DataType::Dictionary(..) if kind == Kind::Transactions => {
            DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
        }
        _ => DataType::Utf8,
    }
}

impl Kind {
    fn is_list(self) -> bool {
        matches!(self, Self::Sets | Self::Transactions | Self::Terms)
    }
}

/// The length of the first list that is not null.
fn first_length(column: &ArrayRef) -> Result<Option<i32>, Fault> {
    let Some(row) = (0..column.len()).find(|&row| column.is_valid(row)) else { return Ok(None) };
    let length = match column.data_type() {
        DataType::List(_) => column.as_list::<i32>().value(row).len(),
        DataType::LargeList(_) => column.as_list::<i64>().value(row).len(),
        DataType::ListView(_) => column.as_list_view::<i32>().value(row).len(),
        DataType::LargeListView(_) => column.as_list_view::<i64>().value(row).len(),
        _ => 0,
    };
    match i32::try_from(length) {
        Ok(0) => Err(Fault::NoCoordinates { row: row as u64 }),
        Ok(length) => Ok(Some(length)),
        Err(_) => Err(Fault::TooManyCoordinates { row: row as u64, found: length }),
    }
}

/// Lists of no type: a vector has no coordinates there, or a null alone.
fn no_coordinates(column: &ArrayRef) -> Result<Option<DataType>, Fault> {
    match (0..column.len()).find(|&row| column.is_valid(row)) {
        Some(row) => Err(Fault::NoCoordinates { row: row as u64 }),
        None => Ok(None),
    }
}

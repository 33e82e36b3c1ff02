//! From columns to keys, and back: rows as bytes, by `arrow-row`.
//!
//! Keys of at most 16 bytes become numbers, whose first byte is the highest one. The order of
//! numbers is therefore the order of the bytes, which is the order of the values: ascending, with
//! nulls first, and NaN after all numbers. The keys of one column of texts are the texts
//! themselves.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int32Type, Int64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowNativeTypeOp, BinaryArray, PrimitiveArray, StringArray, new_null_array,
};
use arrow_row::{RowConverter, RowParser, SortField};
use arrow_schema::{ArrowError, DataType};

use super::Groups;

/// Keys of the rows of a batch.
#[derive(Debug)]
pub(crate) enum BatchKeys {
    /// The empty keys of a number of rows.
    One(usize),
    Narrow(Vec<u64>),
    Wide(Vec<u128>),
    Bytes(BinaryArray),
}

impl BatchKeys {
    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::One(rows) => *rows,
            Self::Narrow(keys) => keys.len(),
            Self::Wide(keys) => keys.len(),
            Self::Bytes(keys) => keys.len(),
        }
    }
}

/// Makes keys of columns of given types.
#[derive(Debug)]
pub(crate) struct Encoder {
    converter: RowConverter,
    parser: RowParser,
    types: Vec<DataType>,
    /// Bytes of a key, if all keys have as many.
    width: Option<usize>,
    /// Whether keys are the texts of one column.
    is_text: bool,
}

/// The key of a text that is null, which is no text.
pub(super) const NULL_TEXT: &[u8] = b"\xff";

impl Encoder {
    /// An encoder for columns of these types.
    ///
    /// # Errors
    /// If values of a type have no order.
    pub(crate) fn new(types: &[DataType]) -> Result<Self, ArrowError> {
        let fields = types.iter().map(|kind| SortField::new(kind.clone())).collect();
        let converter = RowConverter::new(fields)?;
        let width = match types {
            [] => Some(0),
            types if types.iter().all(has_fixed_width) => {
                let nulls: Vec<ArrayRef> =
                    types.iter().map(|kind| new_null_array(kind, 1)).collect();
                Some(converter.convert_columns(&nulls)?.row_len(0))
            }
            _ => None,
        };
        let parser = converter.parser();
        let is_text = *types == [DataType::Utf8];
        Ok(Self { converter, parser, types: types.to_vec(), width, is_text })
    }

    /// Bytes of a key, if all keys have as many.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// The keys of `rows` rows of columns of the types.
    pub(crate) fn encode(
        &self,
        columns: &[ArrayRef],
        rows: usize,
    ) -> Result<BatchKeys, ArrowError> {
        if self.types.is_empty() {
            return Ok(BatchKeys::One(rows));
        }
        if let [column] = columns
            && let Some(keys) = integer_keys(column)
        {
            return Ok(keys);
        }
        if self.is_text {
            return Ok(BatchKeys::Bytes(text_keys(columns[0].as_string())));
        }
        let encoded = self.encode_bytes(columns)?;
        Ok(match self.width {
            Some(width @ 1..=8) => BatchKeys::Narrow(words(&encoded, width, u64::from_be_bytes)),
            Some(width @ 9..=16) => BatchKeys::Wide(words(&encoded, width, u128::from_be_bytes)),
            _ => BatchKeys::Bytes(encoded),
        })
    }

    /// The keys of the rows of columns of the types, as bytes.
    pub(crate) fn encode_bytes(&self, columns: &[ArrayRef]) -> Result<BinaryArray, ArrowError> {
        self.converter.convert_columns(columns)?.try_into_binary()
    }

    /// The columns of the keys of `groups`.
    pub(crate) fn decode(
        &self,
        groups: &Groups,
        chosen: &[u32],
    ) -> Result<Vec<ArrayRef>, ArrowError> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(chosen.len()));
        groups.visit(chosen, |key| {
            bytes.extend_from_slice(&key[..self.width.unwrap_or(key.len())]);
            ends.push(bytes.len());
        });
        if self.is_text {
            let mut texts = StringBuilder::with_capacity(chosen.len(), bytes.len());
            let mut begin = 0;
            for end in ends {
                let key = &bytes[std::mem::replace(&mut begin, end)..end];
                // Only the key of null is no text.
                texts.append_option(str::from_utf8(key).ok());
            }
            return Ok(vec![Arc::new(texts.finish())]);
        }
        let begins = std::iter::once(0).chain(ends.iter().copied());
        self.decode_bytes(begins.zip(&ends).map(|(begin, &end)| &bytes[begin..end]))
    }

    /// The columns of keys.
    pub(crate) fn decode_bytes<'a>(
        &'a self,
        keys: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Vec<ArrayRef>, ArrowError> {
        self.converter.convert_rows(keys.map(|key| self.parser.parse(key)))
    }
}

fn has_fixed_width(kind: &DataType) -> bool {
    kind.primitive_width().is_some()
        || matches!(kind, DataType::Boolean | DataType::FixedSizeBinary(_))
}

/// The keys of a column of 32-bit or 64-bit integers, which are those of `arrow-row`: a byte that
/// is 0 for a null and 1 for a value, and the value with the sign bit inverted.
fn integer_keys(column: &ArrayRef) -> Option<BatchKeys> {
    match column.data_type() {
        DataType::Int32 => {
            let key = |value: i32| (1 << 32 | u64::from((value ^ i32::MIN).cast_unsigned())) << 24;
            Some(BatchKeys::Narrow(keys_of(column.as_primitive::<Int32Type>(), key)))
        }
        DataType::Int64 => {
            let key = |value: i64| (1 << 64 | u128::from((value ^ i64::MIN).cast_unsigned())) << 56;
            Some(BatchKeys::Wide(keys_of(column.as_primitive::<Int64Type>(), key)))
        }
        _ => None,
    }
}

/// The texts as keys.
fn text_keys(texts: &StringArray) -> BinaryArray {
    match texts.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => BinaryArray::new(texts.offsets().clone(), texts.values().clone(), None),
        Some(_) => {
            let keys = texts.iter().map(|text| text.map_or(NULL_TEXT, str::as_bytes));
            BinaryArray::from_iter_values(keys)
        }
    }
}

fn keys_of<T: ArrowPrimitiveType, K: Default>(
    column: &PrimitiveArray<T>,
    key: impl Fn(T::Native) -> K,
) -> Vec<K> {
    match column.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => column.values().iter().map(|&value| key(value)).collect(),
        Some(_) => column.iter().map(|value| value.map_or_else(K::default, &key)).collect(),
    }
}

/// Keys of `width` bytes as numbers of N bytes, with zeros at their end.
fn words<W, const N: usize>(
    encoded: &BinaryArray,
    width: usize,
    read: impl Fn([u8; N]) -> W,
) -> Vec<W> {
    let begin = encoded.value_offsets()[0].unsigned_abs() as usize;
    let bytes = &encoded.value_data()[begin..];
    let rows = encoded.len();
    let mut words = Vec::with_capacity(rows);
    let mut mask = [0; N];
    mask[..width].fill(u8::MAX);
    for row in 0..rows {
        let begin = row * width;
        // A whole word is read wherever one begins, without a loop over the bytes of a key.
        let mut word = match bytes.get(begin..begin + N) {
            Some(word) => word.try_into().expect("it has N bytes"),
            None => {
                let mut last = [0; N];
                last[..width].copy_from_slice(&bytes[begin..begin + width]);
                last
            }
        };
        word.iter_mut().zip(&mask).for_each(|(byte, mask)| *byte &= mask);
        words.push(read(word));
    }
    words
}

/// The type of a column of values of this type: texts and numbers themselves, where the column has
/// numbers of them.
pub(crate) fn plain(kind: &DataType) -> DataType {
    match kind {
        DataType::Dictionary(_, values) => plain(values),
        DataType::RunEndEncoded(_, values) => plain(values.data_type()),
        other => other.clone(),
    }
}

/// The column with one form of NaN and of zero, in which equal numbers are equal bytes.
pub(crate) fn canonical(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float16 => canonical_floats::<Float16Type>(column),
        DataType::Float32 => canonical_floats::<Float32Type>(column),
        DataType::Float64 => canonical_floats::<Float64Type>(column),
        _ => Arc::clone(column),
    }
}

fn canonical_floats<T: ArrowPrimitiveType>(column: &ArrayRef) -> ArrayRef
where
    T::Native: ArrowNativeTypeOp + PartialEq,
{
    let zero = T::Native::ZERO;
    // Only NaN differs from itself, and -0 and 0 are equal, though not as bytes.
    let nan = zero.div_wrapping(zero);
    let nan = if nan.is_lt(zero) { nan.neg_wrapping() } else { nan };
    let form = |value: T::Native| match value {
        #[expect(clippy::eq_op, reason = "NaN differs from itself")]
        value if value != value => nan,
        value if value == zero => zero,
        value => value,
    };
    let column = column.as_primitive::<T>();
    Arc::new(column.unary::<_, T>(form))
}

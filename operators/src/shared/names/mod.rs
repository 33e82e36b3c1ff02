//! The items of a column, integers or texts, each with its own number.

pub(crate) mod block;
pub(crate) mod long;
mod numbers;
pub(crate) mod secret;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int64Array, StringArray, UInt32Array, UInt64Array,
};
use arrow_cast::cast;
use arrow_schema::DataType;
use serde_json::Value;

use self::numbers::{Integer, ItemNumbers};
use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::items::{Text, from_native, native_type, to_native};
use crate::shared::state::{Reader, RestoreError, Writer, stored_type};
use crate::shared::texts::{TextHash, TextTable};

/// Maximum bytes of a text that is kept whole. A name of this length stands for a longer text.
const TEXT_BYTES_MAX: usize = 1024;

/// Purpose of the memory, in the words of messages.
const ITEMS: &str = "the items";

/// The number of an unknown item.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// Numbers the items of a column from 0 on, in the order of their first occurrence.
#[derive(Clone)]
pub(crate) struct ItemNames {
    /// Type of the items in results.
    kind: DataType,
    known: Known,
}

/// Items in the types in which items are counted, see [`native_type`].
#[derive(Clone)]
enum Known {
    Narrow(ItemNumbers<u32>),
    Wide(ItemNumbers<u64>),
    Texts { table: TextTable, hash: TextHash },
}

impl ItemNames {
    /// Names of items of the type `kind`, the type of the items in results; `None` if items of the
    /// type have no names, because they are neither integers nor texts.
    pub(crate) fn new(kind: &DataType) -> Option<Self> {
        if !kind.is_integer() && *kind != DataType::Utf8 {
            return None;
        }
        let known = match native_type(kind)? {
            DataType::UInt32 => Known::Narrow(ItemNumbers::default()),
            DataType::UInt64 => Known::Wide(ItemNumbers::default()),
            _ => Known::Texts { table: TextTable::default(), hash: TextHash::new() },
        };
        Some(Self { kind: kind.clone(), known })
    }

    /// Type of the items in results.
    pub(crate) fn item_type(&self) -> &DataType {
        &self.kind
    }

    /// Fills `numbers` with the numbers of the items `values`, whose type is the counted type. All
    /// other memory in use has been taken from `budget`.
    ///
    /// # Errors
    /// If the items do not fit into the budget. Some items may be known then, and `numbers` may
    /// have some numbers.
    ///
    /// # Panics
    /// If the values have another type.
    pub(crate) fn number(
        &mut self,
        values: &ArrayRef,
        numbers: &mut Vec<u32>,
        mut budget: Budget,
    ) -> Result<(), BudgetFull> {
        numbers.clear();
        budget.take("the numbers of the items", values.len() * size_of::<u32>())?;
        numbers.reserve_exact(values.len());
        match &mut self.known {
            Known::Narrow(known) => {
                number_all(known, values.as_primitive::<UInt32Type>().values(), numbers, budget)
            }
            Known::Wide(known) => {
                number_all(known, values.as_primitive::<UInt64Type>().values(), numbers, budget)
            }
            Known::Texts { table, hash } => match values.as_string_opt::<i32>() {
                Some(texts) => {
                    for row in 0..texts.len() {
                        numbers.push(number_text(table, hash, texts, row, &mut budget)?);
                    }
                    Ok(())
                }
                None => {
                    let keys = values.as_dictionary();
                    budget.take("the keys of the items", keys_bytes(keys))?;
                    number_keys(keys, numbers, |texts, row| {
                        number_text(table, hash, texts, row, &mut budget)
                    })
                }
            },
        }
    }

    /// Fills `numbers` with the numbers of the items `values`, without adding items: [`UNKNOWN`]
    /// for unknown items.
    ///
    /// # Panics
    /// If the values have another type.
    pub(crate) fn find(&self, values: &ArrayRef, numbers: &mut Vec<u32>) {
        numbers.clear();
        match &self.known {
            Known::Narrow(known) => {
                find_all(known, values.as_primitive::<UInt32Type>().values(), numbers);
            }
            Known::Wide(known) => {
                find_all(known, values.as_primitive::<UInt64Type>().values(), numbers);
            }
            Known::Texts { table, hash } => {
                let find = |texts: &StringArray, row| find_text(table, hash, text_at(texts, row));
                match values.as_string_opt::<i32>() {
                    Some(texts) => numbers.extend((0..texts.len()).map(|row| find(texts, row))),
                    None => {
                        let find = |texts: &StringArray, row| Ok(find(texts, row));
                        let Ok(()) =
                            number_keys::<Infallible>(values.as_dictionary(), numbers, find);
                    }
                }
            }
        }
    }

    /// The number of the item that a query names: [`UNKNOWN`] for an unknown item, `None` for an
    /// item of another type.
    pub(crate) fn find_json(&self, item: &Value) -> Option<u32> {
        let number = match &self.known {
            Known::Narrow(known) => known.find(u32::try_from(self.bits_of(item)?).ok()?),
            Known::Wide(known) => known.find(self.bits_of(item)?),
            Known::Texts { table, hash } => return Some(find_text(table, hash, item.as_str()?)),
        };
        Some(number.unwrap_or(UNKNOWN))
    }

    /// The bits by which an integer of this type is counted.
    fn bits_of(&self, item: &Value) -> Option<u64> {
        let one = match (item.as_u64(), item.as_i64()) {
            (Some(item), _) => Arc::new(UInt64Array::from(vec![item])) as ArrayRef,
            (None, item) => Arc::new(Int64Array::from(vec![item?])),
        };
        // The cast makes null of a number that the type does not have.
        let one = cast(&one, &self.kind).ok().filter(|one| one.is_valid(0))?;
        let bits = cast(&to_native(&one).ok()?, &DataType::UInt64).ok()?;
        Some(bits.as_primitive::<UInt64Type>().value(0))
    }

    /// The items with these numbers.
    pub(crate) fn column(&self, numbers: &[u32]) -> ArrayRef {
        let native: ArrayRef = match &self.known {
            Known::Narrow(known) => {
                Arc::new(UInt32Array::from_iter_values(known.items_of(numbers)))
            }
            Known::Wide(known) => Arc::new(UInt64Array::from_iter_values(known.items_of(numbers))),
            Known::Texts { table, .. } => Arc::new(table.column(numbers.iter().copied())),
        };
        from_native(native, &self.kind)
    }

    /// Bytes of the [column](Self::column) of the items with these numbers.
    pub(crate) fn column_bytes(&self, numbers: &[u32]) -> usize {
        match &self.known {
            Known::Narrow(_) => size_of_val(numbers),
            Known::Wide(_) => numbers.len() * size_of::<u64>(),
            Known::Texts { table, .. } => {
                let texts: usize = numbers.iter().map(|&text| table.bytes_of(text).len()).sum();
                texts + (numbers.len() + 1) * size_of::<i32>()
            }
        }
    }

    /// Writes all items in the order of their numbers.
    pub(crate) fn write(&self, to: &mut Writer) {
        to.len(self.len());
        match &self.known {
            Known::Narrow(known) => known.items().iter().for_each(|item| to.item(item)),
            Known::Wide(known) => known.items().iter().for_each(|item| to.item(item)),
            Known::Texts { table, .. } => {
                let texts = (0..).map(|number| table.get(number)).take(table.len());
                texts.for_each(|text| to.item(&Text::from(text)));
            }
        }
    }

    /// Reads items, which get the same numbers again. No items are known before.
    pub(crate) fn read(&mut self, from: &mut Reader<'_>) -> Result<(), RestoreError> {
        let len = from.len("the number of items", u32::MAX as usize, size_of::<u32>())?;
        let mut unlimited = Budget::new(usize::MAX);
        for next in 0..len {
            let number = match &mut self.known {
                Known::Narrow(known) => {
                    known.number(from.item()?, &mut unlimited).expect("all items fit")
                }
                Known::Wide(known) => {
                    known.number(from.item()?, &mut unlimited).expect("all items fit")
                }
                Known::Texts { table, hash } => {
                    let text: Text = from.item()?;
                    if text.len() > TEXT_BYTES_MAX {
                        let most = format!("at most {TEXT_BYTES_MAX} bytes");
                        return Err(from.refuse("an item", format!("{} bytes", text.len()), most));
                    }
                    table.number(&text, hash)
                }
            };
            if number as usize != next {
                return Err(from.refuse("an item", "there twice", "once"));
            }
        }
        Ok(())
    }

    /// Number of the type of items in a snapshot.
    pub(crate) fn stored_type(&self) -> u8 {
        stored_type(&self.kind).expect("types with names have a number")
    }

    /// Sorts numbers by their items: numbers ascending, texts by their bytes.
    pub(crate) fn sort(&self, numbers: &mut [u32]) {
        match &self.known {
            Known::Narrow(known) => {
                let sign = if self.kind.is_signed_integer() { 1 << 31 } else { 0 };
                numbers.sort_unstable_by_key(|&number| known.items()[number as usize] ^ sign);
            }
            Known::Wide(known) => {
                let sign = if self.kind.is_signed_integer() { 1 << 63 } else { 0 };
                numbers.sort_unstable_by_key(|&number| known.items()[number as usize] ^ sign);
            }
            Known::Texts { table, .. } => {
                numbers.sort_unstable_by_key(|&number| table.bytes_of(number));
            }
        }
    }

    /// Forgets the items that are not `used`, by number. The used items get new numbers in the
    /// order of their old numbers. Returns the new number of each used item, by its old number.
    pub(crate) fn retain(&mut self, used: &[bool]) -> Vec<u32> {
        match &mut self.known {
            Known::Narrow(known) => *known = known.retained(used),
            Known::Wide(known) => *known = known.retained(used),
            Known::Texts { table, hash } => {
                let mut retained = TextTable::default();
                for (number, _) in (0..).zip(used).filter(|(_, used)| **used) {
                    retained.number(table.get(number), hash);
                }
                *table = retained;
            }
        }
        let mut next = 0;
        let renumbered = used.iter().map(|&is_used| {
            let number = next;
            next += u32::from(is_used);
            number
        });
        renumbered.collect()
    }

    /// Number of known items.
    pub(crate) fn len(&self) -> usize {
        match &self.known {
            Known::Narrow(known) => known.items().len(),
            Known::Wide(known) => known.items().len(),
            Known::Texts { table, .. } => table.len(),
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        match &self.known {
            Known::Narrow(known) => known.bytes(),
            Known::Wide(known) => known.bytes(),
            Known::Texts { table, .. } => table.bytes(),
        }
    }
}

impl fmt::Debug for ItemNames {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("ItemNames");
        shown.field("kind", &self.kind).field("items", &self.len()).finish_non_exhaustive()
    }
}

/// Appends the numbers of `items`.
fn number_all<I: Integer>(
    known: &mut ItemNumbers<I>,
    items: &[I],
    numbers: &mut Vec<u32>,
    mut budget: Budget,
) -> Result<(), BudgetFull> {
    for &item in items {
        numbers.push(known.number(item, &mut budget)?);
    }
    Ok(())
}

/// Appends the numbers of `items`, with [`UNKNOWN`] for unknown items.
fn find_all<I: Integer>(known: &ItemNumbers<I>, items: &[I], numbers: &mut Vec<u32>) {
    numbers.extend(items.iter().map(|&item| known.find(item).unwrap_or(UNKNOWN)));
}

/// The text of a row; for a null, any text.
fn text_at(texts: &StringArray, row: usize) -> &str {
    if texts.is_null(row) { "" } else { texts.value(row) }
}

fn find_text(table: &TextTable, hash: &TextHash, text: &str) -> u32 {
    let find = |text: &str| table.find(&hash.key(text), text).unwrap_or(UNKNOWN);
    if text.len() > TEXT_BYTES_MAX { find(&long::name(text, TEXT_BYTES_MAX)) } else { find(text) }
}

/// The number of a text; for a null, any number.
fn number_text(
    table: &mut TextTable,
    hash: &TextHash,
    texts: &StringArray,
    row: usize,
    budget: &mut Budget,
) -> Result<u32, BudgetFull> {
    let text = text_at(texts, row);
    let name;
    let text = if text.len() > TEXT_BYTES_MAX {
        name = long::name(text, TEXT_BYTES_MAX);
        &*name
    } else {
        text
    };
    let key = hash.key(text);
    if let Some(number) = table.find(&key, text) {
        return Ok(number);
    }
    budget.reserve(ITEMS, table.bytes_while_added(text.len()))?;
    Ok(table.add(&key, text, hash))
}

/// Bytes of the table of the numbers of the dictionary's texts, by key.
fn keys_bytes(dictionary: &DictionaryArray<UInt32Type>) -> usize {
    dictionary.values().len() * size_of::<Option<u32>>()
}

/// Appends the numbers of the texts of the keys. `number` looks up each text that occurs once.
fn number_keys<E>(
    dictionary: &DictionaryArray<UInt32Type>,
    numbers: &mut Vec<u32>,
    mut number: impl FnMut(&StringArray, usize) -> Result<u32, E>,
) -> Result<(), E> {
    let texts = dictionary.values().as_string::<i32>();
    let mut of_texts = vec![None; texts.len()];
    for &key in dictionary.keys().values() {
        // The key of a null may lie outside of the dictionary.
        numbers.push(match of_texts.get_mut(key as usize) {
            None => 0,
            Some(Some(known)) => *known,
            Some(known) => *known.insert(number(texts, key as usize)?),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::shared::items::result_type;

    /// Integers of each width and sign have names, keep their values, and are sorted by value.
    #[test]
    fn integers_of_each_type_keep_their_values_and_their_order() {
        let values = [5_i64, -3, 0, 127, -128, 5];
        let types = [
            (DataType::Int8, vec![-128, -3, 0, 5, 127]),
            (DataType::Int16, vec![-128, -3, 0, 5, 127]),
            (DataType::Int32, vec![-128, -3, 0, 5, 127]),
            (DataType::Int64, vec![-128, -3, 0, 5, 127]),
            (DataType::UInt8, vec![0, 5, 127]),
            (DataType::UInt16, vec![0, 5, 127]),
            (DataType::UInt32, vec![0, 5, 127]),
            (DataType::UInt64, vec![0, 5, 127]),
        ];
        for (kind, sorted) in types {
            let values = values.iter().copied().filter(|value| sorted.contains(value));
            let items: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
            let items = to_native(&cast(&items, &kind).unwrap()).unwrap();
            let (mut names, mut numbers) = (ItemNames::new(&kind).unwrap(), Vec::new());
            names.number(&items, &mut numbers, Budget::new(1 << 20)).unwrap();
            assert_eq!(names.len(), sorted.len(), "{kind}");
            numbers.sort_unstable();
            numbers.dedup();
            names.sort(&mut numbers);
            let expected: ArrayRef = Arc::new(Int64Array::from(sorted.clone()));
            let expected = cast(&expected, &kind).unwrap();
            assert_eq!(&names.column(&numbers), &expected, "{kind}");
            let found = sorted.iter().map(|item| names.find_json(&json!(item)));
            assert!(found.eq(numbers.iter().map(|&number| Some(number))), "{kind}");
            assert_eq!(names.find_json(&json!(1)), Some(UNKNOWN), "{kind}");
            assert_eq!(names.find_json(&json!("5")), None, "{kind}");
            let signed = kind.is_signed_integer();
            assert_eq!(names.find_json(&json!(-1)).is_some(), signed, "{kind}");
        }
    }

    /// Texts whose key holds the text and longer texts, as plain texts and as texts of a
    /// dictionary.
    #[test]
    fn items_are_asked_for_before_they_are_kept() {
        let texts = (0..50_000).map(|number| format!("{number:0width$}", width = number % 90));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        let keys = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8));
        let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..50_000));
        for items in [numbers, cast(&texts, &keys).unwrap(), texts] {
            let numbered = |bytes| {
                let kind = result_type(items.data_type());
                let mut names = ItemNames::new(&kind).unwrap();
                let (mut numbers, mut budget) = (Vec::new(), Budget::new(bytes + 1_000));
                budget.take("something else", 1_000).unwrap();
                let outcome = names.number(&items, &mut numbers, budget);
                (outcome, names.bytes() + numbers.capacity() * size_of::<u32>())
            };
            let (outcome, needed) = numbered(usize::MAX - 1_000);
            outcome.unwrap();
            for bytes in [needed / 10, needed / 3, needed - 1] {
                let (outcome, taken) = numbered(bytes);
                let error = outcome.unwrap_err().to_string();
                assert!(error.contains("not enough memory for the "), "{error}");
                assert!(taken <= bytes, "{taken} of {bytes} bytes");
            }
            // While a vector grows, the old and the new vector exist for a moment.
            numbered(4 * needed).0.unwrap();
        }
    }
}

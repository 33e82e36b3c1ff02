//! The items of a column: numbers or texts, each with a number of its own.

mod numbers;

use std::convert::Infallible;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, StringArray, UInt32Array};
use arrow_schema::DataType;
use serde_json::Value;

use self::numbers::ItemNumbers;
use crate::budget::{Budget, BudgetFull};
use crate::items::{StoredItem, Text};
use crate::long;
use crate::state::{Reader, RestoreError, Writer};
use crate::texts::{TextHash, TextTable};

/// A longer text is kept by a name of this length.
const TEXT_BYTES_MAX: usize = 1024;

/// Purpose of the memory, as messages say it.
const ITEMS: &str = "the items";

/// The number of an item that is not known.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// Numbers the items of a column from 0 on, in the order of their first occurrence.
pub(crate) enum ItemNames {
    Numbers(ItemNumbers),
    Texts { table: TextTable, hash: TextHash },
}

impl ItemNames {
    /// Names of the items of a column of lists of type `item`; `None` if items have another type.
    pub(crate) fn new(item: &DataType) -> Option<Self> {
        match item {
            DataType::UInt32 => Some(Self::Numbers(ItemNumbers::default())),
            DataType::Utf8 => Some(Self::texts()),
            DataType::Dictionary(key, value)
                if **key == DataType::UInt32 && **value == DataType::Utf8 =>
            {
                Some(Self::texts())
            }
            _ => None,
        }
    }

    fn texts() -> Self {
        Self::Texts { table: TextTable::default(), hash: TextHash::new() }
    }

    /// Type of the items.
    pub(crate) fn item_type(&self) -> DataType {
        match self {
            Self::Numbers(_) => DataType::UInt32,
            Self::Texts { .. } => DataType::Utf8,
        }
    }

    /// The numbers of the items `values`; nulls have any number. Of `budget`, all that is in memory
    /// besides has been taken.
    ///
    /// # Errors
    /// If the items do not fit. Then some of them are known, and `numbers` has some numbers.
    ///
    /// # Panics
    /// If the values are of another type than the column.
    pub(crate) fn number(
        &mut self,
        values: &ArrayRef,
        numbers: &mut Vec<u32>,
        mut budget: Budget,
    ) -> Result<(), BudgetFull> {
        numbers.clear();
        budget.take("the numbers of the items", values.len() * size_of::<u32>())?;
        numbers.reserve_exact(values.len());
        match self {
            Self::Numbers(known) => {
                for &item in values.as_primitive::<UInt32Type>().values() {
                    numbers.push(known.number(item, &mut budget)?);
                }
            }
            Self::Texts { table, hash } => match values.as_string_opt::<i32>() {
                Some(texts) => {
                    for row in 0..texts.len() {
                        numbers.push(number_text(table, hash, texts, row, &mut budget)?);
                    }
                }
                None => {
                    let keys = values.as_dictionary();
                    budget.take("the keys of the items", keys_bytes(keys))?;
                    number_keys(keys, numbers, |texts, row| {
                        number_text(table, hash, texts, row, &mut budget)
                    })?;
                }
            },
        }
        Ok(())
    }

    /// The numbers of the items `values`, of which none is added: [`UNKNOWN`] for items that are
    /// not known. Nulls have any number.
    ///
    /// # Panics
    /// If the values are of another type than the column.
    pub(crate) fn find(&self, values: &ArrayRef, numbers: &mut Vec<u32>) {
        numbers.clear();
        match self {
            Self::Numbers(known) => {
                let items = values.as_primitive::<UInt32Type>().values();
                numbers.extend(items.iter().map(|&item| known.find(item).unwrap_or(UNKNOWN)));
            }
            Self::Texts { table, hash } => {
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

    /// The number of the item that a query names; `None` if it is of another type.
    pub(crate) fn find_json(&self, item: &Value) -> Option<u32> {
        match self {
            Self::Numbers(known) => {
                let item = u32::try_from(item.as_u64()?).ok()?;
                Some(known.find(item).unwrap_or(UNKNOWN))
            }
            Self::Texts { table, hash } => Some(find_text(table, hash, item.as_str()?)),
        }
    }

    /// The items with these numbers.
    pub(crate) fn column(&self, numbers: &[u32]) -> ArrayRef {
        match self {
            Self::Numbers(known) => {
                let items = numbers.iter().map(|&number| known.items()[number as usize]);
                Arc::new(UInt32Array::from_iter_values(items))
            }
            Self::Texts { table, .. } => Arc::new(table.column(numbers.iter().copied())),
        }
    }

    /// Writes all items by number.
    pub(crate) fn write(&self, to: &mut Writer) {
        to.len(self.len());
        match self {
            Self::Numbers(known) => known.items().iter().for_each(|item| to.item(item)),
            Self::Texts { table, .. } => {
                let texts = (0..).map(|number| table.get(number)).take(table.len());
                texts.for_each(|text| to.item(&Text::from(text)));
            }
        }
    }

    /// Reads items, which get their numbers again; there are none yet.
    pub(crate) fn read(&mut self, from: &mut Reader<'_>) -> Result<(), RestoreError> {
        let len = from.len("the number of items", u32::MAX as usize, size_of::<u32>())?;
        let mut unlimited = Budget::new(usize::MAX);
        for next in 0..len {
            let number = match self {
                Self::Numbers(known) => {
                    known.number(from.item()?, &mut unlimited).expect("all items fit")
                }
                Self::Texts { table, hash } => {
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
        match self {
            Self::Numbers(_) => u32::NUMBER,
            Self::Texts { .. } => Text::NUMBER,
        }
    }

    /// Sorts numbers by their items: numbers ascending, texts by their bytes.
    pub(crate) fn sort(&self, numbers: &mut [u32]) {
        match self {
            Self::Numbers(known) => {
                numbers.sort_unstable_by_key(|&number| known.items()[number as usize]);
            }
            Self::Texts { table, .. } => {
                numbers.sort_unstable_by_key(|&number| table.bytes_of(number));
            }
        }
    }

    /// Forgets the items that are not `used`, by number. The others get new numbers in the order of
    /// their old ones.
    pub(crate) fn retain(&mut self, used: &[bool]) {
        match self {
            Self::Numbers(known) => *known = known.retained(used),
            Self::Texts { table, hash } => {
                let mut retained = TextTable::default();
                for (number, _) in (0..).zip(used).filter(|(_, used)| **used) {
                    retained.number(table.get(number), hash);
                }
                *table = retained;
            }
        }
    }

    /// Number of known items.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Numbers(known) => known.items().len(),
            Self::Texts { table, .. } => table.len(),
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Numbers(known) => known.bytes(),
            Self::Texts { table, .. } => table.bytes(),
        }
    }
}

/// A text; of a null, any.
fn text_at(texts: &StringArray, row: usize) -> &str {
    if texts.is_null(row) { "" } else { texts.value(row) }
}

fn find_text(table: &TextTable, hash: &TextHash, text: &str) -> u32 {
    let find = |text: &str| table.find(&hash.key(text), text).unwrap_or(UNKNOWN);
    if text.len() > TEXT_BYTES_MAX { find(&long::name(text, TEXT_BYTES_MAX)) } else { find(text) }
}

/// The number of a text; of a null, any.
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

/// Bytes of the numbers of the texts that keys stand for.
fn keys_bytes(dictionary: &DictionaryArray<UInt32Type>) -> usize {
    dictionary.values().len() * size_of::<Option<u32>>()
}

/// The numbers of the texts that keys stand for, by `number`. Each text that occurs is looked up
/// once.
fn number_keys<E>(
    dictionary: &DictionaryArray<UInt32Type>,
    numbers: &mut Vec<u32>,
    mut number: impl FnMut(&StringArray, usize) -> Result<u32, E>,
) -> Result<(), E> {
    let texts = dictionary.values().as_string::<i32>();
    let mut of_texts = vec![None; texts.len()];
    for &key in dictionary.keys().values() {
        // The key of a null may be no key.
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
    use arrow_cast::cast;

    use super::*;

    /// Texts that are in their keys, and texts that are not, as such and as keys of a dictionary.
    #[test]
    fn items_are_asked_for_before_they_are_kept() {
        let texts = (0..50_000).map(|number| format!("{number:0width$}", width = number % 90));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        let keys = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8));
        let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..50_000));
        for items in [numbers, cast(&texts, &keys).unwrap(), texts] {
            let numbered = |bytes| {
                let mut names = ItemNames::new(items.data_type()).unwrap();
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
            // A vector that grows is there twice for a moment.
            numbered(4 * needed).0.unwrap();
        }
    }
}

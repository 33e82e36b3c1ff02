//! Numbers of values, and the rows of a batch by value.

use std::collections::HashMap;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::take_record_batch;

/// The values so far, each with a number.
#[derive(Debug, Default)]
pub(super) struct Values {
    numbers: HashMap<Box<str>, u32>,
    null: Option<u32>,
    count: u32,
}

/// The rows of a batch in the order of the numbers of their values.
pub(super) struct Sorted {
    pub(super) rows: RecordBatch,
    /// The number of each value, and the range of its rows.
    pub(super) groups: Vec<(u32, Range<usize>)>,
}

impl Values {
    /// Sorts `rows` by the number of the value. Calls `begin` for each new value, in the order of
    /// the new numbers; a null is a value, too.
    pub(super) fn sort<E: From<ArrowError>>(
        &mut self,
        rows: &RecordBatch,
        values: &ArrayRef,
        mut begin: impl FnMut(Option<&str>) -> Result<(), E>,
    ) -> Result<Sorted, E> {
        let texts = cast(values, &DataType::Utf8)?;
        let numbers = self.numbers(texts.as_string(), &mut begin)?;
        let is_sorted = numbers.is_sorted();
        let count = u32::try_from(rows.num_rows()).expect("a batch has fewer rows than 2^32");
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_by_key(|&row| numbers[row as usize]);
        let mut groups = Vec::new();
        let mut start = 0;
        for group in order.chunk_by(|&one, &other| numbers[one as usize] == numbers[other as usize])
        {
            let end = start + group.len();
            groups.push((numbers[group[0] as usize], start..end));
            start = end;
        }
        let rows = match is_sorted {
            true => rows.clone(),
            false => take_record_batch(rows, &UInt32Array::from(order))?,
        };
        Ok(Sorted { rows, groups })
    }

    fn numbers<E>(
        &mut self,
        texts: &StringArray,
        begin: &mut impl FnMut(Option<&str>) -> Result<(), E>,
    ) -> Result<Vec<u32>, E> {
        let mut numbers = Vec::with_capacity(texts.len());
        for text in texts {
            let known = text.map_or(self.null, |text| self.numbers.get(text).copied());
            let number = match known {
                Some(number) => number,
                None => {
                    begin(text)?;
                    match text {
                        Some(text) => drop(self.numbers.insert(text.into(), self.count)),
                        None => self.null = Some(self.count),
                    }
                    self.count += 1;
                    self.count - 1
                }
            };
            numbers.push(number);
        }
        Ok(numbers)
    }
}

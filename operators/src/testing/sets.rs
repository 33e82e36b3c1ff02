//! Sets of tokens, made from a seed, and batches of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field};

/// Families of five similar sets each, of sizes around `size`.
pub(crate) fn families(count: u32, size: u32, seed: u32) -> Vec<BTreeSet<u32>> {
    let mut state = seed.wrapping_mul(2_654_435_769) | 1;
    let mut below = move |end: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % end
    };
    let mut base = Vec::new();
    (0..count)
        .map(|number| {
            if number % 5 == 0 {
                let len = size / 2 + below(size + 1);
                base = (0..len).map(|_| below(6 * size)).collect();
            }
            let changed = below(3);
            let mut set: BTreeSet<u32> = base.iter().copied().collect();
            (0..changed).for_each(|_| {
                set.insert(below(6 * size));
                set.pop_first();
            });
            set
        })
        .collect()
}

/// Two sets of `left` and `right` tokens, of which `overlap` are common.
pub(crate) fn pair(left: u32, right: u32, overlap: u32) -> [BTreeSet<u32>; 2] {
    let right = (left - overlap)..(left - overlap + right);
    [(0..left).collect(), right.collect()]
}

/// The set of `tokens`.
pub(crate) fn set(tokens: &[u32]) -> BTreeSet<u32> {
    tokens.iter().copied().collect()
}

/// A batch with the columns `id` and `set`, which can be null.
pub(crate) fn batch<'a>(
    rows: impl IntoIterator<Item = (u32, Option<&'a BTreeSet<u32>>)>,
) -> RecordBatch {
    let token = Arc::new(Field::new_list_field(DataType::UInt32, false));
    let mut sets = ListBuilder::new(UInt32Builder::new()).with_field(token);
    let mut ids = Vec::new();
    for (id, set) in rows {
        ids.push(id);
        sets.values().append_slice(&set.into_iter().flatten().copied().collect::<Vec<_>>());
        sets.append(set.is_some());
    }
    let ids: ArrayRef = Arc::new(UInt32Array::from(ids));
    let sets: ArrayRef = Arc::new(sets.finish());
    RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("set", sets, true)]).unwrap()
}

//! Blocks of sets. Chunks refer to the sets of a block, and rows of pairs are made from them.

use std::sync::Arc;

use trommel_kernels::sets::{SetStore, Sets};

use super::side::Side;
use crate::shared::columns::carry::CarriedRows;

/// Sets with their ids and carried columns.
///
/// A set has a number, which is its place in the block, and the id that the set had in the input.
#[derive(Debug)]
pub struct SetBlock {
    store: SetStore,
    ids: Vec<u32>,
    /// For each set, its row in the carried columns. Empty if the rows are in the order of the
    /// sets.
    rows: Vec<u32>,
    /// Carried columns per side; in blocks of a stream, all rows are on the left side.
    carried: Option<Arc<[CarriedRows; 2]>>,
}

impl SetBlock {
    /// A block of sets; the rows of `carried` are in the same order.
    pub(crate) fn new(store: SetStore, ids: Vec<u32>, carried: Option<CarriedRows>) -> Self {
        let carried = carried.map(|rows| Arc::new([rows, CarriedRows::default()]));
        Self { store, ids, rows: Vec::new(), carried }
    }

    /// The same block with the tokens `tokens`.
    pub(crate) fn with_tokens(&self, tokens: Vec<u32>) -> Self {
        Self {
            store: SetStore::new(self.offsets().to_vec(), tokens),
            ids: self.ids.clone(),
            rows: self.rows.clone(),
            carried: self.carried.clone(),
        }
    }

    /// The sets of `parts`, one part after the other, with the carried columns `carried`.
    pub(crate) fn joined<'a>(
        parts: impl Iterator<Item = &'a Self> + Clone,
        carried: Option<CarriedRows>,
    ) -> Self {
        let sets = parts.clone().map(Self::len).sum();
        let (mut offsets, mut ids) = (Vec::with_capacity(sets + 1), Vec::with_capacity(sets));
        let mut tokens = Vec::with_capacity(parts.clone().map(Self::tokens).sum());
        offsets.push(0);
        for part in parts {
            let before = u32::try_from(tokens.len()).expect("at most 2^31 tokens");
            offsets.extend(part.offsets()[1..].iter().map(|end| before + end));
            tokens.extend_from_slice(part.sets().tokens());
            ids.extend_from_slice(&part.ids);
        }
        Self::new(SetStore::new(offsets, tokens), ids, carried)
    }

    /// Attaches `columns`. So far, the ids of the sets are rows of `columns`. `id_of` gives the id
    /// of a set from its number and its row.
    pub(crate) fn carry(&mut self, id_of: impl Fn(usize, u32) -> u32, columns: [CarriedRows; 2]) {
        let ids = self.ids.iter().enumerate().map(|(set, &row)| id_of(set, row)).collect();
        self.rows = std::mem::replace(&mut self.ids, ids);
        self.carried = Some(Arc::new(columns));
    }

    /// Row of a set in its [carried columns](Self::carried).
    pub(crate) fn row(&self, set: u32) -> u32 {
        self.rows.get(set as usize).copied().unwrap_or(set)
    }

    /// Carried columns of the sets of `side`.
    pub(crate) fn carried(&self, side: Side) -> Option<&CarriedRows> {
        self.carried.as_ref().map(|sides| &sides[side.index()])
    }

    /// Number of sets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Number of tokens of all sets.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.sets().tokens().len()
    }

    /// Mean number of tokens of a set, rounded down.
    pub(crate) fn mean_size(&self) -> usize {
        self.tokens() / self.len().max(1)
    }

    /// The sets in the form of the kernels.
    #[inline]
    #[must_use]
    pub fn sets(&self) -> Sets<'_> {
        self.store.as_sets()
    }

    /// The store of the sets, by which copies on devices are compared.
    #[must_use]
    pub fn store(&self) -> &SetStore {
        &self.store
    }

    /// Version of the sets: a number that only this block has.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.store.version()
    }

    /// Start of each set among all tokens, and the end of the last set.
    pub(crate) fn offsets(&self) -> &[u32] {
        self.sets().offsets()
    }

    /// Tokens of a set.
    #[inline]
    pub(crate) fn set(&self, set: u32) -> &[u32] {
        self.sets().set(set as usize)
    }

    /// Number of tokens of a set.
    #[inline]
    pub(crate) fn size(&self, set: u32) -> u32 {
        self.offsets()[set as usize + 1] - self.offsets()[set as usize]
    }

    /// Id of a set.
    #[inline]
    pub(crate) fn id(&self, set: u32) -> u32 {
        self.ids[set as usize]
    }
}

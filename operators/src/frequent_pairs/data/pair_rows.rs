//! The frequent pairs of a window, which are the rows of triples.

use std::sync::{Arc, OnceLock};

use trommel_kernels::Isa;
use trommel_kernels::batmap::{BatMaps, Permutations};
use trommel_kernels::supports::Pair;

use super::vertical::VerticalData;
use crate::shared::names::secret::random_seed;

/// Frequent pairs by ascending first item, then by ascending second item. Items are named by their
/// ranks.
///
/// A triple belongs to the pair of its last two items, and the first item of the triple is before
/// both. All three pairs of the triple are frequent, so the first item is a *partner* of the two
/// other items.
#[derive(Debug)]
pub(crate) struct PairRows {
    data: Arc<VerticalData>,
    pairs: Vec<[u32; 2]>,
    /// For each item: the number of the first pair whose first item is this item or a later item.
    /// At the end: the number of pairs.
    firsts: Vec<u32>,
    /// Sums over the pairs before each pair, and over all pairs at the end: the supports of the
    /// pairs, and the supports of their second items.
    totals: Vec<[u64; 2]>,
    /// Partners of each item that come before the item, from `partner_ends[item - 1]` on.
    partners: Vec<u32>,
    partner_ends: Vec<u32>,
    /// Batmaps, made at the first use.
    maps: OnceLock<BatMaps<3>>,
}

impl PairRows {
    /// Bytes for each pair while the rows are made; `found` counts, too.
    pub(crate) const PAIR_BYTES: usize =
        2 * size_of::<Pair>() + size_of::<[u32; 2]>() + size_of::<[u64; 2]>() + size_of::<u32>();

    /// The frequent pairs of `data`, in any order.
    pub(crate) fn new(data: Arc<VerticalData>, found: Vec<Pair>) -> Self {
        let items = data.len() as usize;
        let (_, found) = by_item(items, found, |pair| pair.right);
        let (firsts, sorted) = by_item(items, found, |pair| pair.left);
        let mut sums = [0; 2];
        let mut totals = Vec::with_capacity(sorted.len() + 1);
        totals.push(sums);
        for pair in &sorted {
            sums[0] += u64::from(pair.support);
            sums[1] += u64::from(data.support(pair.right));
            totals.push(sums);
        }
        let pairs = sorted.iter().map(|pair| [pair.left, pair.right]).collect();
        // The sort is stable, so the partners of an item ascend.
        let (ends, partners) = by_item(items, sorted, |pair| pair.right);
        let partners = partners.iter().map(|pair| pair.left).collect();
        let (partner_ends, maps) = (ends[1..].to_vec(), OnceLock::new());
        Self { data, pairs, firsts, totals, partners, partner_ends, maps }
    }

    /// Bytes of the pairs, of the items, and of the batmaps that have been made.
    pub(crate) fn bytes(&self) -> usize {
        let Self { data, pairs, firsts, totals, partners, partner_ends, maps } = self;
        let numbers = [firsts, partners, partner_ends].map(|numbers| size_of_val(&numbers[..]));
        data.bytes()
            + size_of_val(&pairs[..])
            + size_of_val(&totals[..])
            + numbers.iter().sum::<usize>()
            + maps.get().map_or(0, BatMaps::bytes)
    }

    /// The items.
    pub(crate) fn data(&self) -> &Arc<VerticalData> {
        &self.data
    }

    /// Number of pairs.
    pub(crate) fn len(&self) -> u32 {
        self.firsts[self.firsts.len() - 1]
    }

    /// The items of a pair, ascending.
    pub(crate) fn items(&self, pair: u32) -> [u32; 2] {
        self.pairs[pair as usize]
    }

    /// The number of the first pair whose first item is not before `item`.
    pub(crate) fn first_pair(&self, item: u32) -> u32 {
        self.firsts[item as usize]
    }

    /// Sums of the supports of the pairs before `pair`, and of their second items.
    pub(crate) fn totals(&self, pair: u32) -> [u64; 2] {
        self.totals[pair as usize]
    }

    /// The items before `item` that form a frequent pair with `item`, ascending.
    pub(crate) fn partners(&self, item: u32) -> &[u32] {
        let item = item as usize;
        let begin = if item == 0 { 0 } else { self.partner_ends[item - 1] };
        &self.partners[begin as usize..self.partner_ends[item] as usize]
    }

    /// The support of a frequent pair, whose items ascend.
    ///
    /// # Panics
    /// If the pair is not frequent.
    pub(crate) fn support(&self, items: [u32; 2]) -> u32 {
        let pair = self.pairs.binary_search(&items).expect("the pairs of a triple are frequent");
        let support = self.totals[pair + 1][0] - self.totals[pair][0];
        u32::try_from(support).expect("supports have 32 bits")
    }

    /// The batmaps for triples of the items by rank. The first call makes the maps; other threads
    /// wait for that call.
    pub(crate) fn maps(&self, isa: Isa) -> &BatMaps<3> {
        self.maps.get_or_init(|| {
            let permutations = Permutations::new(self.data.transactions(), random_seed());
            BatMaps::new(isa, permutations, self.data.lists())
        })
    }
}

/// Sorts pairs by the item that `item` selects; that item is below `items`. Returns the offsets of
/// the pairs of each item, and the pairs. The counting sort is stable: pairs of an equal item keep
/// their order.
fn by_item(items: usize, pairs: Vec<Pair>, item: impl Fn(&Pair) -> u32) -> (Vec<u32>, Vec<Pair>) {
    let mut offsets = vec![0_u32; items + 1];
    pairs.iter().for_each(|pair| offsets[item(pair) as usize + 1] += 1);
    for at in 1..offsets.len() {
        offsets[at] += offsets[at - 1];
    }
    let mut next = offsets.clone();
    let mut sorted = vec![Pair::default(); pairs.len()];
    for pair in pairs {
        let place = &mut next[item(&pair) as usize];
        sorted[*place as usize] = pair;
        *place += 1;
    }
    (offsets, sorted)
}

//! The slot of each monitored item: a hash table with chains, of a fixed size.
//!
//! ```text
//! heads: u32[h]   h = the power of two >= 4 k, so that most chains are empty or one node long
//! nodes: { item, next: u32 }[k], in slots 0.. without gaps
//! ```
//!
//! The replacement of an item is the hot operation: with little skew, nearly every item replaces
//! another. A replacement costs a walk along two short chains, and no tombstone, no rehash and no
//! allocation. A new item goes to the end of its chain. New items are seldom the frequent ones, so
//! frequent items come to the front as the nodes before them are replaced (measured: 2 to 3 times
//! the throughput at Zipf 1.5 and 2 of a version with new items in front).
//!
//! # Length of chains
//!
//! The head of a chain is the top bits of the key times a random odd number (multiply-shift:
//! Dietzfelbinger, Hagerup, Katajainen, Penttonen, *A Reliable Randomized Algorithm for the
//! Closest-Pair Problem*, Journal of Algorithms 25, 1997), or of the sum of two products, for which
//! the proof is with the [hash of cells](trommel_kernels::sieve::CodeHash). Two different keys that
//! were chosen without knowledge of the random numbers share one of h chains with a probability of
//! at most 2 / h. The random numbers decide nothing but the order of chains, on which no answer
//! depends, and no snapshot has them. So the items that are in the index at some time do not depend
//! on the random numbers, and an item meets at most 2 k / h <= 1/2 other items in its chain in
//! expectation, for every stream.
//!
//! Some random numbers are bad for some sets of items: one in a hundred turns consecutive integers
//! into chains that are 5 to 10 times too long. So linking counts the nodes that it passes. If
//! these are more than the items that were looked up, which by Markov's inequality has a
//! probability of at most 1/2, new numbers are drawn and all items are linked again, at O(1) a node
//! passed. So linking costs O(1) an item, amortized, for every stream and after at most two draws
//! in expectation.
//!
//! This bound is about keys. Two long texts that were chosen without knowledge of the secret of the
//! keys have equal keys with a probability of about 2^-64; for that there is no proof.

use trommel_kernels::prefetch;
use trommel_kernels::sieve::CellKey;

use crate::shared::items::Item;
use crate::shared::names::secret::random_seed;

/// The end of a chain. The number is no slot, because capacities stay below it.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct ChainNode<K> {
    item: K,
    next: u32,
}

/// Distinct items in slots, found by item and by slot.
#[derive(Clone, Debug)]
pub(super) struct ItemIndex<K: Item> {
    /// Of the keys of items.
    secret: K::Secret,
    /// Random and odd.
    multipliers: [u64; 2],
    /// 64 - log2(heads): the head of a chain is the top bits of a product.
    shift: u32,
    heads: Vec<u32>,
    nodes: Vec<ChainNode<K>>,
    /// Since the multipliers were drawn: items that were looked up, and nodes that were passed to
    /// link items.
    items: usize,
    passed: usize,
}

impl<K: Item> ItemIndex<K> {
    /// An empty index for up to `capacity` items, at least 1.
    pub(super) fn new(capacity: usize, secret: K::Secret) -> Self {
        let heads = heads(capacity);
        Self {
            secret,
            multipliers: draw(),
            shift: u64::BITS - heads.ilog2(),
            heads: vec![NONE; heads],
            nodes: Vec::with_capacity(capacity),
            items: 0,
            passed: 0,
        }
    }

    /// An index of distinct items from elsewhere, whose slots have the order of the items.
    /// O(items), whatever number of items collide.
    pub(super) fn of(
        capacity: usize,
        secret: K::Secret,
        items: impl IntoIterator<Item = K>,
    ) -> Self {
        let mut index = Self::new(capacity, secret);
        for mut item in items {
            item.rekey(&index.secret);
            index.nodes.push(ChainNode { item, next: NONE });
        }
        index.link_all();
        index
    }

    /// Draws the multipliers again if chains are too long. Before the next call, at most `items`
    /// items are looked up.
    #[inline]
    pub(super) fn refresh(&mut self, items: usize) {
        self.items = self.items.saturating_add(items);
        if self.passed > self.items.max(self.nodes.capacity()) {
            self.redraw();
        }
    }

    #[cold]
    #[inline(never)]
    fn redraw(&mut self) {
        self.multipliers = draw();
        self.heads.fill(NONE);
        self.link_all();
    }

    /// Links all nodes while no chain has any.
    fn link_all(&mut self) {
        (self.items, self.passed) = (0, 0);
        // From the last node on, each node becomes the first of its chain, so no chain is walked.
        for slot in (0..self.nodes.len()).rev() {
            let head = self.head(self.nodes[slot].item.key());
            let first = &mut self.heads[head as usize];
            self.nodes[slot].next = std::mem::replace(first, narrow(slot));
        }
    }

    /// The secret of the keys.
    pub(super) fn secret(&self) -> &K::Secret {
        &self.secret
    }

    /// The key of an item.
    #[inline(always)]
    pub(super) fn key_of(&self, item: K::Ref<'_>) -> K::Key {
        K::key_of(item, &self.secret)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn item(&self, slot: u32) -> &K {
        &self.nodes[slot as usize].item
    }

    /// The items in the order of their slots.
    pub(super) fn items(&self) -> impl ExactSizeIterator<Item = &K> {
        self.nodes.iter().map(|node| &node.item)
    }

    /// The chain of this key.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "fewer than 2^32 heads")]
    pub(super) fn head(&self, key: K::Key) -> u32 {
        (key.product(self.multipliers) >> self.shift) as u32
    }

    /// Fetches into the cache where a chain begins.
    #[inline(always)]
    pub(super) fn prefetch_head(&self, head: u32) {
        prefetch(&self.heads, head as usize);
    }

    /// Fetches into the cache the first node of a chain.
    #[inline(always)]
    pub(super) fn prefetch_first(&self, head: u32) {
        prefetch(&self.nodes, self.heads[head as usize] as usize);
    }

    /// Fetches into the cache the memory of the first item of a chain.
    #[inline(always)]
    pub(super) fn prefetch_first_memory(&self, head: u32) {
        if let Some(node) = self.nodes.get(self.heads[head as usize] as usize) {
            node.item.prefetch();
        }
    }

    /// Fetches into the cache the head of the chain of the item in this slot.
    #[inline(always)]
    pub(super) fn prefetch_link(&self, slot: u32) {
        self.prefetch_head(self.head(self.nodes[slot as usize].item.key()));
    }

    /// The slot of an item, if the index has the item.
    pub(super) fn slot_of(&self, item: K::Ref<'_>) -> Option<u32> {
        let key = self.key_of(item);
        self.find(item, key, self.head(key))
    }

    /// The slot of `item`, whose key is `key`, in the chain `head` of that.
    #[inline(always)]
    pub(super) fn find(&self, item: K::Ref<'_>, key: K::Key, head: u32) -> Option<u32> {
        let mut slot = self.heads[head as usize];
        while let Some(node) = self.nodes.get(slot as usize) {
            if node.item.is(item, key) {
                return Some(slot);
            }
            slot = node.next;
        }
        None
    }

    /// Adds an item with its key, which the index does not have. The slot of the item is the former
    /// length.
    pub(super) fn push(&mut self, item: K) {
        let slot = narrow(self.nodes.len());
        let head = self.head(item.key());
        self.nodes.push(ChainNode { item, next: NONE });
        self.link(slot, head);
    }

    /// Puts an item that the index does not have into the slot of another item. `head` is the chain
    /// of `key`.
    #[inline]
    pub(super) fn assign(&mut self, slot: u32, item: K::Ref<'_>, key: K::Key, head: u32) {
        self.unlink(slot);
        self.nodes[slot as usize].item.assign(item, key);
        self.link(slot, head);
    }

    /// Puts an item from elsewhere, which the index does not have, into the slot of another item.
    /// Returns the other item.
    pub(super) fn replace(&mut self, slot: u32, mut item: K) -> K {
        self.unlink(slot);
        item.rekey(&self.secret);
        let head = self.head(item.key());
        let old = std::mem::replace(&mut self.nodes[slot as usize].item, item);
        self.link(slot, head);
        old
    }

    /// Takes an item out. The item of the last slot moves into the free slot.
    pub(super) fn swap_remove(&mut self, slot: u32) -> K {
        self.unlink(slot);
        let last = narrow(self.nodes.len() - 1);
        if slot != last {
            self.repoint(last, slot);
        }
        self.nodes.swap_remove(slot as usize).item
    }

    /// Bytes on the heap of an index with this capacity, without the bytes of its items.
    pub(super) fn bytes(capacity: usize) -> usize {
        heads(capacity) * size_of::<u32>() + capacity * size_of::<ChainNode<K>>()
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.heads.capacity() * size_of::<u32>()
            + self.nodes.capacity() * size_of::<ChainNode<K>>()
            + self.items().map(Item::heap_bytes).sum::<usize>()
    }

    /// Puts the node in `slot`, which is in no chain, at the end of its chain `head`.
    #[inline(always)]
    fn link(&mut self, slot: u32, head: u32) {
        self.nodes[slot as usize].next = NONE;
        let mut link = &mut self.heads[head as usize];
        while *link != NONE {
            let next = *link as usize;
            link = &mut self.nodes[next].next;
            self.passed += 1;
        }
        *link = slot;
    }

    #[inline(always)]
    fn unlink(&mut self, slot: u32) {
        self.repoint(slot, self.nodes[slot as usize].next);
    }

    /// Lets the link that leads to the node in slot `from` lead to slot `to`.
    #[inline(always)]
    fn repoint(&mut self, from: u32, to: u32) {
        let head = self.head(self.nodes[from as usize].item.key());
        let mut link = &mut self.heads[head as usize];
        while *link != from {
            let next = *link as usize;
            link = &mut self.nodes[next].next;
        }
        *link = to;
    }
}

/// Multipliers that nobody knows.
fn draw() -> [u64; 2] {
    [random_seed(), random_seed()].map(|number| number | 1)
}

fn narrow(slot: usize) -> u32 {
    u32::try_from(slot).expect("capacities are below 2^32")
}

/// Chains of an index of this capacity.
fn heads(capacity: usize) -> usize {
    (4 * capacity).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::items::Text;

    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

    /// Keys whose products with the multiplier are small.
    fn colliding() -> impl Iterator<Item = u64> {
        let inverse = (0..6).fold(MULTIPLIER, |inverse, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(MULTIPLIER.wrapping_mul(inverse)))
        });
        (1..1000).map(move |i: u64| (i * i * i).wrapping_mul(inverse))
    }

    fn longest_chain(index: &ItemIndex<u64>) -> usize {
        let next = |slot: &u32| index.nodes.get(*slot as usize).map(|node| node.next);
        let len = |&head: &u32| std::iter::successors(Some(head), next).count() - 1;
        index.heads.iter().map(len).max().unwrap()
    }

    #[test]
    fn keys_that_collide_under_one_number_do_not_under_a_random_one() {
        let index = ItemIndex::of(1000, (), colliding());
        assert!(longest_chain(&index) < 30, "{}", longest_chain(&index));
        assert!((0_u32..).zip(colliding()).all(|(slot, item)| index.slot_of(item) == Some(slot)));
    }

    #[test]
    fn chains_that_are_too_long_are_linked_by_another_number() {
        let mut index = ItemIndex::new(1000, ());
        index.multipliers[0] = MULTIPLIER;
        colliding().for_each(|item| index.push(item));
        assert_eq!((longest_chain(&index), index.passed), (999, 999 * 998 / 2));
        index.refresh(999);
        assert_ne!(index.multipliers[0], MULTIPLIER);
        assert_eq!(index.passed, 0);
        assert!(longest_chain(&index) < 30, "{}", longest_chain(&index));
        assert!((0_u32..).zip(colliding()).all(|(slot, item)| index.slot_of(item) == Some(slot)));
        let multipliers = index.multipliers;
        index.refresh(1);
        assert_eq!(index.multipliers, multipliers);
    }

    #[test]
    fn texts_from_elsewhere_are_found_by_the_keys_of_the_index() {
        let [own, other] = [1, 2].map(Text::secret);
        let foreign = |text: &str| Text::new(text, Text::key_of(text, &other));
        let texts = ["a", "a text of more than fifteen bytes", "another text of more than fifteen"];
        let mut index = ItemIndex::of(4, own, [texts[0], texts[1]].map(foreign));
        assert_eq!(texts.map(|text| index.slot_of(text)), [Some(0), Some(1), None]);
        index.replace(0, foreign(texts[2]));
        assert_eq!(texts.map(|text| index.slot_of(text)), [None, Some(1), Some(0)]);
    }
}

//! Where each monitored item is: a hash table with chains, sized once.
//!
//! ```text
//! heads: u32[h]   h = the power of two >= 4 k, so that most chains are empty or one node long
//! nodes: { item, next: u32 }[k], in slots 0.. without gaps
//! ```
//!
//! Replacing an item is the hot operation (with little skew it happens for nearly every one), and
//! it costs a walk along two short chains: no tombstone, no rehash, no allocation. New items go to
//! the end of their chain: they are seldom the frequent ones, which so come to the front as what
//! was before them is replaced (measured: 2 to 3 times the throughput at Zipf 1.5 and 2 against new
//! items in front).

use crate::items::Item;

/// The end of a chain: no slot, because capacities stay below it.
const NONE: u32 = u32::MAX;

/// 2^64 divided by the golden ratio, odd: the multiplier of Fibonacci hashing.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

#[derive(Clone, Debug)]
struct Node<K> {
    item: K,
    next: u32,
}

/// Distinct items in slots, found by item and by slot.
#[derive(Clone, Debug)]
pub(super) struct ItemIndex<K> {
    heads: Vec<u32>,
    /// 64 - log2(heads): the head of a chain is the top bits of a product.
    shift: u32,
    nodes: Vec<Node<K>>,
}

impl<K: Item> ItemIndex<K> {
    /// An empty index for up to `capacity` items, at least 1.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let heads = heads(capacity);
        Self {
            heads: vec![NONE; heads],
            shift: u64::BITS - heads.ilog2(),
            nodes: Vec::with_capacity(capacity),
        }
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

    /// The slot of `item`, whose code is `code`.
    #[inline(always)]
    pub(super) fn find(&self, item: K::Ref<'_>, code: K::Code) -> Option<u32> {
        let mut slot = self.heads[self.head(code)];
        while let Some(node) = self.nodes.get(slot as usize) {
            if node.item.is(item, code) {
                return Some(slot);
            }
            slot = node.next;
        }
        None
    }

    /// Adds an item that is not there; its slot is the former length.
    pub(super) fn push(&mut self, item: K) {
        let slot = u32::try_from(self.nodes.len()).expect("capacities are below 2^32");
        let code = item.code();
        self.nodes.push(Node { item, next: NONE });
        self.link(slot, code);
    }

    /// Puts an item that is not there into the place of another.
    pub(super) fn assign(&mut self, slot: u32, item: K::Ref<'_>, code: K::Code) {
        self.unlink(slot);
        self.nodes[slot as usize].item.assign(item, code);
        self.link(slot, code);
    }

    /// Puts an item that is not there into the place of another, which it returns.
    pub(super) fn replace(&mut self, slot: u32, item: K) -> K {
        self.unlink(slot);
        let code = item.code();
        let old = std::mem::replace(&mut self.nodes[slot as usize].item, item);
        self.link(slot, code);
        old
    }

    /// Takes an item out; the item of the last slot moves into its place.
    pub(super) fn swap_remove(&mut self, slot: u32) -> K {
        self.unlink(slot);
        let last = u32::try_from(self.nodes.len() - 1).expect("capacities are below 2^32");
        if slot != last {
            self.repoint(last, slot);
        }
        self.nodes.swap_remove(slot as usize).item
    }

    /// Bytes on the heap of an index with this capacity, without those of its items.
    pub(super) fn bytes(capacity: usize) -> usize {
        heads(capacity) * size_of::<u32>() + capacity * size_of::<Node<K>>()
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.heads.capacity() * size_of::<u32>()
            + self.nodes.capacity() * size_of::<Node<K>>()
            + self.items().map(Item::heap_bytes).sum::<usize>()
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "fewer than 2^32 heads")]
    fn head(&self, code: K::Code) -> usize {
        (code.into().wrapping_mul(MULTIPLIER) >> self.shift) as usize
    }

    /// Puts the node in `slot`, which is in no chain, at the end of its own.
    #[inline(always)]
    fn link(&mut self, slot: u32, code: K::Code) {
        self.nodes[slot as usize].next = NONE;
        let head = self.head(code);
        let mut link = &mut self.heads[head];
        while *link != NONE {
            let slot = *link as usize;
            link = &mut self.nodes[slot].next;
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
        let head = self.head(self.nodes[from as usize].item.code());
        let mut link = &mut self.heads[head];
        while *link != from {
            let slot = *link as usize;
            link = &mut self.nodes[slot].next;
        }
        *link = to;
    }
}

/// Chains for so many items.
fn heads(capacity: usize) -> usize {
    (4 * capacity).next_power_of_two()
}

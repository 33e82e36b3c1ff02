//! Places of groups by hash: open addressing with linear probing.
//!
//! The places are a table of ours and no `HashTable` of `hashbrown`, because a batch of rows looks
//! up its groups in steps: the place of a row is fetched into the cache some rows ahead, and then
//! the key of its group. A place has 32 bits of the hash and the number of the group. The highest
//! bits of the hash are the number of the place, so that all places in their order are a list of
//! groups by hash: two tables with the same secret are merged in that order, and neither table is
//! read at random places.

use trommel_kernels::prefetch;

const EMPTY: u64 = 0;
const TAG: u64 = !0 << 32;
/// Number of places of the smallest table.
const LEN_MIN: usize = 64;

/// The places.
#[derive(Debug, Clone)]
pub(super) struct Slots {
    /// The highest 32 bits of a hash, and the number of a group plus 1. The length is a power of
    /// two.
    slots: Vec<u64>,
    /// Number of bits of a hash below the number of its place.
    shift: u32,
}

impl Default for Slots {
    fn default() -> Self {
        Self { slots: vec![EMPTY; LEN_MIN], shift: u64::BITS - LEN_MIN.ilog2() }
    }
}

impl Slots {
    /// Number of places for `groups` groups: at most half of the places are used.
    pub(super) fn len_for(groups: usize) -> usize {
        groups.saturating_mul(2).checked_next_power_of_two().unwrap_or(usize::MAX).max(LEN_MIN)
    }

    /// Bytes of `len` places.
    pub(super) fn bytes_of(len: usize) -> usize {
        len.saturating_mul(size_of::<u64>())
    }

    /// Bytes of the places, if they were taken from a budget: the smallest table is too small for
    /// that.
    pub(super) fn taken_bytes(&self) -> usize {
        if self.slots.len() == LEN_MIN { 0 } else { Self::bytes_of(self.slots.len()) }
    }

    /// Whether a further group beside `groups` groups needs more places.
    #[inline(always)]
    pub(super) fn is_full(&self, groups: usize) -> bool {
        2 * (groups + 1) > self.slots.len()
    }

    /// Number of places.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline(always)]
    fn place(&self, hash: u64) -> usize {
        usize::try_from(hash >> self.shift).expect("below the number of places")
    }

    /// Fetches the place of a hash into the cache.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(&self.slots, self.place(hash));
    }

    /// The group at the place of a hash, if there is a group, to be fetched into the cache.
    #[inline(always)]
    pub(super) fn likely(&self, hash: u64) -> Option<usize> {
        group_of(self.slots[self.place(hash)])
    }

    /// The group with this hash for which `is` holds. If there is none, the free place for the
    /// group.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, is: impl Fn(usize) -> bool) -> Result<usize, usize> {
        let mut place = self.place(hash);
        loop {
            let slot = self.slots[place];
            match group_of(slot) {
                None => return Err(place),
                Some(group) if (slot ^ hash) & TAG == 0 && is(group) => return Ok(group),
                Some(_) => place = (place + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// Puts a new group into the free place that [`Self::find`] has found.
    #[inline(always)]
    pub(super) fn put(&mut self, place: usize, hash: u64, group: usize) {
        self.slots[place] = (hash & TAG) | (group as u64 + 1);
    }

    /// The groups and the highest 32 bits of their hashes, by hash.
    pub(super) fn by_hash(&self) -> impl Iterator<Item = (u64, usize)> {
        self.slots.iter().filter_map(|&slot| group_of(slot).map(|group| (slot & TAG, group)))
    }

    /// The same groups in a table of `len` places, at least as many as now.
    pub(super) fn grown(&self, len: usize) -> Self {
        let mut grown = Self { slots: vec![EMPTY; len], shift: u64::BITS - len.ilog2() };
        for &slot in self.slots.iter().filter(|&&slot| slot != EMPTY) {
            let free = grown.find(slot & TAG, |_| false).expect_err("no group is asked for");
            grown.slots[free] = slot;
        }
        grown
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the lower half is the number")]
fn group_of(slot: u64) -> Option<usize> {
    // The number of a group is below 2^32 - 1.
    (slot as u32).checked_sub(1).map(|group| group as usize)
}

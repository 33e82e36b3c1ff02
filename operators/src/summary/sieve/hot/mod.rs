//! The hot items, which the vertical filter takes out.
//!
//! The rule ([`hottest`]) chooses the items again and again, each time after twice as many items as
//! before, up to [`WINDOW_MAX`]. Shares are measured in the last window and not in the whole
//! stream, so that the filter follows a stream that changes. A share is one of the weight: a few
//! items of large weights can turn the filter on, which then costs its pass and gains nothing.

mod stored;

use trommel_kernels::filter::Key;
use trommel_kernels::sieve::KEYS_MAX;

use super::hottest::hottest;

/// Number of items before the first choice.
const WINDOW_MIN: u64 = 1 << 9;

/// Maximum number of items between two choices; a choice costs some nanoseconds a counter.
const WINDOW_MAX: u64 = 1 << 20;

/// The codes of the filter with the slots of their counters, and the time of the next choice.
#[derive(Clone, Debug)]
pub(super) struct HotItems<C> {
    codes: Vec<C>,
    slots: Vec<u32>,
    /// The count of each slot at the last choice.
    before: Vec<u64>,
    /// N at the last choice.
    last: u64,
    /// Number of items since the last choice.
    items: u64,
    window: u64,
}

impl<C: Key> HotItems<C> {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            codes: Vec::with_capacity(KEYS_MAX),
            slots: Vec::with_capacity(KEYS_MAX),
            before: vec![0; slots],
            last: 0,
            items: 0,
            window: WINDOW_MIN,
        }
    }

    /// The codes; none while the filter is off.
    pub(super) fn codes(&self) -> &[C] {
        &self.codes
    }

    /// The slots of the codes.
    pub(super) fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Whether the next choice is due.
    pub(super) fn is_due(&self) -> bool {
        self.items >= self.window
    }

    /// Notes that `items` items were counted.
    pub(super) fn counted(&mut self, items: usize) {
        self.items = self.items.saturating_add(items as u64);
    }

    /// Notes that the slot has another item, whose count begins with `count`.
    pub(super) fn replaced(&mut self, slot: u32, count: u64) {
        self.before[slot as usize] = count;
        if self.slots.contains(&slot) {
            self.switch_off();
        }
    }

    fn switch_off(&mut self) {
        self.codes.clear();
        self.slots.clear();
    }

    /// Chooses the codes by the codes and counts of all slots in their order. The chosen items must
    /// have at least one in `share` of the weight.
    pub(super) fn choose(
        &mut self,
        observed: u64,
        share: u64,
        counted: impl Iterator<Item = (C, u64)>,
    ) {
        self.switch_off();
        let weight = observed - self.last;
        let slots = (0..).zip(&mut self.before).zip(counted);
        let recent = slots.map(|((slot, before), (code, count))| {
            (count - std::mem::replace(before, count), (slot, code))
        });
        for (slot, code) in hottest(weight, share, recent) {
            self.slots.push(slot);
            self.codes.push(code);
        }
        let window = (2 * self.items.min(WINDOW_MAX)).clamp(WINDOW_MIN, WINDOW_MAX);
        (self.last, self.items, self.window) = (observed, 0, window);
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.codes.capacity() * size_of::<C>()
            + self.slots.capacity() * size_of::<u32>()
            + self.before.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looking at all counters costs time, which large weights must not multiply.
    #[test]
    fn looks_come_after_items_and_not_after_weight() {
        for weight in [1, 1 << 40] {
            let mut hot = HotItems::<u32>::new(1);
            let mut looks = Vec::new();
            for block in 0..6_000 {
                let observed = block * 512 * weight;
                if hot.is_due() {
                    hot.choose(observed, 4, std::iter::once((7, observed)));
                    looks.push(block);
                }
                hot.counted(512);
            }
            let expected = [1, 3, 7, 15, 31, 63, 127, 255, 511, 1_023, 2_047, 4_095];
            assert_eq!(looks, expected, "weights of {weight}");
            assert_eq!(hot.codes(), [7]);
        }
    }
}

//! Two sieves become one sieve of both streams, or the counts of a sieve are divided by a power of
//! 2. In both cases, a sieve is made of bounds.
//!
//! Sources: as in [`summary::merge`](super::super::merge), carried over to alphas and the line.
//!
//! # How
//!
//! A sieve i bounds the count of every item: by [`Counted`] if the item is monitored, and otherwise
//! by 0 and the alpha of its place, which is at most the line l_i. The bounds of both streams
//! together are the sums. With N = N_1 + N_2, L the slack of N, and C the number of counters with
//! the extra ones:
//!
//! - the C items with the largest upper bounds stay monitored; d is the largest upper bound of the
//!   other items, or 0 if there are no others;
//! - the line is l = max(l_1 + l_2, d, L), or 0 while a counter is free;
//! - the hash is that of the sieve that becomes both. The alpha of a place is its own alpha plus
//!   that of the same place of the other sieve, if the secrets are equal, and otherwise plus the
//!   largest alpha of the other sieve. The alpha is also at least the bound of each dropped item of
//!   the place;
//! - if l > L, counts below l are raised to l, and their errors by the same amount.
//!
//! # Guarantees
//!
//! Below, (1) to (5) are the statements of [the sieve](super), and E_i is the excess of sieve i.
//! As long as N does not saturate, the result fulfils their conditions, so that they hold for the
//! stream that follows:
//!
//! - *Bounds are true, alpha <= l bounds unmonitored items, errors are at most N / k* (2, 3):
//!   sums of true bounds are true, where each sieve bounds an item by its own place of the item;
//!   an item that is monitored in neither was seen at most alpha_1 + alpha_2 times, with the
//!   alphas of its places, and alpha_2 is that of the same place, or at most the largest; alphas
//!   are at most l_1 + l_2 and dropped bounds at most d; an error is the sum of two, each at most
//!   l_i <= N_i / k, or else at most l.
//! - *Before anything is raised*: let b be the larger one of l_1 + l_2 and L_1 + L_2. It is the
//!   sum of two numbers b_i with l_i <= b_i <= max(l_i, L_i). The sum over the counts of sieve i
//!   of max(0, c - b_i) is at most `N_i - C (b_i - L_i)`: if b_i <= L_i, it is at most
//!   `E_i + C (L_i - b_i)`; otherwise b_i = l_i > L_i, no count is below l_i (1), and it is
//!   `E_i - C (l_i - L_i)`. A combined bound exceeds b by at most the excesses of its counts over
//!   b_1 and b_2, for alphas exceed nothing: the sum over all items of max(0, bound - b) is at most
//!   `N - C (b - L_1 - L_2)`.
//! - *l <= N / k* (5): l_1 + l_2 is the sum of two such. If d > b, C bounds and d itself are at
//!   least d, and `C (d - b) <= N - C (b - L_1 - L_2)`, so d <= L_1 + L_2 + N / C <= N e / (k C) +
//!   N / C = N / k. If d <= b, it is not above the larger one of l_1 + l_2 and L.
//! - *l <= max(L, m)* (1), where m is the smallest count: l > L raises all counts to l; and then
//!   all C counters are taken, because one of the l_i is above L_i, or something was dropped.
//! - *E <= N* (4): if b <= L, counts exceed L by no more than b, in all by at most N. Otherwise b
//!   is l_1 + l_2, because L >= L_1 + L_2; raising to b adds nothing to the sum above, and to d > b
//!   nothing has to be raised. So no count is below b, and E = sum of (c - b) + C (b - L) <= N - C
//!   (b - L_1 - L_2) + C (b - L) <= N.
//! - *With at most C distinct items in both streams, all counts are exact*, if they were: nothing
//!   is dropped, and an alpha above 0 belongs to an item beyond C others.
//!
//! # Scaling down
//!
//! Everything is divided by 2^b and rounded outwards, N too, and the line is raised to the new L,
//! as above. L, rounded down, may have become smaller than the quotient by 1, and so may the line:
//! each count exceeds L by at most 2 more than before, so E is at most N + 2 C, and with it l at
//! most N / k + 2; after any number of divisions by 2^b each, N / k + 2 (1 + 2^-b + 2^-2b ...) <= N
//! / k + 4.

use super::{ItemIndex, Sieve};
use crate::shared::items::Item;
use crate::summary::contract::{MergeError, Summary};
use crate::summary::counted::Counted;
use crate::summary::merge::{combine, keep_largest, scaled, scaled_up};

/// The bounds of which a sieve is made.
struct SieveBounds<K, A> {
    observed: u64,
    /// Any number of counted items; the largest stay.
    counted: Vec<Counted<K>>,
    /// The alpha of a place, at most the line.
    alpha: A,
    line: u64,
}

impl<K: Item> Sieve<K> {
    /// Becomes a summary of both streams, with the guarantees of one over both: errors of at most
    /// (N1 + N2) / k, and every item above that is monitored.
    ///
    /// The order and grouping of merges do not matter for the guarantees. Sieves with equal seeds,
    /// such as clones, give smaller errors than sieves with different seeds. The module `merge` of
    /// the sieve says how merging works and why the bounds hold.
    ///
    /// # Errors
    ///
    /// [`MergeError`] if the numbers of counters or cells differ; nothing happens then.
    ///
    /// # Cost
    ///
    /// O(k log k + cells).
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::Isa;
    /// use trommel_operators::frequent_items::Sieve;
    ///
    /// let mut left = Sieve::new(Isa::selected()?, 1_000)?;
    /// let mut right = left.clone();
    /// left.observe(&[7_u32, 7, 1][..]);
    /// right.observe(&[7_u32, 2][..]);
    /// left.merge(&right)?;
    /// assert_eq!((left.observed(), left.top(1)[0].count), (5, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.check_like(other)?;
        // An item has the same place in both sieves only under the same hash.
        let has_same_places = self.secret == other.secret;
        let others_max = if has_same_places { 0 } else { other.table.alpha_max() };
        let others = |place| if has_same_places { other.table.alpha(place) } else { others_max };
        *self = self.rebuilt(SieveBounds {
            observed: self.observed.saturating_add(other.observed),
            counted: combine(self, other),
            alpha: |place| self.table.alpha(place).saturating_add(others(place)),
            line: self.table.line().saturating_add(other.table.line()),
        });
        Ok(())
    }

    /// A sieve of the same shape.
    fn rebuilt(&self, bounds: SieveBounds<K, impl Fn(usize) -> u64>) -> Self {
        let SieveBounds { observed, mut counted, alpha, line } = bounds;
        let slots = self.shape.slots();
        let dropped = keep_largest(&mut counted, slots);
        let mut sieve = self.to_empty();
        sieve.observed = observed;
        if counted.len() == slots {
            sieve.slack = self.shape.slack(observed);
            let line = line.max(dropped.first().map_or(0, |largest| largest.count));
            sieve.table.raise_line(line.max(sieve.slack));
            if line > sieve.slack {
                counted.iter_mut().for_each(|counted| counted.raise_to(line));
            }
            sieve.fill_alphas(alpha, &dropped);
        }
        sieve.fill(counted);
        sieve
    }

    fn fill_alphas(&mut self, alpha: impl Fn(usize) -> u64, dropped: &[Counted<K>]) {
        for place in 0..self.table.len() {
            self.table.set_alpha(place, alpha(place));
        }
        for counted in dropped {
            let place = self.table.place(self.index.key_of(counted.item.borrowed()));
            self.table.set_alpha(place, self.table.alpha(place).max(counted.count));
        }
    }

    /// Monitors these items in an empty sieve, which has room for all.
    fn fill(&mut self, counted: Vec<Counted<K>>) {
        self.counts.extend(counted.iter().map(|counted| counted.count));
        self.errors.extend(counted.iter().map(|counted| counted.error));
        let items = counted.into_iter().map(|counted| counted.item);
        self.index = ItemIndex::of(self.shape.slots(), self.index.secret().clone(), items);
        for key in self.index.items().map(K::key) {
            self.table.house(self.table.place(key), key, K::is_exact(key));
        }
    }
}

impl<K: Item> Summary<K> for Sieve<K> {
    fn estimate(&self, item: K::Ref<'_>) -> Option<Counted<&K>> {
        Sieve::estimate(self, item)
    }

    fn unmonitored(&self) -> impl Fn(&K) -> u64 {
        // The item may come from another summary and have a key under the secret of that summary.
        |item| self.table.alpha(self.table.place(self.index.key_of(item.borrowed())))
    }

    fn monitored_max(&self) -> usize {
        Sieve::monitored_max(self)
    }

    fn state_bytes_max(&self) -> usize {
        self.shape.state_bytes_max::<K>()
    }

    fn to_empty(&self) -> Self {
        Self::with_shape(self.isa, self.shape, self.secret)
    }

    fn check_like(&self, other: &Self) -> Result<(), MergeError> {
        MergeError::check("counters", self.counters(), other.counters())?;
        MergeError::check("cells", self.cells(), other.cells())
    }

    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        Sieve::merge(self, other)
    }

    fn scale_down(&mut self, bits: u32) {
        *self = self.rebuilt(SieveBounds {
            observed: scaled_up(self.observed, bits),
            counted: scaled(self.iter(), bits),
            alpha: |place| scaled_up(self.table.alpha(place), bits),
            line: scaled_up(self.table.line(), bits),
        });
    }
}

impl<K> Counted<K> {
    /// Raises the upper bound to `count` if the bound is lower.
    fn raise_to(&mut self, count: u64) {
        let raise = count.saturating_sub(self.count);
        self.count += raise;
        self.error += raise;
    }
}

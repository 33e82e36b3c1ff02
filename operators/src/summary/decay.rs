//! Counts that fade: an occurrence that is a half-life old counts half.
//!
//! Source: Cormode, Shkapenyuk, Srivastava, Xu, *Forward Decay: A Practical Time Decay Model for
//! Streaming Systems*, ICDE 2009, §3 and §5 (heavy hitters). Counts stay as they are while they
//! age. Instead, later items weigh more, and an answer divides by the present weight of an item;
//! only the ratio of two weights matters.
//!
//! # The curve
//!
//! Age is counted in steps of a 64th of a half-life. At step j, counted from the start of the
//! stream, an item weighs
//!
//! ```text
//! W(j) = c[j mod 64] * 2^(j div 64 - b)        c[r] = 2^(16 + r / 64), rounded to a whole number
//! ```
//!
//! The number b is the same for all counts. So the curve is a staircase that halves exactly in a
//! half-life, and that follows 2^(-age / half-life) within a step (1.1 %) and a rounding (below
//! 0.001 %). Weights are whole numbers. The *decayed count* of an item is exactly the sum of the W
//! of its occurrences, times their weights, divided by the present W.
//!
//! When the weight would reach 2^24, all counts are divided by a power of 2, so that b rises: once
//! in 8 half-lives, however long the stream is.
//!
//! # Guarantees
//!
//! With N and the true counts decayed, k counters: `count - error <= true count <= count`; errors
//! and the counts of unmonitored items are at most N / k + 2. Counts are whole numbers.
//!
//! 1. *Between divisions*, the summary sees a weighted stream and keeps its bounds: its N and its
//!    true counts are the decayed numbers times the present W.
//! 2. *A division* rounds upper bounds up and lower bounds down, so that they stay bounds. Errors
//!    and the line stay within N / k + 4 units ([`merge`](super::merge), [`sieve`](super::sieve)).
//!    N is rounded up, and is at most 2 units too large after any number of divisions.
//! 3. *An answer* divides by W and rounds outwards, which adds less than 1 to the count and less
//!    than 2 to the error. W is at least 2^16 units, so the units of (2) are less than a 10,000th
//!    in all.
//!
//! Sums have 64 bits. A sum saturates at a decayed weight of 2^40 in the window of the half-life,
//! and the bounds end there. A half-life of up to 2^38 items that weigh 1 stays below that weight.

use std::time::{Duration, Instant};

use super::contract::{Counts, Summary};
use super::counted::Counted;
use crate::shared::items::{Item, Items, Part};

/// Steps of a half-life.
const STEPS: u64 = 64;
/// Weights begin at 2^16, and counts are divided after `HALF_LIVES` half-lives.
const WEIGHT_BITS: i32 = 16;
const HALF_LIVES: u64 = 8;

/// The unit of age.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HalfLife {
    /// A number of items, at least 1.
    Items(u64),
    /// A time, more than none.
    Time(Duration),
}

/// The weights of items: of each item more than of the items before.
#[derive(Debug, Clone)]
pub(crate) struct Fading {
    half_life: HalfLife,
    /// c.
    curve: Vec<u64>,
    /// b.
    base: u64,
    /// The step of the newest item.
    step: u64,
    /// Items so far.
    position: u64,
    /// When the first batch entered.
    start: Option<Instant>,
    /// The step of the time at which the batch in hand entered.
    time: u64,
}

impl Fading {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "whole numbers from 2^16 to 2^17"
    )]
    pub(crate) fn new(half_life: HalfLife) -> Self {
        let rise = |step: u64| (step as f64 / STEPS as f64 + f64::from(WEIGHT_BITS)).exp2();
        let curve = (0..STEPS).map(|step| rise(step).round() as u64).collect();
        Self { half_life, curve, base: 0, step: 0, position: 0, start: None, time: 0 }
    }

    /// Notes the time at which the next items entered the stream.
    pub(crate) fn enter(&mut self, at: Instant) {
        self.time = self.step_of(at);
    }

    /// The step of the item at this position of the stream, and the position at which the next step
    /// begins.
    fn step_at(&self, position: u64, time: u64) -> (u64, u64) {
        let HalfLife::Items(half_life) = self.half_life else { return (time, u64::MAX) };
        let (position, half_life) = (u128::from(position), u128::from(half_life));
        let step = position * u128::from(STEPS) / half_life;
        let next = ((step + 1) * half_life).div_ceil(u128::from(STEPS));
        let narrow = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        (narrow(step), narrow(next))
    }

    /// The step of this time. Steps do not go back.
    fn step_of(&mut self, entered: Instant) -> u64 {
        let HalfLife::Time(half_life) = self.half_life else { return 0 };
        let start = *self.start.get_or_insert(entered);
        let age = entered.saturating_duration_since(start).as_nanos();
        let step = age.saturating_mul(STEPS.into()) / half_life.as_nanos();
        u64::try_from(step).unwrap_or(u64::MAX).max(self.step)
    }

    /// W of a step that is less than 8 half-lives above the base.
    fn weight_of(&self, step: u64) -> u64 {
        let remainder = usize::try_from(step % STEPS).expect("below 64");
        self.curve[remainder] << (step / STEPS - self.base)
    }

    /// W of the newest item: a decayed count is a sum of weights divided by this one.
    pub(crate) fn weight(&self) -> u64 {
        self.weight_of(self.step)
    }

    /// The bits by which all counts are divided before the next items are counted, if their weights
    /// would become too large otherwise.
    pub(crate) fn rebase(&mut self) -> Option<u32> {
        let base = self.step_at(self.position, self.time).0 / STEPS;
        let bits = base - self.base;
        if bits < HALF_LIVES {
            return None;
        }
        self.base = base;
        Some(u32::try_from(bits).unwrap_or(u32::MAX))
    }

    /// Writes the weights of the next items to `buffer`, up to `len` weights and as long as b can
    /// stay, and passes over these items. The caller has called [`Self::rebase`].
    pub(crate) fn fill(&mut self, buffer: &mut Vec<u64>, len: usize) {
        buffer.clear();
        while buffer.len() < len {
            let (step, next) = self.step_at(self.position, self.time);
            if step / STEPS - self.base >= HALF_LIVES {
                break;
            }
            let left = len - buffer.len();
            let run = usize::try_from(next - self.position).unwrap_or(left).min(left);
            buffer.resize(buffer.len() + run, self.weight_of(step));
            self.position = self.position.saturating_add(run as u64);
            self.step = step;
        }
    }

    /// Multiplies the weights of a batch by the weights of its items.
    pub(crate) fn multiply(buffer: &mut [u64], own: &[u64]) {
        buffer.iter_mut().zip(own).for_each(|(sum, &own)| *sum = sum.saturating_mul(own));
    }

    fn state_bytes(&self) -> usize {
        self.curve.capacity() * size_of::<u64>()
    }
}

/// The decayed counts of a counter whose counts are sums of weights, with W of the newest item.
/// Upper bounds are rounded up, and lower bounds down.
pub(crate) fn faded<K>(counted: Counted<K>, weight: u64) -> Counted<K> {
    let least = counted.count_min() / weight;
    let count = counted.count.div_ceil(weight);
    Counted { item: counted.item, count, error: count - least }
}

/// A summary of counts that fade.
#[derive(Debug)]
pub(crate) struct Decayed<S> {
    summary: S,
    fading: Fading,
    /// The weights of a batch.
    weights: Vec<u64>,
}

impl<S> Decayed<S> {
    /// A summary of counts that fade, around an empty summary.
    pub(crate) fn new(empty: S, half_life: HalfLife) -> Self {
        Self { summary: empty, fading: Fading::new(half_life), weights: Vec::new() }
    }
}

/// Counts as of the newest item.
impl<K: Item, S: Summary<K>> Counts<K> for Decayed<S> {
    fn enter(&mut self, at: Instant) {
        self.fading.enter(at);
    }

    fn observe<B: Items<K> + ?Sized>(&mut self, batch: &B, weights: Option<&[u64]>) {
        let mut buffer = std::mem::take(&mut self.weights);
        let mut done = 0;
        while done < batch.len() {
            if let Some(bits) = self.fading.rebase() {
                self.summary.scale_down(bits);
            }
            self.fading.fill(&mut buffer, batch.len() - done);
            let end = done + buffer.len();
            if let Some(weights) = weights {
                Fading::multiply(&mut buffer, &weights[done..end]);
            }
            self.summary.observe(&Part::new(batch, done..end), Some(&buffer));
            done = end;
        }
        self.weights = buffer;
    }

    fn iter(&self) -> impl Iterator<Item = Counted<&K>> {
        let weight = self.fading.weight();
        self.summary.iter().map(move |counted| faded(counted, weight))
    }

    fn count_min(&self) -> u64 {
        self.summary.count_min().div_ceil(self.fading.weight())
    }

    /// Rounded up.
    fn observed(&self) -> u64 {
        self.summary.observed().div_ceil(self.fading.weight())
    }

    fn state_bytes(&self) -> usize {
        let weights = self.weights.capacity() * size_of::<u64>();
        size_of::<Self>() + self.summary.state_bytes() + self.fading.state_bytes() + weights
    }
}

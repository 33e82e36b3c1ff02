//! Streams of items that are hard to count in different ways.

use proptest::prelude::*;

/// Kinds of streams, each over small numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Uniform,
    /// Frequencies fall with the rank to this power.
    Skewed(f64),
    Sorted,
    /// Every item is new.
    Distinct,
    Alternating,
    /// One more item than there are counters, in turn.
    RoundRobin(u64),
    /// The heavy item changes half-way.
    Changing,
}

pub(crate) fn kinds(counters: u64) -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Uniform),
        (0.0..5.0).prop_map(Kind::Skewed),
        Just(Kind::Sorted),
        Just(Kind::Distinct),
        Just(Kind::Alternating),
        Just(Kind::RoundRobin(counters + 1)),
        Just(Kind::Changing),
    ]
}

/// `len` items of this kind; `seed` chooses among the random ones.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "small positive numbers"
)]
pub(crate) fn stream(kind: Kind, len: u64, seed: u64) -> Vec<u64> {
    const ALPHABET: u64 = 500;
    let mut state = seed | 1;
    let mut random = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    };
    let mut items: Vec<u64> = (0..len)
        .map(|position| match kind {
            Kind::Uniform | Kind::Sorted => (random() * ALPHABET as f64) as u64,
            Kind::Skewed(power) => (random().powf(1.0 + 2.0 * power) * ALPHABET as f64) as u64,
            Kind::Distinct => position,
            Kind::Alternating => position % 2,
            Kind::RoundRobin(items) => position % items,
            Kind::Changing if random() < 0.6 => u64::from(position > len / 2),
            Kind::Changing => (random() * ALPHABET as f64) as u64,
        })
        .collect();
    if let Kind::Sorted = kind {
        items.sort_unstable();
    }
    items
}

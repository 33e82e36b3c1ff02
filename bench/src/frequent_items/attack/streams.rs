//! Streams crafted against known hash functions, each with a random stream of the same shape.
//!
//! Multiplication by 2^64 over the golden ratio, and rapidhash without secrets, are common
//! choices for hash tables; their collisions are easy to find.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray, UInt64Array};
use rapidhash::v3::rapidhash_v3;

/// 2^64 over the golden ratio, the multiplier of Fibonacci hashing, and its inverse.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
const INVERSE: u64 = inverse(MULTIPLIER);
/// Bits of the hash shared by crafted texts and tokens: one in 16,000 candidates has them.
const SHARED_BITS: u32 = 14;

/// Inverse of `odd` modulo 2^64 by Newton's method, which doubles the correct bits per step; an
/// odd number is its own inverse in 3 bits.
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut round = 0;
    while round < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
}

/// Repeatable pseudo-random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(MULTIPLIER);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// Crafted and random stream of the same shape: items at two positions are equal in both or in
/// neither.
pub(super) struct Attack {
    pub(super) name: String,
    pub(super) counters: usize,
    pub(super) crafted: ArrayRef,
    pub(super) random: ArrayRef,
}

/// Order of the distinct items.
#[derive(Clone, Copy)]
enum Order {
    RoundRobin,
    Random,
}

impl Order {
    /// Indices of `distinct` items.
    fn indices(self, distinct: usize, len: usize) -> Vec<usize> {
        let mut random = Random(3);
        let mut next = |i: usize| match self {
            Self::RoundRobin => i % distinct,
            Self::Random => usize::try_from(random.next() % distinct as u64).expect("it fits"),
        };
        (0..len).map(&mut next).collect()
    }
}

/// Crafted streams of about `len` items.
pub(super) fn attacks(len: usize) -> Vec<Attack> {
    let mut attacks = Vec::new();
    for distinct in [1_000, 2_000, 20_000] {
        let name = format!("{distinct} integers of one product");
        attacks.push(integers(name, 1_000, colliding(distinct, 44), Order::RoundRobin, len));
    }
    for (name, step) in [("Fibonacci 40", 102_334_155), ("Fibonacci 30", 832_040)] {
        let items = (0..20_000).map(|i: u64| i.wrapping_mul(step)).collect();
        let name = format!("20000 integers, steps of {name}");
        attacks.push(integers(name, 1_000, items, Order::Random, len));
    }
    let distinct = len.min(1_000_000);
    let name = format!("{distinct} integers of one product, once");
    attacks.push(integers(name, 1_000_000, colliding(distinct, 36), Order::RoundRobin, distinct));
    let shares = |text: &str| hash(text).wrapping_mul(MULTIPLIER) >> (64 - SHARED_BITS) == 0;
    attacks.push(texts("8000 texts of one product", 8_000, shares, len / 5));
    attacks
}

/// Lines of 14 tokens each, from 14,000 distinct tokens that share the lower bits of their hash.
pub(super) fn tokens(len: usize) -> Attack {
    let shares = |text: &str| hash(text) & ((1 << SHARED_BITS) - 1) == 0;
    let Attack { name, counters, crafted, random } =
        texts("14000 tokens of equal lower bits, into sets", 14_000, shares, len / 5);
    let lines = |tokens: &ArrayRef| -> ArrayRef {
        let tokens: &StringArray = tokens.as_any().downcast_ref().expect("a column of texts");
        let tokens: Vec<&str> = tokens.iter().flatten().collect();
        Arc::new(StringArray::from_iter_values(tokens.chunks(14).map(|line| line.join(" "))))
    };
    Attack { name, counters, crafted: lines(&crafted), random: lines(&random) }
}

fn hash(text: &str) -> u64 {
    rapidhash_v3(text.as_bytes())
}

/// Distinct integers whose product with the multiplier is below 2^bits.
fn colliding(distinct: usize, bits: u32) -> Vec<u64> {
    let mut random = Random(1);
    let mut seen = HashSet::new();
    let products = std::iter::repeat_with(|| random.next() >> (64 - bits));
    products.filter(|&p| seen.insert(p)).take(distinct).map(|p| p.wrapping_mul(INVERSE)).collect()
}

fn integers(name: String, counters: usize, items: Vec<u64>, order: Order, len: usize) -> Attack {
    let mut random = Random(2);
    let others: Vec<u64> = items.iter().map(|_| random.next() >> 2).collect();
    let indices = order.indices(items.len(), len);
    let column = |items: &[u64]| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(indices.iter().map(|&index| items[index])))
    };
    Attack { name, counters, crafted: column(&items), random: column(&others) }
}

/// Paths as an access log has them; the crafted ones are the first that have the property.
fn texts(name: &str, distinct: usize, is_crafted: impl Fn(&str) -> bool, len: usize) -> Attack {
    let path = |i: usize| format!("/page/{i:09}");
    let mut crafted = Vec::with_capacity(distinct);
    let mut text = path(0);
    while crafted.len() < distinct {
        if is_crafted(&text) {
            crafted.push(text.clone());
        }
        text = successor(text);
    }
    let others: Vec<String> = (0..distinct).map(|i| path(i * 21_121)).collect();
    let indices = Order::Random.indices(distinct, len);
    let column = |texts: &[String]| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(indices.iter().map(|&index| &texts[index])))
    };
    let (name, counters) = (name.to_owned(), 1_000);
    Attack { name, counters, crafted: column(&crafted), random: column(&others) }
}

/// The path with the next number; formatting each would take most of the search.
fn successor(path: String) -> String {
    let mut bytes = path.into_bytes();
    for digit in bytes.iter_mut().rev() {
        if *digit != b'9' {
            *digit += 1;
            break;
        }
        *digit = b'0';
    }
    String::from_utf8(bytes).expect("digits are")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crafted_streams_collide_under_the_hash_that_they_are_made_for() {
        assert_eq!(MULTIPLIER.wrapping_mul(INVERSE), 1);
        for item in colliding(100, 44) {
            assert_eq!(item.wrapping_mul(MULTIPLIER) >> 44, 0);
        }
        let Attack { crafted, random, .. } =
            texts("x", 5, |text| hash(text).is_multiple_of(100), 50);
        assert_eq!((crafted.len(), random.len()), (50, 50));
        assert_eq!(successor("/page/000000199".to_owned()), "/page/000000200");
    }
}

//! Registers of ids, as a trait that each level implements.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod lines;
mod portable;

pub(super) use self::lines::{LINE, Lines};

use crate::Isa;

/// Ids and halves of a block.
pub(super) const BLOCK: usize = 16;

/// A level that works on blocks of 16 ids.
pub(super) trait Blocks: Lines {
    /// The name of the level.
    const ISA: Isa;

    /// Whether one of the first `len` halves of the block (all if `len` is larger) is `half`.
    fn has(self, block: &[u16; BLOCK], len: usize, half: u16) -> bool;

    /// Bit `i`: whether id `i` of `left` is in `right`.
    fn common(self, left: &[u32; BLOCK], right: &[u32; BLOCK]) -> u32;

    /// Writes the ids with these lower halves and this upper half.
    #[inline(always)]
    fn widen(self, halves: &[u16; BLOCK], upper: u16, ids: &mut [u32; BLOCK]) {
        for (id, &half) in ids.iter_mut().zip(halves) {
            *id = u32::from(upper) << 16 | u32::from(half);
        }
    }

    /// Bit `i`: whether the bit of id `i` is set in `words`; false past their end.
    #[inline(always)]
    fn test(self, ids: &[u32; BLOCK], words: &[u32]) -> u32 {
        let mut hits = 0;
        for (lane, &id) in ids.iter().enumerate() {
            let word = words.get((id / 32) as usize).copied().unwrap_or(0);
            hits |= (word >> (id % 32) & 1) << lane;
        }
        hits
    }

    /// Writes the ids whose bits are set in `hits` to the front of `kept`, in their order; all
    /// later ids of `kept` may be overwritten.
    #[inline(always)]
    fn keep(self, ids: &[u32; BLOCK], hits: u32, kept: &mut [u32; BLOCK]) {
        let mut end = 0;
        for (lane, &id) in ids.iter().enumerate() {
            // Every id is stored, and the next one overwrites it if it is no hit. The remainder
            // changes nothing, and tells the compiler that the index is in range.
            kept[end % BLOCK] = id;
            end += (hits >> lane & 1) as usize;
        }
    }

    /// Writes the ids `base + i` of the bits `i` of a word to the front of `ids`; all later ids of
    /// `ids` may be overwritten.
    #[inline(always)]
    fn ids_of(self, base: u32, mut word: u32, ids: &mut [u32; 32]) {
        let mut end = 0;
        while word != 0 {
            ids[end % 32] = base + word.trailing_zeros();
            end += 1;
            word &= word - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{RunOn, Scalar, Vp2Intersect, dispatch};

    /// Halves of blocks are below this number.
    const HALVES: u16 = 20;

    /// The first id of the last word of a bitmap.
    const LAST_WORD: u32 = u32::MAX - 31;

    /// All operations of a level on a block.
    struct All<'a> {
        ids: &'a [u32; BLOCK],
        others: &'a [u32; BLOCK],
        halves: &'a [u16; BLOCK],
        words: &'a [u32],
        hits: u32,
    }

    #[derive(Debug, PartialEq)]
    struct Found {
        /// Bit `h` of each length: whether the first halves have `h`.
        has: [u32; BLOCK + 1],
        common: u32,
        tested: u32,
        kept: Vec<u32>,
        wide: [u32; BLOCK],
        ids: Vec<u32>,
    }

    impl<L: Blocks> RunOn<L, Found> for All<'_> {
        #[inline(always)]
        fn run_on(self, level: L) -> Found {
            let Self { ids, others, halves, words, hits } = self;
            let mut has = [0; BLOCK + 1];
            for (len, has) in (0..).zip(&mut has) {
                for half in 0..HALVES {
                    *has |= u32::from(level.has(halves, len, half)) << half;
                }
            }
            let (mut kept, mut wide, mut of_word) = ([0; BLOCK], [0; BLOCK], [0; 32]);
            level.keep(ids, hits & 0xffff, &mut kept);
            level.widen(halves, 0xfffe, &mut wide);
            level.ids_of(LAST_WORD, hits, &mut of_word);
            Found {
                has,
                common: level.common(ids, others),
                tested: level.test(ids, words),
                kept: kept[..(hits & 0xffff).count_ones() as usize].to_vec(),
                wide,
                ids: of_word[..hits.count_ones() as usize].to_vec(),
            }
        }
    }

    /// The level without blocks runs plain loops.
    impl RunOn<Scalar, Found> for All<'_> {
        fn run_on(self, _: Scalar) -> Found {
            let Self { ids, others, halves, words, hits } = self;
            let lanes = |is: &dyn Fn(u32) -> bool| {
                ids.iter().enumerate().map(|(lane, &id)| u32::from(is(id)) << lane).sum()
            };
            let is_set = |id: u32| {
                words.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
            };
            let hits: Vec<usize> = (0..32).filter(|bit| hits >> bit & 1 == 1).collect();
            Found {
                has: std::array::from_fn(|len| {
                    halves[..len].iter().fold(0, |bits, half| bits | 1 << half)
                }),
                common: lanes(&|id| others.contains(&id)),
                tested: lanes(&is_set),
                kept: hits.iter().filter_map(|&lane| ids.get(lane)).copied().collect(),
                wide: halves.map(|half| 0xfffe_0000 + u32::from(half)),
                ids: hits.iter().map(|&bit| LAST_WORD + u32::try_from(bit).unwrap()).collect(),
            }
        }
    }

    #[test]
    fn all_levels_agree_with_plain_loops() {
        let mut state = 1_u64;
        let mut number = |end: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u32::try_from((u64::from(end) * (state >> 32)) >> 32).unwrap()
        };
        for round in 0..500 {
            // The last round has ids past the words, up to the largest one.
            let end = if round == 499 { u32::MAX } else { 700 };
            let mut ascending = || {
                let mut ids = [0; BLOCK].map(|_: u32| number(end));
                ids.sort_unstable();
                ids
            };
            let (ids, others) = (&ascending(), &ascending());
            let halves = &[0; BLOCK].map(|_: u16| u16::try_from(number(HALVES.into())).unwrap());
            let words: &Vec<u32> = &(0..20).map(|_| number(u32::MAX)).collect();
            let hits = [0, u32::MAX, number(u32::MAX), 1 << number(32)][round % 4];
            let all = || All { ids, others, halves, words, hits };
            let right = dispatch::<Vp2Intersect, _>(Isa::Scalar, all());
            for isa in Isa::available() {
                assert_eq!(dispatch::<Vp2Intersect, _>(isa, all()), right, "{isa}");
            }
        }
    }
}

//! Rows in registers of AVX2.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_blend_epi32, _mm256_blendv_epi8, _mm256_cmpgt_epi32,
    _mm256_max_epu32, _mm256_min_epu32, _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32,
    _mm256_set1_epi32, _mm256_setr_epi32, _mm256_shuffle_epi32,
};

use super::{SortLists, range};
use crate::simd::{Avx2, Avx512, RunOn, avx2};

/// Tokens of a row.
const LANES: usize = 8;
/// Rows of the longest list that this module sorts: 4 KiB, which stay in the first-level cache.
const ROWS_MAX: usize = 128;
/// Rows that stay in registers.
const REGISTERS: usize = 8;
/// Least tokens of a list that is tested for its order, and skipped if it is sorted: the test of a
/// list costs a misprediction.
const LOOK_MIN: usize = 2 * LANES;

impl RunOn<Avx2> for SortLists<'_> {
    #[inline(always)]
    fn run_on(self, simd: Avx2) {
        let Self { offsets, tokens } = self;
        let mut rows = [TokenRow::largest(simd); ROWS_MAX];
        for ends in offsets.windows(2) {
            let list = &mut tokens[range(ends)];
            if list.len() > LOOK_MIN && list.is_sorted() {
                continue;
            }
            match list.len().div_ceil(LANES) {
                0 => {}
                1 => sort_short(simd, list),
                2 => sort(simd, list, &mut [TokenRow::largest(simd); 2]),
                3 => sort(simd, list, &mut [TokenRow::largest(simd); 3]),
                4 => sort(simd, list, &mut [TokenRow::largest(simd); 4]),
                5 => sort(simd, list, &mut [TokenRow::largest(simd); 5]),
                6 => sort(simd, list, &mut [TokenRow::largest(simd); 6]),
                7 => sort(simd, list, &mut [TokenRow::largest(simd); 7]),
                REGISTERS => sort(simd, list, &mut [TokenRow::largest(simd); REGISTERS]),
                count if count <= ROWS_MAX => sort_long(simd, list, &mut rows[..count]),
                _ => list.sort_unstable(),
            }
        }
    }
}

impl<E> RunOn<Avx512<E>> for SortLists<'_> {
    #[inline(always)]
    fn run_on(self, simd: Avx512<E>) {
        self.run_on(simd.avx2());
    }
}

/// Sorts a list of one row or less.
#[inline(always)]
fn sort_short(simd: Avx2, list: &mut [u32]) {
    let row = TokenRow::load_part(simd, list).sorted();
    simd.store_part_u32(row.0, list);
}

/// Sorts a list in `rows`, two or more; the last row may be partly filled.
#[inline(always)]
fn sort(simd: Avx2, list: &mut [u32], rows: &mut [TokenRow]) {
    load(simd, list, rows);
    merge_runs(rows, 1);
    store(simd, rows, list);
}

/// Sorts a list in more rows than there are registers for.
#[inline(always)]
fn sort_long(simd: Avx2, list: &mut [u32], rows: &mut [TokenRow]) {
    load(simd, list, rows);
    let (parts, rest) = rows.as_chunks_mut::<REGISTERS>();
    for part in parts {
        let mut in_registers = *part;
        merge_runs(&mut in_registers, 1);
        *part = in_registers;
    }
    merge_runs(rest, 1);
    merge_runs(rows, REGISTERS);
    store(simd, rows, list);
}

/// Loads a list into rows, and sorts each row.
#[inline(always)]
fn load(simd: Avx2, list: &[u32], rows: &mut [TokenRow]) {
    let last = rows.len() - 1;
    let (whole, _) = list.as_chunks::<LANES>();
    for (row, tokens) in rows[..last].iter_mut().zip(whole) {
        *row = TokenRow(simd.load_u32(tokens), simd).sorted();
    }
    rows[last] = TokenRow::load_part(simd, &list[last * LANES..]).sorted();
}

/// Merges sorted runs of `run` rows, a power of two, until one run is left.
#[inline(always)]
fn merge_runs(rows: &mut [TokenRow], mut run: usize) {
    while run < rows.len() {
        let mut begin = 0;
        while begin + run < rows.len() {
            let end = rows.len().min(begin + 2 * run);
            merge(&mut rows[begin..end], run);
            begin = end;
        }
        run *= 2;
    }
}

/// Writes two rows or more to a list that ends in the last row.
#[inline(always)]
fn store(simd: Avx2, rows: &[TokenRow], list: &mut [u32]) {
    let last = rows.len() - 1;
    let rest_len = list.len() - last * LANES;
    let (whole, _) = list.as_chunks_mut::<LANES>();
    for (row, tokens) in rows[..last].iter().zip(whole) {
        simd.store_u32(row.0, tokens);
    }
    // The last store ends with the list: a longer store, even if masked, would let the load of the
    // next list wait.
    let end = list.last_chunk_mut().expect("there are two rows");
    simd.store_u32(rows[last - 1].followed_by(rows[last], rest_len).0, end);
}

/// Merges a sorted run of `run` rows, a power of two, with a run of at most as many rows.
#[inline(always)]
fn merge(rows: &mut [TokenRow], run: usize) {
    for place in run..rows.len() {
        let mirrored = 2 * run - 1 - place;
        (rows[mirrored], rows[place]) = rows[mirrored].exchanged(rows[place].reversed());
    }
    let mut distance = run / 2;
    while distance > 0 {
        let mut begin = 0;
        while begin + distance < rows.len() {
            for place in begin..(begin + distance).min(rows.len() - distance) {
                let far = place + distance;
                (rows[place], rows[far]) = rows[place].exchanged(rows[far]);
            }
            begin += 2 * distance;
        }
        distance /= 2;
    }
    for row in rows {
        *row = row.merged();
    }
}

/// Eight tokens.
#[derive(Clone, Copy)]
struct TokenRow(__m256i, Avx2);

/// Compares each lane of `$row` with the same lane of `$partners`, and keeps one of the two tokens:
/// the larger token where the bit of the lane is set in `$back`, the smaller token elsewhere.
macro_rules! round {
    ($row:expr, $back:literal, $partners:expr) => {{
        let (smaller, larger) = $row.exchanged($partners);
        TokenRow(avx2!(larger.1, _mm256_blend_epi32::<$back>(smaller.0, larger.0)), larger.1)
    }};
}

impl TokenRow {
    /// A row of the largest token.
    #[inline(always)]
    fn largest(simd: Avx2) -> Self {
        Self(avx2!(simd, _mm256_set1_epi32(-1)), simd)
    }

    /// Up to eight tokens, and then the largest token in all further lanes.
    #[inline(always)]
    fn load_part(simd: Avx2, tokens: &[u32]) -> Self {
        let Self(largest, _) = Self::largest(simd);
        Self(simd.load_part_u32(tokens, largest), simd)
    }

    /// The smaller tokens of each lane, and the larger tokens.
    #[inline(always)]
    fn exchanged(self, other: Self) -> (Self, Self) {
        let Self(tokens, simd) = self;
        let smaller = avx2!(simd, _mm256_min_epu32(tokens, other.0));
        (Self(smaller, simd), Self(avx2!(simd, _mm256_max_epu32(tokens, other.0)), simd))
    }

    /// The row with the lanes of each half in the order of `ORDER`, two bits for each place.
    #[inline(always)]
    fn shuffled<const ORDER: i32>(self) -> Self {
        Self(avx2!(self.1, _mm256_shuffle_epi32::<ORDER>(self.0)), self.1)
    }

    /// The row with its halves exchanged.
    #[inline(always)]
    fn halves_exchanged(self) -> Self {
        Self(avx2!(self.1, _mm256_permute4x64_epi64::<0x4e>(self.0)), self.1)
    }

    /// The row from the last lane to the first.
    #[inline(always)]
    fn reversed(self) -> Self {
        self.shuffled::<0x1b>().halves_exchanged()
    }

    /// The row with its tokens sorted.
    #[inline(always)]
    fn sorted(self) -> Self {
        let pairs = round!(self, 0xaa, self.shuffled::<0xb1>());
        let fours = round!(pairs, 0xcc, pairs.shuffled::<0x1b>());
        let fours = round!(fours, 0xaa, fours.shuffled::<0xb1>());
        let eight = round!(fours, 0xf0, fours.reversed());
        eight.halves_merged()
    }

    /// The row with its tokens sorted; the row must be bitonic.
    #[inline(always)]
    fn merged(self) -> Self {
        round!(self, 0xf0, self.halves_exchanged()).halves_merged()
    }

    /// The row with sorted halves; the halves must be bitonic.
    #[inline(always)]
    fn halves_merged(self) -> Self {
        let pairs = round!(self, 0xcc, self.shuffled::<0x4e>());
        round!(pairs, 0xaa, pairs.shuffled::<0xb1>())
    }

    /// Returns a row of the tokens from lane `begin` on, at most 8, filled up with the first tokens
    /// of `next`.
    #[inline(always)]
    fn followed_by(self, next: Self, begin: usize) -> Self {
        let Self(tokens, simd) = self;
        let begin = i32::try_from(begin).expect("a row has eight places");
        let lanes = avx2!(simd, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        // Only the lowest three bits of a place choose the lane.
        let places = avx2!(simd, _mm256_add_epi32(lanes, _mm256_set1_epi32(begin)));
        let front = avx2!(simd, _mm256_permutevar8x32_epi32(tokens, places));
        let back = avx2!(simd, _mm256_permutevar8x32_epi32(next.0, places));
        let is_next = avx2!(simd, _mm256_cmpgt_epi32(places, _mm256_set1_epi32(7)));
        Self(avx2!(simd, _mm256_blendv_epi8(front, back, is_next)), simd)
    }
}

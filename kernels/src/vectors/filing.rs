//! The order of points in strips: two passes that move them, and one over each strip.
//!
//! ```text
//! rows ─► groups of 128 strips ─► records in strips ─► cells of a strip ─► order, coordinates,
//!         a pass over all         a group in the cache    counted             stored form, ranges
//! ```
//!
//! A pass writes to as many places as it has groups or strips, which are lines of the cache; all
//! strips at once were too many.

use std::mem::replace;
use std::ops::Range;

use super::directory::Directory;
use super::grid::{Grid, nearest};
use super::lanes::{Filter, LANES, Line, as_u32};
use super::order::{NO_ROW, Run, positions_of};
use super::rows::by_dims;
use crate::Isa;
use crate::simd::{Base, Call, RunOn, dispatch};

/// Rows whose strips are looked at before they are moved.
const LOOKED_AT: usize = 1024;
/// Binary logarithm of the strips of a group.
const GROUP_BITS: u32 = 7;

/// Points of consecutive strips in their order.
#[derive(Debug)]
pub(super) struct Filed {
    /// The first leaf of each strip, from the first one of the run.
    pub(super) firsts: Vec<u32>,
    /// For each leaf the least coordinate along its strip of its points and of later ones, and the
    /// greatest one of its points and of earlier ones.
    pub(super) ranges: Vec<[f32; 2]>,
    /// Whether the stored form of all points is exact.
    pub(super) is_exact: bool,
}

/// Memory for the order of a group.
#[derive(Default)]
struct Scratch {
    /// The end of the records of each strip so far.
    ends: Vec<u32>,
    /// For each record the row and the bits of its coordinates.
    records: Vec<u32>,
    /// The coordinate along the strip and the cell of each record of a strip.
    values: Vec<f32>,
    cells: Vec<u16>,
    /// The end of the records of each cell so far.
    cell_ends: Vec<u32>,
}

/// Orders the points of a run of strips, in the stored form of `frame` too.
pub(super) fn file(
    isa: Isa,
    grid: &Grid,
    frame: &Directory,
    run: Run<'_>,
    tiles: &mut [Line],
) -> Filed {
    let (dims, words) = (frame.dims, frame.words);
    let mut filed = Filed { firsts: Vec::new(), ranges: Vec::new(), is_exact: true };
    filed.firsts.reserve_exact(run.counts.len());
    filed.ranges.reserve_exact(run.order.len() / LANES);
    let Run { vectors, buckets, first, counts, order, rows } = run;
    let groups = counts.chunks(1 << GROUP_BITS);
    let positions = |counts: &[u32]| counts.iter().copied().map(positions_of).sum::<usize>();
    let begins = groups.clone().scan(0, |end, counts| {
        let begin = *end;
        *end += positions(counts);
        Some(begin)
    });
    let begins: Vec<usize> = begins.collect();
    let mut ends = begins.clone();
    let to = Run { vectors, buckets, first, counts, order: &mut *order, rows: &mut *rows };
    dispatch::<Base, _>(isa, Scatter { run: to, ends: &mut ends });
    let mut scratch = Scratch::default();
    for ((counts, &begin), group) in groups.zip(&begins).zip(0..) {
        let end = begin + positions(counts);
        let rows = &mut rows[begin * dims..end * dims];
        let call = FileGroup {
            grid,
            first: u32::from(first) + (group << GROUP_BITS),
            counts,
            order: &mut order[begin..end],
            rows: &mut *rows,
            filed: &mut filed,
            scratch: &mut scratch,
        };
        dispatch::<Base, _>(isa, call);
        let lines = &mut tiles[begin / LANES * words..end / LANES * words];
        filed.is_exact &= frame.form.store(isa, rows, dims, words, lines);
    }
    filed
}

/// Moves the rows of a run to their groups, of which `ends` are the ends so far.
struct Scatter<'a, 'b> {
    run: Run<'a>,
    ends: &'b mut [usize],
}

impl Call for Scatter<'_, '_> {
    type Output = ();
}

impl<L: Filter> RunOn<L> for Scatter<'_, '_> {
    #[inline(always)]
    fn run_on(self, level: L) {
        by_dims!(self.run.vectors.dims(), scatter(level, self));
    }
}

#[inline(always)]
fn scatter<const D: usize>(level: impl Filter, call: Scatter<'_, '_>) {
    let Scatter { run: Run { vectors, buckets, first, counts, order, rows }, ends } = call;
    let dims = if D == 0 { vectors.dims() } else { D };
    let mut chosen = [0; LOOKED_AT + LANES];
    let strips = as_u32(counts.len());
    let strip = |bucket: u16| u32::from(bucket.wrapping_sub(first));
    let blocks = buckets.chunks(LOOKED_AT).zip(vectors.values().chunks(LOOKED_AT * dims));
    for (begin, (buckets, values)) in (0..).step_by(LOOKED_AT).zip(blocks) {
        let mut len = 0;
        let (lines, rest) = buckets.as_chunks();
        for (at, line) in (0..).step_by(LANES).zip(lines) {
            let line: &[u16; LANES] = line;
            let hits = level.below(&line.map(strip), strips);
            let kept = chosen[len..].first_chunk_mut().expect("there is room for a line");
            level.keep::<0>(at, hits, kept);
            len += hits.count_ones() as usize;
        }
        for (at, &bucket) in (as_u32(buckets.len() - rest.len())..).zip(rest) {
            chosen[len] = at;
            len += usize::from(strip(bucket) < strips);
        }
        for &at in &chosen[..len] {
            let end = &mut ends[(strip(buckets[at as usize]) >> GROUP_BITS) as usize];
            order[*end] = begin + at;
            rows[*end * dims..][..dims].copy_from_slice(&values[at as usize * dims..][..dims]);
            *end += 1;
        }
    }
}

/// Orders the points of a group, which are in any order.
struct FileGroup<'a> {
    grid: &'a Grid,
    /// The first strip, and the points of each.
    first: u32,
    counts: &'a [u32],
    order: &'a mut [u32],
    rows: &'a mut [f32],
    filed: &'a mut Filed,
    scratch: &'a mut Scratch,
}

impl Call for FileGroup<'_> {
    type Output = ();
}

impl<L> RunOn<L> for FileGroup<'_> {
    #[inline(always)]
    fn run_on(self, _: L) {
        if !self.order.is_empty() {
            by_dims!(self.rows.len() / self.order.len(), file_group(self));
        } else {
            let first = as_u32(self.filed.ranges.len());
            self.filed.firsts.extend(self.counts.iter().map(|_| first));
        }
    }
}

#[inline(always)]
fn file_group<const D: usize>(call: FileGroup<'_>) {
    let FileGroup { grid, first, counts, order, rows, filed, scratch } = call;
    let dims = if D == 0 { rows.len() / order.len() } else { D };
    let Scratch { ends, records, .. } = scratch;
    ends.clear();
    let mut points = 0;
    for &count in counts {
        ends.push(points);
        points += count;
    }
    let points = points as usize;
    // Old records are overwritten.
    records.resize(points * (dims + 1), 0);
    for (&row, values) in order[..points].iter().zip(rows.chunks_exact(dims)) {
        let end = &mut ends[(grid.strip_of(values) - first) as usize];
        let record = &mut records[*end as usize * (dims + 1)..][..dims + 1];
        record[0] = row;
        for (bits, value) in record[1..].iter_mut().zip(values) {
            *bits = value.to_bits();
        }
        *end += 1;
    }
    let (mut at, mut record) = (0, 0);
    for &count in counts {
        filed.firsts.push(as_u32(filed.ranges.len()));
        if count > 0 {
            let (end, count) = (at + positions_of(count), count as usize);
            let (order, rows) = (&mut order[at..end], &mut rows[at * dims..end * dims]);
            order_strip::<D>(grid.along(), record..record + count, order, rows, scratch);
            find_ranges::<D>(grid.along(), dims, rows, &mut filed.ranges);
            (at, record) = (end, record + count);
        }
    }
}

/// The least and greatest of some numbers.
#[inline(always)]
fn extent(values: &[f32]) -> (f32, f32) {
    let (mut lows, mut highs) = ([f32::MAX; LANES], [f32::MIN; LANES]);
    let (lines, rest) = values.as_chunks();
    let mut widen = |line: &[f32; LANES]| {
        for lane in 0..LANES {
            lows[lane] = if line[lane] < lows[lane] { line[lane] } else { lows[lane] };
            highs[lane] = if line[lane] > highs[lane] { line[lane] } else { highs[lane] };
        }
    };
    lines.iter().for_each(&mut widen);
    if let (true, Some(&last)) = (!rest.is_empty(), values.last()) {
        let mut line = [last; LANES];
        line[..rest.len()].copy_from_slice(rest);
        widen(&line);
    }
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            let (low, high) = (lows[lane + half], highs[lane + half]);
            lows[lane] = if low < lows[lane] { low } else { lows[lane] };
            highs[lane] = if high > highs[lane] { high } else { highs[lane] };
        }
    }
    (lows[0], highs[0])
}

/// Orders records by cells of their strip, about one a point: points of one cell have any order.
/// Positions without a point repeat the last one.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a strip has at most 2^15 cells")]
fn order_strip<const D: usize>(
    along: usize,
    records: Range<usize>,
    order: &mut [u32],
    rows: &mut [f32],
    scratch: &mut Scratch,
) {
    let dims = if D == 0 { rows.len() / order.len() } else { D };
    let Scratch { records: all, values, cells, cell_ends: ends, .. } = scratch;
    let count = records.len();
    let records = &all[records.start * (dims + 1)..records.end * (dims + 1)];
    let records = records.chunks_exact(dims + 1);
    values.resize(count, 0.0);
    for (value, record) in values.iter_mut().zip(records.clone()) {
        *value = f32::from_bits(record[1 + along]);
    }
    let (low, high) = extent(values);
    let low = f64::from(low);
    let side = f64::from(high) - low;
    let last = count.next_power_of_two() - 1;
    let scale = if side > 0.0 { last as f64 / side } else { 0.0 };
    ends.clear();
    ends.resize(last + 1, 0);
    cells.resize(count, 0);
    for (cell, &value) in cells.iter_mut().zip(&*values) {
        *cell = nearest((f64::from(value) - low) * scale) as u16;
    }
    for &cell in &*cells {
        ends[usize::from(cell)] += 1;
    }
    let mut sum = 0;
    for end in &mut *ends {
        sum += replace(end, sum);
    }
    for (record, &cell) in records.zip(&*cells) {
        let end = &mut ends[usize::from(cell)];
        order[*end as usize] = record[0];
        let row = &mut rows[*end as usize * dims..][..dims];
        for (value, &bits) in row.iter_mut().zip(&record[1..]) {
            *value = f32::from_bits(bits);
        }
        *end += 1;
    }
    order[count..].fill(NO_ROW);
    for position in count..order.len() {
        rows.copy_within((count - 1) * dims..count * dims, position * dims);
    }
}

/// Appends the ranges of the leaves of a strip.
#[inline(always)]
fn find_ranges<const D: usize>(
    along: usize,
    dims: usize,
    rows: &[f32],
    ranges: &mut Vec<[f32; 2]>,
) {
    let dims = if D == 0 { dims } else { D };
    let first = ranges.len();
    let mut greatest = f32::MIN;
    for leaf in rows.chunks_exact(LANES * dims) {
        let values: [f32; LANES] = std::array::from_fn(
            #[inline(always)]
            |lane| leaf[lane * dims + along],
        );
        let (low, high) = extent(&values);
        greatest = if high > greatest { high } else { greatest };
        ranges.push([low, greatest]);
    }
    let mut least = f32::MAX;
    for [low, _] in ranges[first..].iter_mut().rev() {
        least = if *low < least { *low } else { least };
        *low = least;
    }
}

//! The order of points in strips: a pass that moves points to strips, and a pass over each strip.
//!
//! ```text
//! rows ─► sixteen points of each strip ─► strips ─► cells of a strip ─► order, coordinates,
//!         in the cache, moved when full             counted             stored form, bounds
//! ```
//!
//! Points are moved a line at a time, since successive points go to different pages.

use std::mem::replace;

use super::Bounds;
use super::grid::{Grid, nearest};
use crate::Isa;
use crate::simd::{Base, RunOn, dispatch, prefetch};
use crate::vectors::directory::{Directory, NO_ROW, Run, positions_of};
use crate::vectors::levels::{Filter, LANES, Line, as_u32};
use crate::vectors::rows::by_dims;

/// Rows whose strips are looked at before they are moved.
const LOOKED_AT: usize = 1024;

/// Points of consecutive strips in their order.
#[derive(Debug)]
pub(in crate::vectors) struct Filed {
    /// The first leaf of each strip, counted from the first leaf of the run.
    pub(in crate::vectors) firsts: Vec<u32>,
    /// The bounds of each leaf.
    pub(in crate::vectors) bounds: Vec<Bounds>,
    /// Whether the stored form of all points is exact.
    pub(in crate::vectors) is_exact: bool,
}

/// Memory for the order of a strip.
#[derive(Default)]
struct Scratch {
    /// The row and the coordinates of each point.
    order: Vec<u32>,
    rows: Vec<f32>,
    /// The coordinate along the strip and the cell of each point.
    values: Vec<f32>,
    cells: Vec<u32>,
    /// The end of the points of each cell so far.
    ends: Vec<u32>,
}

/// Orders the points of a run of strips, and writes them in the stored form of `frame` too.
pub(in crate::vectors) fn file(
    isa: Isa,
    grid: &Grid,
    frame: &Directory,
    run: Run<'_>,
    tiles: &mut [Line],
) -> Filed {
    let (dims, words) = (frame.dims, frame.words);
    let mut filed = Filed { firsts: Vec::new(), bounds: Vec::new(), is_exact: true };
    filed.firsts.reserve_exact(run.counts.len());
    filed.bounds.reserve_exact(run.order.len() / LANES);
    let Run { vectors, buckets, first, counts, order, rows } = run;
    let ranges = counts.iter().scan(0, |end, &count| {
        let begin = replace(end, *end + positions_of(count));
        Some(begin..*end)
    });
    let mut ends: Vec<usize> = ranges.clone().map(|range| range.start).collect();
    let to = Run { vectors, buckets, first, counts, order: &mut *order, rows: &mut *rows };
    dispatch::<Base, _>(isa, Scatter { run: to, ends: &mut ends });
    let mut scratch = Scratch::default();
    for (range, &count) in ranges.zip(counts) {
        filed.firsts.push(as_u32(range.start / LANES));
        if count == 0 {
            continue;
        }
        let order = &mut order[range.clone()];
        let rows = &mut rows[range.start * dims..range.end * dims];
        let (bounds, scratch, count) = (&mut filed.bounds, &mut scratch, count as usize);
        dispatch::<Base, _>(isa, FileStrip { grid, count, order, rows, bounds, scratch });
        let tiles = &mut tiles[range.start / LANES * words..range.end / LANES * words];
        filed.is_exact &= frame.form.store(isa, rows, dims, words, tiles);
    }
    filed
}

/// Moves the rows of a run to their strips; `ends` are the ends of the strips so far.
struct Scatter<'a, 'b> {
    run: Run<'a>,
    ends: &'b mut [usize],
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
    // The last points of each strip, up to sixteen.
    let mut waiting = vec![[0; LANES]; counts.len()];
    let mut waiting_rows = vec![0.0; counts.len() * LANES * dims];
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
            let strip = strip(buckets[at as usize]) as usize;
            let end = &mut ends[strip];
            let lane = *end % LANES;
            let points = &mut waiting_rows[strip * LANES * dims..][..LANES * dims];
            waiting[strip][lane] = begin + at;
            points[lane * dims..][..dims].copy_from_slice(&values[at as usize * dims..][..dims]);
            *end += 1;
            if lane == LANES - 1 {
                order[*end - LANES..*end].copy_from_slice(&waiting[strip]);
                rows[(*end - LANES) * dims..*end * dims].copy_from_slice(points);
                // The next points of the strip go to these lines.
                prefetch(order, *end);
                (0..dims).for_each(|line| prefetch(rows, *end * dims + line * LANES));
            }
        }
    }
    for ((&end, left), points) in
        ends.iter().zip(&waiting).zip(waiting_rows.chunks_exact(LANES * dims))
    {
        let lanes = end % LANES;
        order[end - lanes..end].copy_from_slice(&left[..lanes]);
        rows[(end - lanes) * dims..end * dims].copy_from_slice(&points[..lanes * dims]);
    }
}

/// Orders the points of a strip; the points arrive in any order.
struct FileStrip<'a> {
    grid: &'a Grid,
    /// Number of points of the strip, at least one. Positions after these points repeat the last
    /// point.
    count: usize,
    order: &'a mut [u32],
    rows: &'a mut [f32],
    bounds: &'a mut Vec<Bounds>,
    scratch: &'a mut Scratch,
}

impl<L> RunOn<L> for FileStrip<'_> {
    #[inline(always)]
    fn run_on(self, _: L) {
        by_dims!(self.rows.len() / self.order.len(), file_strip(self));
    }
}

#[inline(always)]
fn file_strip<const D: usize>(call: FileStrip<'_>) {
    let FileStrip { grid, count, order, rows, bounds, scratch } = call;
    let dims = if D == 0 { rows.len() / order.len() } else { D };
    let along = grid.along();
    scratch.order.clear();
    scratch.order.extend_from_slice(&order[..count]);
    scratch.rows.clear();
    scratch.rows.extend_from_slice(&rows[..count * dims]);
    scratch.find_cells::<D>(dims, along);
    let Scratch { order: from, rows: points, cells, ends, .. } = scratch;
    for ((&row, point), &cell) in from.iter().zip(points.chunks_exact(dims)).zip(&*cells) {
        let end = &mut ends[cell as usize];
        order[*end as usize] = row;
        rows[*end as usize * dims..][..dims].copy_from_slice(point);
        *end += 1;
    }
    order[count..].fill(NO_ROW);
    for position in count..order.len() {
        rows.copy_within((count - 1) * dims..count * dims, position * dims);
    }
    find_bounds::<D>(dims, grid, rows, bounds);
}

impl Scratch {
    /// Finds the cell of each point (about as many cells as points) and the first position of each
    /// cell. Points of the same cell have any order.
    #[inline(always)]
    fn find_cells<const D: usize>(&mut self, dims: usize, along: usize) {
        let dims = if D == 0 { dims } else { D };
        let Self { rows, values, cells, ends, .. } = self;
        values.clear();
        values.extend(rows.chunks_exact(dims).map(|row| row[along]));
        let (low, high) = extent(values);
        let low = f64::from(low);
        let side = f64::from(high) - low;
        let last = values.len().next_power_of_two() - 1;
        let scale = if side > 0.0 { last as f64 / side } else { 0.0 };
        cells.clear();
        cells.extend(values.iter().map(|&value| nearest((f64::from(value) - low) * scale)));
        ends.clear();
        ends.resize(last + 1, 0);
        for &cell in &*cells {
            ends[cell as usize] += 1;
        }
        let mut sum = 0;
        for end in ends {
            sum += replace(end, sum);
        }
    }
}

/// Widens the interval of each lane to include a number, by comparisons that vector instructions
/// have.
#[inline(always)]
fn widen(lows: &mut [f32; LANES], highs: &mut [f32; LANES], line: &[f32; LANES]) {
    for lane in 0..LANES {
        lows[lane] = if line[lane] < lows[lane] { line[lane] } else { lows[lane] };
        highs[lane] = if line[lane] > highs[lane] { line[lane] } else { highs[lane] };
    }
}

/// The least and greatest of some numbers.
#[inline(always)]
fn extent(values: &[f32]) -> (f32, f32) {
    let (mut lows, mut highs) = ([f32::MAX; LANES], [f32::MIN; LANES]);
    let (lines, rest) = values.as_chunks();
    for line in lines {
        widen(&mut lows, &mut highs, line);
    }
    if let (true, Some(&last)) = (!rest.is_empty(), values.last()) {
        let mut line = [last; LANES];
        line[..rest.len()].copy_from_slice(rest);
        widen(&mut lows, &mut highs, &line);
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

/// The extent of the points of a leaf in a dimension.
#[inline(always)]
fn extent_of(leaf: &[f32], dims: usize, dim: usize) -> (f32, f32) {
    let mut line = [0.0; LANES];
    for (value, row) in line.iter_mut().zip(leaf.chunks_exact(dims)) {
        *value = row[dim];
    }
    extent(&line)
}

/// Appends the bounds of the leaves of a strip.
#[inline(always)]
fn find_bounds<const D: usize>(dims: usize, grid: &Grid, rows: &[f32], bounds: &mut Vec<Bounds>) {
    let dims = if D == 0 { dims } else { D };
    let first = bounds.len();
    let mut greatest = f32::MIN;
    for leaf in rows.chunks_exact(LANES * dims) {
        let (low, high) = extent_of(leaf, dims, grid.along());
        greatest = if high > greatest { high } else { greatest };
        let [first, second] = grid.across();
        let first_extent = extent_of(leaf, dims, first);
        let second_extent =
            if second == first { first_extent } else { extent_of(leaf, dims, second) };
        bounds.push(Bounds { along: [low, greatest], across: [first_extent, second_extent] });
    }
    let mut least = f32::MAX;
    for Bounds { along: [low, _], .. } in bounds[first..].iter_mut().rev() {
        least = if *low < least { *low } else { least };
        *low = least;
    }
}

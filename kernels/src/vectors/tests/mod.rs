//! Joins on all levels and in all forms, compared with a loop over all pairs in float64.

use std::cell::RefCell;
use std::iter::Zip;
use std::ops::Range;
use std::slice::Iter;

mod counterexamples;

use proptest::prelude::*;

use super::directory::NO_ROW;
use super::filters::{Extent, Form, Principal};
use super::levels::{LANES, as_u32};
use super::strips::STRIP_POINTS_MAX;
use super::*;
use crate::Isa;

/// A generator of numbers in steps of 2^-24, the same on all machines.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number in 0 to 1.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / 16_777_216.0
    }

    fn rows(&mut self, rows: usize, dims: usize) -> Vec<f32> {
        (0..rows * dims).map(|_| self.unit()).collect()
    }
}

/// A set of pairs with their squares, sorted.
type Pairs = Vec<(u32, u32, u64)>;

/// The pairs of two blocks by a loop over all pairs, with `left < right` if both are the same
/// block.
fn naive(left: Vectors<'_>, right: Vectors<'_>, epsilon: f64, is_within: bool) -> Pairs {
    let mut pairs = Vec::new();
    for i in 0..left.len() {
        for j in if is_within { i + 1 } else { 0 }..right.len() {
            let mut sum = 0.0_f64;
            for dim in 0..left.dims() {
                let difference = f64::from(left.row(i)[dim]) - f64::from(right.row(j)[dim]);
                sum += difference * difference;
            }
            if sum.sqrt() <= epsilon {
                pairs.push((as_u32(i), as_u32(j), sum.to_bits()));
            }
        }
    }
    pairs
}

/// All pairs of a join, taken in portions of `room`, part by part.
fn found(
    parts: usize,
    room: usize,
    mut begin: impl FnMut(usize),
    mut advance: impl FnMut(&mut FoundPairs) -> bool,
) -> Pairs {
    let (mut sink, mut pairs) = (FoundPairs::new(room), Vec::new());
    for part in 0..parts {
        begin(part);
        loop {
            let is_finished = advance(&mut sink);
            assert!(sink.pairs().len() <= room);
            assert!(is_finished || sink.pairs().len() == room, "stopped without need");
            let bits = |pair: &Pair| (pair.left, pair.right, pair.square.to_bits());
            pairs.extend(sink.pairs().iter().map(bits));
            sink.clear();
            if is_finished {
                break;
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// The pairs of directories.
fn searched(isa: Isa, join: Join<'_>, room: usize) -> Pairs {
    let search = RefCell::new(Search::default());
    let begin = |part| join.begin(isa, part, &mut search.borrow_mut());
    found(join.parts(), room, begin, |sink| join.advance(isa, &mut search.borrow_mut(), sink))
}

/// The pairs of a nested loop.
fn scanned(isa: Isa, join: &NestedLoop<'_>, room: usize) -> Pairs {
    let scan = RefCell::new(Scan::default());
    let begin = |part| join.begin(isa, part, &mut scan.borrow_mut());
    found(join.parts(), room, begin, |sink| join.advance(isa, &mut scan.borrow_mut(), sink))
}

/// A sink that needs one pair of each row: the rows that have an earlier partner, and the number of
/// taken pairs.
struct Later {
    has_earlier: Vec<bool>,
    taken: usize,
}

impl Sink for Later {
    const TAKES_ALL: bool = false;
    const STOPS: bool = true;

    fn has_enough(&self, row: u32) -> bool {
        self.has_earlier[row as usize]
    }

    fn take(&mut self, pair: Pair) {
        self.has_earlier[pair.right as usize] = true;
        self.taken += 1;
    }

    fn take_all(&mut self, _: u32, _: Side, _: Range<u32>, _: u32) {
        unreachable!("pairs are taken one by one");
    }
}

/// The rows of the right vectors that have a partner, and the number of pairs that the sink took.
fn later(isa: Isa, join: Join<'_>, rows: usize) -> (Vec<bool>, usize) {
    let mut later = Later { has_earlier: vec![false; rows], taken: 0 };
    let mut search = Search::default();
    for part in 0..join.parts() {
        join.begin(isa, part, &mut search);
        assert!(join.advance(isa, &mut search, &mut later));
    }
    (later.has_earlier, later.taken)
}

/// The right rows of pairs.
fn later_of(pairs: &Pairs, rows: usize) -> Vec<bool> {
    let mut later = vec![false; rows];
    pairs.iter().for_each(|&(_, right, _)| later[right as usize] = true);
    later
}

/// The number of pairs of a join, and the partners of both sides.
fn counted(isa: Isa, join: Join<'_>, mut partners: Partners) -> (usize, [Vec<u32>; 2]) {
    let (mut search, mut count) = (Search::default(), PairCount(0));
    let mut others = partners.clone();
    for part in 0..join.parts() {
        join.begin(isa, part, &mut search);
        assert!(join.advance(isa, &mut search, &mut count));
        join.begin(isa, part, &mut search);
        let partners = if part % 2 == 0 { &mut partners } else { &mut others };
        assert!(join.advance(isa, &mut search, partners));
    }
    partners.merge(&others);
    join.settle(&mut partners);
    (usize::try_from(count.0).unwrap(), [partners.left().to_vec(), partners.right().to_vec()])
}

/// The same counts, computed from the pairs.
fn counts_of(pairs: &Pairs, left: usize, right: Option<usize>) -> (usize, [Vec<u32>; 2]) {
    let mut counts = [vec![0; left], vec![0; right.unwrap_or(0)]];
    for &(left, right_row, _) in pairs {
        counts[0][left as usize] += 1;
        counts[usize::from(right.is_some())][right_row as usize] += 1;
    }
    (pairs.len(), counts)
}

/// One of three ways to choose a form.
fn form_of(way: usize) -> fn(&Extent, f64) -> Form {
    match way {
        0 => Form::choose,
        1 => Form::float,
        _ => |extent, _| Form::short(extent),
    }
}

/// A directory for a join with itself, in one of three ways.
fn directory_within(isa: Isa, way: usize, vectors: Vectors<'_>, epsilon: Epsilon) -> Directory {
    let construction = Construction::within(isa, vectors.dims(), vectors.len(), epsilon);
    construction.with_form(form_of(way)).run(vectors)
}

/// A directory in one of four ways.
fn directory(isa: Isa, way: usize, vectors: Vectors<'_>, epsilon: Epsilon) -> Directory {
    let form = form_of(way);
    let has_map = way == 3 || vectors.dims() > 16;
    let map = (has_map && !vectors.is_empty()).then(|| match way {
        0 => Principal::choose(isa, vectors, epsilon.reach()).0,
        _ => Principal::of(isa, vectors, epsilon.reach(), vectors.dims().min(7) / 2),
    });
    let construction = Construction::new(isa, vectors.dims(), vectors.len(), epsilon);
    construction.with_map(map).with_form(form).run(vectors)
}

/// Compares all ways with the loop over all pairs; returns the number of pairs.
fn check(values: &[f32], dims: usize, epsilon: f64) -> usize {
    let vectors = Vectors::new(values, dims);
    let threshold = Epsilon::new(epsilon).unwrap();
    let within = naive(vectors, vectors, epsilon, true);
    let (left, right) = values.split_at(vectors.len() / 3 * dims);
    let (left, right) = (Vectors::new(left, dims), Vectors::new(right, dims));
    let between = naive(left, right, epsilon, false);
    let turned: Pairs =
        between.iter().map(|&(left, right, square)| (right, left, square)).collect();
    let mut turned = turned;
    turned.sort_unstable();
    for isa in Isa::available() {
        let name = format!("{isa}, {} x {dims}, {epsilon}", vectors.len());
        let join = NestedLoop::within(isa, vectors, threshold);
        assert!(scanned(isa, &join, 100_000) == within, "nested loop, {name}");
        let join = NestedLoop::between(isa, left, right, threshold);
        assert!(scanned(isa, &join, 9) == between, "nested loop, {name}");
        let join = NestedLoop::between(isa, right, left, threshold);
        assert!(scanned(isa, &join, 100_000) == turned, "nested loop, {name}");
        for way in 0..3 {
            let name = format!("for itself, way {way}, {name}");
            let whole = directory_within(isa, way, vectors, threshold);
            let room = [1, 7, 100_000][way];
            assert!(searched(isa, Join::within(&whole), room) == within, "{name}");
            let counts = counted(isa, Join::within(&whole), Partners::within(vectors.len()));
            assert!(counts == counts_of(&within, vectors.len(), None), "{name}");
        }
        for way in 0..4 {
            let name = format!("way {way}, {name}");
            let whole = directory(isa, way, vectors, threshold);
            let join = Join::within(&whole);
            let room = [1, 7, 100_000, 100_000][way];
            assert!(searched(isa, join, room) == within, "{name}");
            let counts = counted(isa, join, Partners::within(vectors.len()));
            assert!(counts == counts_of(&within, vectors.len(), None), "{name}");
            let found = later(isa, Join::each(&whole), vectors.len()).0;
            assert!(found == later_of(&within, vectors.len()), "{name}");
            let left_directory = directory(isa, way, left, threshold);
            // A map may be made from other points.
            let ways = if way == 3 && !left.is_empty() {
                let right = Directory::like(isa, right, &left_directory);
                [left_directory, right]
            } else {
                [left_directory, directory(isa, way, right, threshold)]
            };
            let join = Join::between(&ways[0], &ways[1]);
            assert!(searched(isa, join, 1000) == between, "{name}");
            let counts = counted(isa, join, Partners::between(left.len(), right.len()));
            assert!(counts == counts_of(&between, left.len(), Some(right.len())), "{name}");
            let found = later(isa, Join::of_right(&ways[0], &ways[1]), right.len()).0;
            assert!(found == later_of(&between, right.len()), "{name}");
            let join = Join::between(&ways[1], &ways[0]);
            assert!(searched(isa, join, 1000) == turned, "{name}");
            let counts = counted(isa, join, Partners::between(right.len(), left.len()));
            assert!(counts == counts_of(&turned, right.len(), Some(left.len())), "{name}");
        }
    }
    within.len()
}

/// Compares strips with the loop, on all levels.
fn check_strips(vectors: Vectors<'_>, epsilon: f64) {
    let within = naive(vectors, vectors, epsilon, true);
    let threshold = Epsilon::new(epsilon).unwrap();
    for isa in Isa::available() {
        for way in 0..3 {
            let directory = directory_within(isa, way, vectors, threshold);
            let found = searched(isa, Join::within(&directory), 100_000);
            assert!(found == within, "{isa}, way {way}, epsilon {epsilon}");
        }
    }
}

#[test]
fn sizes_around_leaves_and_parts_match() {
    let mut random = Random(1);
    for rows in [0, 1, 2, 15, 16, 17, 31, 33, 255, 256, 257, 600] {
        for dims in [1, 2, 3, 8] {
            check(&random.rows(rows, dims), dims, 0.25);
        }
    }
}

#[test]
fn dimensions_match() {
    let mut random = Random(2);
    for dims in (1..=18).chain([31, 32, 33, 64, 100, 300]) {
        check(&random.rows(130, dims), dims, 0.35 * (dims as f64).sqrt());
    }
}

#[test]
fn directories_of_several_levels_match() {
    let mut random = Random(3);
    let values = random.rows(5000, 3);
    assert!(check(&values, 3, 0.03) > 1000);
}

#[test]
fn points_in_several_buckets_match() {
    let mut random = Random(8);
    check(&random.rows(9000, 2), 2, 0.002);
    // Most points are equal, which no tree can split.
    let mut values = random.rows(9500, 2);
    values[..2 * 9000].fill(0.25);
    let vectors = Vectors::new(&values, 2);
    let epsilon = Epsilon::new(0.0).unwrap();
    for isa in Isa::available() {
        let directory = Directory::new(isa, vectors, epsilon);
        let counts = counted(isa, Join::within(&directory), Partners::within(9500));
        assert_eq!(counts.0, 9000 * 8999 / 2);
        let partners = |row| if row < 9000 { 8999 } else { 0 };
        assert!(counts.1[0].iter().enumerate().all(|(row, &count)| count == partners(row)));
    }
}

#[test]
fn thresholds_from_nothing_to_everything_match() {
    let mut random = Random(4);
    let values = random.rows(300, 4);
    for epsilon in [0.0, 1e-200, 1e-30, 1e-6, 1e-3, 0.1, 0.7, 1.9, 2.1, 1e6, 1e100, 1e300] {
        check(&values, 4, epsilon);
    }
}

#[test]
fn duplicates_and_lines_match() {
    let mut random = Random(5);
    for dims in [1, 2, 5] {
        check(&vec![0.3; 700 * dims], dims, 0.0);
        let few = random.rows(9, dims);
        let values: Vec<f32> =
            (0..400).flat_map(|row: usize| few[row * 7 % 9 * dims..][..dims].to_vec()).collect();
        assert!(check(&values, dims, 0.0) > 400);
        check(&values, dims, 0.2);
        // Points of a line in steps of epsilon: the squares are on the border, or one rounding off.
        let steps: Vec<f32> = (0..300).flat_map(|step| vec![step as f32 * 0.1; dims]).collect();
        check(&steps, dims, 0.1 * (dims as f64).sqrt());
        check(&steps, dims, f64::from(0.1_f32) * (dims as f64).sqrt());
    }
}

#[test]
fn pairs_on_the_border_match() {
    let mut random = Random(6);
    for dims in [1, 2, 3, 8, 13] {
        let values = random.rows(260, dims);
        let vectors = Vectors::new(&values, dims);
        for row in 1..40 {
            // The exact distance of a pair, and its neighbours.
            let distance = square(vectors.row(0), vectors.row(row * 6)).sqrt();
            if row % 13 == 0 {
                check(&values, dims, distance.next_down());
                check(&values, dims, distance);
                check(&values, dims, distance.next_up());
            }
        }
    }
}

#[test]
fn huge_tiny_and_mixed_scales_match() {
    let mut random = Random(7);
    let values = random.rows(200, 3);
    for scale in [3.4e38_f32, 1e30, 1e-20, 1e-38, 1e-42, 1.4e-45] {
        // Values are on both sides of zero, where the extent exceeds the greatest float32.
        let scaled: Vec<f32> = values.iter().map(|value| (value * 2.0 - 1.0) * scale).collect();
        for part in [0.0, 1e-4, 0.2, 0.9] {
            check(&scaled, 3, f64::from(scale) * part);
        }
        let mixed: Vec<f32> = scaled
            .iter()
            .zip(&values)
            .enumerate()
            .map(|(index, (&scaled, &value))| if index % 5 == 0 { scaled } else { value * 1e-38 })
            .collect();
        for epsilon in [0.0, 1e-45, 1e-38, 1e-30, f64::from(scale) * 0.3] {
            check(&mixed, 3, epsilon);
        }
    }
}

/// A sink that needs one pair of each point gets few pairs of a crowd.
#[test]
fn points_with_many_partners_are_left_at_the_first_one() {
    let isa = Isa::selected().unwrap();
    for dims in [1, 8, 40] {
        let values = Random(31).rows(20_000, dims);
        let vectors = Vectors::new(&values, dims);
        let epsilon = Epsilon::new((dims as f64).sqrt()).unwrap();
        let directory = Directory::new(isa, vectors, epsilon);
        let (found, taken) = later(isa, Join::each(&directory), 20_000);
        assert!(!found[0] && found[1..].iter().all(|&found| found));
        assert!(taken < 20 * 20_000, "{taken} of {dims} dimensions");
        let part = Directory::like(isa, vectors.part(0..9_000), &directory);
        let (found, taken) = later(isa, Join::of_right(&directory, &part), 9_000);
        assert!(found.iter().all(|&found| found) && taken == 9_000, "{taken}");
    }
}

/// The number of pairs of points of a directory that pass the filter of their stored form.
fn passing(directory: &Directory) -> usize {
    let Directory { form, words, tiles, order, .. } = directory;
    let positions = (0..order.len()).filter(|&position| order[position] != NO_ROW);
    let points: Vec<Vec<f32>> = positions
        .map(|position| {
            let lines = &tiles[position / LANES * words..][..*words];
            let words = lines.iter().map(|line| line.0[position % LANES]);
            match form {
                Form::Short { .. } => words
                    .flat_map(|word| [word & 0xffff, word >> 16])
                    .map(|half| half as f32)
                    .collect(),
                Form::Float { .. } => words.map(f32::from_bits).collect(),
            }
        })
        .collect();
    let bits = directory.limits(0.0).within;
    let limit = match form {
        Form::Short { .. } => bits as f32,
        Form::Float { .. } => f32::from_bits(bits),
    };
    let pairs = points
        .iter()
        .enumerate()
        .flat_map(|(at, left)| points[..at].iter().map(move |right| left.iter().zip(right)));
    let sum = |pair: Zip<Iter<'_, f32>, Iter<'_, f32>>| {
        pair.map(|(left, right)| (left - right) * (left - right)).sum::<f32>()
    };
    pairs.map(sum).filter(|&sum| sum <= limit).count()
}

/// Marks of missing data, in few points or all, do not make other points look alike.
#[test]
fn coordinates_far_beyond_others_leave_filters_sharp() {
    let mut random = Random(21);
    let isa = Isa::selected().unwrap();
    for (dims, epsilon) in [(1, 1e-3), (2, 0.01), (3, 0.03), (8, 0.2), (20, 0.4), (100, 1.5)] {
        let even = random.rows(500, dims);
        let threshold = Epsilon::new(epsilon).unwrap();
        let most = passing(&Directory::new(isa, Vectors::new(&even, dims), threshold));
        for (far, every) in [(f32::MAX, 500), (-3.4e38, 10), (1e30, 2), (3e12, 2), (3.4e38, 1)] {
            let mut values = even.clone();
            for (at, row) in values.chunks_exact_mut(dims).step_by(every).enumerate() {
                // The marks are in one whole column, or in some rows of each column.
                row[if every == 1 { 0 } else { at % dims }] = far * (1.0 - 0.01 * random.unit());
            }
            let vectors = Vectors::new(&values, dims);
            let pairs = naive(vectors, vectors, epsilon, true);
            for make in [Directory::within, Directory::new] {
                let directory = make(isa, vectors, threshold);
                let name = format!("{far} in 1 of {every}, {dims} dimensions");
                assert!(searched(isa, Join::within(&directory), 1000) == pairs, "{name}");
                let passing = passing(&directory);
                assert!(passing <= 2 * most + 5_000, "{name}: {passing} of {most}");
            }
        }
    }
}

#[test]
fn tasks_make_the_directory_of_one_thread() {
    let mut random = Random(11);
    let cases = [(0, 3), (1, 3), (40, 20), (9_000, 20), (20_000, 2), (60_000, 1)];
    for ((rows, dims), is_within) in
        cases.into_iter().flat_map(|case| [(case, false), (case, true)])
    {
        let mut values = random.rows(rows, dims);
        if !is_within {
            // Half of the points are one point, so that a bucket is too large.
            values[..rows / 2 * dims].fill(0.25);
        }
        let vectors = Vectors::new(&values, dims);
        for isa in Isa::available() {
            let made = |threads| {
                let epsilon = Epsilon::new(if is_within { 0.000_3 } else { 0.05 }).unwrap();
                let make = if is_within { Construction::within } else { Construction::new };
                let mut construction = make(isa, dims, rows, epsilon);
                loop {
                    let none = Vectors::new(&[], dims);
                    let vectors = if construction.needs_vectors() { vectors } else { none };
                    let mut tasks = construction.round(threads);
                    tasks.iter_mut().rev().for_each(|task| task.run(vectors));
                    if let Some(directory) = construction.complete(tasks) {
                        return format!("{directory:?}");
                    }
                }
            };
            let alone = made(1);
            for threads in [2, 3, 50] {
                assert!(made(threads) == alone, "{isa}, {threads} threads, {rows} x {dims}");
            }
        }
    }
}

#[test]
fn strips_are_left_where_windows_are_long() {
    let mut random = Random(12);
    let isa = Isa::selected().unwrap();
    for dims in 1..=3 {
        let even = random.rows(20_000, dims);
        // One point is far away, so that all others are in one strip; most are equal.
        let mut far = even.clone();
        far[..dims].fill(1e9);
        let mut equal = even.clone();
        equal[..dims * 19_000].fill(0.5);
        // Points of a line are in strips along the line, even strips across a dimension without
        // extent.
        let mut line = even.clone();
        line.chunks_exact_mut(dims).for_each(|row| row[1..].fill(0.25));
        let cases = [
            ("even", &even, 0.000_02, true),
            ("far", &far, 0.05, false),
            ("equal", &equal, 0.000_02, false),
            ("line", &line, 0.000_02, true),
            ("nothing", &even, 0.0, true),
            ("everything", &even[..3_000 * dims].to_vec(), f64::MAX, false),
        ];
        for (name, values, epsilon, has_strips) in cases {
            let vectors = Vectors::new(values, dims);
            let epsilon = Epsilon::new(epsilon).unwrap();
            let directory = Directory::within(isa, vectors, epsilon);
            assert_eq!(directory.strips.is_some(), has_strips, "{name}, {dims} dimensions");
            let counts = counted(isa, Join::within(&directory), Partners::within(vectors.len()));
            let boxes = Directory::new(isa, vectors, epsilon);
            let expected = counted(isa, Join::within(&boxes), Partners::within(vectors.len()));
            assert!(counts == expected, "{name}, {dims} dimensions");
        }
    }
}

#[test]
fn strips_are_left_where_one_has_too_many_points() {
    let mut values = Random(13).rows(STRIP_POINTS_MAX as usize + 2, 1);
    values[0] = 1e9;
    let vectors = Vectors::new(&values, 1);
    let isa = Isa::selected().unwrap();
    let directory = Directory::within(isa, vectors, Epsilon::new(1e-9).unwrap());
    assert!(directory.strips.is_none());
    assert_eq!(directory.len(), values.len());
}

#[test]
#[should_panic(expected = "a directory for pairs of its own points")]
fn strips_are_for_their_own_points() {
    let vectors = Vectors::new(&[0.0, 1.0], 1);
    let strips = Directory::within(Isa::Scalar, vectors, Epsilon::new(1.0).unwrap());
    let _ = Join::between(&strips, &strips);
}

#[test]
fn a_sample_tells_whether_a_directory_pays() {
    let values = Random(5).rows(3_000, 40);
    let vectors = Vectors::new(&values, 40);
    for (epsilon, expected) in [(0.5, Algorithm::Directory), (9.0, Algorithm::NestedLoop)] {
        let epsilon = Epsilon::new(epsilon).unwrap();
        let mut construction = Construction::new(Isa::Scalar, 40, 3_000, epsilon);
        while construction.is_choosing() {
            let mut tasks = construction.round(2);
            tasks.iter_mut().for_each(|task| task.run(vectors));
            assert!(construction.complete(tasks).is_none());
        }
        assert_eq!(construction.algorithm(), expected);
    }
}

#[test]
#[should_panic(expected = "all tasks have been run")]
fn a_task_that_has_not_been_run_is_refused() {
    let mut construction = Construction::new(Isa::Scalar, 1, 3, Epsilon::new(1.0).unwrap());
    let tasks = construction.round(1);
    let _ = construction.complete(tasks);
}

#[test]
fn first_values_that_are_not_finite_are_found() {
    let mut values = vec![1.0; 5000];
    for isa in Isa::available() {
        assert_eq!(first_not_finite(isa, &values), None);
    }
    values[4100] = f32::NEG_INFINITY;
    values[4999] = f32::NAN;
    for isa in Isa::available() {
        assert_eq!(first_not_finite(isa, &values), Some(4100));
        assert_eq!(first_not_finite(isa, &values[4101..]), Some(898));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn points_on_borders_of_strips_match(
        dims in 1_usize..=3,
        exponent in -140_i32..=100,
        parts in 2_u32..60,
        rows in 300_usize..900,
        seed: u64,
    ) {
        // Each point is at a distance of about epsilon from the previous point along each axis in
        // turn, and strips are as high as epsilon where epsilon is a part of the extent.
        let mut random = Random(seed);
        let scale = 2.0_f32.powi(exponent);
        let step = scale / parts as f32;
        let mut values = random.rows(rows, dims);
        values.iter_mut().for_each(|value| *value *= scale);
        for at in (dims..values.len()).filter(|at| at / dims % 3 > 0) {
            let moved = if at / dims % dims == at % dims { step } else { 0.0 };
            values[at] = values[at - dims] + moved;
        }
        let vectors = Vectors::new(&values, dims);
        let near = square(vectors.row(0), vectors.row(1)).sqrt();
        let epsilon = [near.next_down().max(0.0), near, near.next_up(), step.into()];
        check_strips(vectors, epsilon[(seed % 4) as usize]);
    }

    #[test]
    fn random_points_match(
        rows in 0_usize..300,
        dims in 1_usize..=9,
        cells in prop_oneof![Just(3_u64), Just(20), Just(1 << 20)],
        exponent in -140_i32..=120,
        share in prop_oneof![Just(0.0_f64), 1e-4..1.5],
        seed: u64,
    ) {
        let mut random = Random(seed);
        // Few cells make duplicates and equal distances.
        let scale = 2.0_f32.powi(exponent);
        let values: Vec<f32> =
            (0..rows * dims).map(|_| (random.next() % cells) as f32 / cells as f32 * scale).collect();
        let vectors = Vectors::new(&values, dims);
        let mut epsilon = f64::from(scale) * share;
        if seed % 2 == 0 && rows > 1 {
            epsilon = square(vectors.row(0), vectors.row(rows - 1)).sqrt();
        }
        check(&values, dims, epsilon);
    }
}

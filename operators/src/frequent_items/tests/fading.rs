//! Windows and decay against naive counts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMillisecondType, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use proptest::prelude::*;
use trommel_engine::batch::{Batch, Origin, Payload};
use trommel_engine::operator::{Flow, Operator, Output};
use trommel_engine::query::Request;

use super::*;
use crate::testing::streams::{BASE, Case, Stream, Weights};
use crate::testing::{bind, bind_operator};

const ALGORITHMS: [Algorithm; 3] = [Algorithm::Sieve, Algorithm::SpaceSaving, Algorithm::Filter];

fn records(items: &[u64], weights: Option<&[u64]>) -> RecordBatch {
    let items = items.iter().map(|&item| u32::try_from(item).unwrap());
    let mut columns: Vec<(&str, ArrayRef)> =
        vec![("item", Arc::new(UInt32Array::from_iter_values(items)))];
    if let Some(weights) = weights {
        columns.push(("weight", Arc::new(UInt64Array::from(weights.to_vec()))));
    }
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, false)))
        .unwrap()
}

/// An operator, and all batches that the operator has sent.
struct Driven {
    operator: Box<dyn Operator>,
    out: Output,
    sent: Vec<RecordBatch>,
}

impl Driven {
    fn new(spec: FrequentItems, input: &RecordBatch) -> Self {
        let operator = bind_operator(spec, &input.schema());
        Self { operator, out: Output::new(), sent: Vec::new() }
    }

    fn batch(&mut self, records: RecordBatch, entered: Instant) {
        let batch = Batch { records, origin: Origin { sequence: 0, entered } };
        let flow = self.operator.process(0, Payload::Batch(batch), &mut self.out).unwrap();
        self.go_on(flow);
    }

    fn wake(&mut self, now: Instant) {
        let flow = self.operator.wake(now, &mut self.out).unwrap();
        self.go_on(flow);
    }

    fn finish(&mut self) {
        let flow = self.operator.finish(&mut self.out).unwrap();
        self.go_on(flow);
    }

    fn go_on(&mut self, mut flow: Flow) {
        self.keep();
        while flow == Flow::HaveOutput {
            flow = self.operator.resume(&mut self.out).unwrap();
            self.keep();
        }
    }

    fn keep(&mut self) {
        self.sent.extend(self.out.drain_sent().map(|(_, payload)| payload.into_records()));
    }

    fn query(&self, request: &Request) -> RecordBatch {
        self.operator.query(request, None).unwrap().compute().unwrap()
    }
}

/// Item, count and error.
type Row = (u64, u64, u64);
/// Start and end of a window, and whether the stream filled the window.
type Borders = (u64, u64, bool);

fn rows(records: &RecordBatch) -> Vec<Row> {
    let column = |name| records.column_by_name(name).unwrap();
    let numbers = |name| column(name).as_primitive::<UInt64Type>().values();
    let items = column("item").as_primitive::<UInt32Type>().values();
    let bounds = numbers("count").iter().zip(numbers("error"));
    items.iter().zip(bounds).map(|(&i, (&count, &error))| (i.into(), count, error)).collect()
}

/// The guarantees for exact counts, with `room` for rounding.
fn check_rows(rows: &[Row], truth: &HashMap<u64, f64>, counters: usize, room: f64) {
    let observed: f64 = truth.values().sum();
    let bound = observed / counters as f64 + room;
    let tiny = 1e-9 * observed;
    let mut reported = HashSet::new();
    for &(item, count, error) in rows {
        let truth = truth.get(&item).copied().unwrap_or(0.0);
        let least = count.checked_sub(error).unwrap() as f64;
        assert!(least <= truth + tiny && truth <= count as f64 + tiny, "{truth}: {count} {error}");
        assert!(error as f64 <= bound, "{item}: {error} is above {bound}");
        assert!(reported.insert(item), "{item} is there twice");
    }
    for (item, &count) in truth {
        assert!(reported.contains(item) || count <= bound, "{item} is missing: {count}");
    }
}

fn counts(items: &[u64], weights: Option<&[u64]>) -> HashMap<u64, f64> {
    let mut counts = HashMap::new();
    for (i, &item) in items.iter().enumerate() {
        *counts.entry(item).or_default() += weights.map_or(1, |weights| weights[i]) as f64;
    }
    counts
}

/// Emissions by their window; rows of one emission may come in several batches.
fn windows(sent: &[RecordBatch]) -> Vec<(Borders, Vec<Row>)> {
    let mut windows: Vec<(Borders, Vec<Row>)> = Vec::new();
    for records in sent {
        let border = |name| {
            let column = records.column_by_name(name).unwrap().as_primitive::<UInt64Type>();
            assert!(column.values().iter().all(|&border| border == column.value(0)));
            column.value(0)
        };
        let complete = records.column_by_name("complete").unwrap().as_boolean();
        assert!(complete.iter().all(|whole| whole == Some(complete.value(0))));
        let window = (border("window_start"), border("window_end"), complete.value(0));
        match windows.last_mut() {
            Some((last, all)) if *last == window => all.extend(rows(records)),
            _ => windows.push((window, rows(records))),
        }
    }
    windows
}

fn check_windows(case: Case, algorithm: Algorithm, pane: usize, panes: usize) {
    let numbers = case.stream.numbers(case.len, case.counters, case.seed);
    let weights = case.weights.of(case.len, case.seed);
    let weights_of = |range: std::ops::Range<usize>| weights.as_ref().map(|all| &all[range]);
    let window = Window::items((pane * panes) as u64).slide(pane as f64);
    let mut spec = FrequentItems::new()
        .counters(case.counters)
        .filter_bins(case.bins)
        .algorithm(algorithm)
        .window(window);
    if weights.is_some() {
        spec = spec.weight("weight");
    }
    let mut driven = Driven::new(spec, &records(&[], weights_of(0..0)));
    for start in (0..case.len).step_by(case.batch) {
        let range = start..case.len.min(start + case.batch);
        driven.batch(records(&numbers[range.clone()], weights_of(range.clone())), Instant::now());
        let open = (range.end / pane + 1).saturating_sub(panes) * pane..range.end;
        let live = driven.query(&Request::new("top").with("n", u64::MAX));
        let truth = counts(&numbers[open.clone()], weights_of(open));
        check_rows(&rows(&live), &truth, case.counters, 0.0);
    }
    driven.finish();
    let mut emitted = windows(&driven.sent).into_iter().peekable();
    for end in (pane..case.len + pane).step_by(pane).map(|end| end.min(case.len)) {
        let start = end.div_ceil(pane).saturating_sub(panes) * pane;
        let truth = counts(&numbers[start..end], weights_of(start..end));
        let fresh = counts(&numbers[end.next_multiple_of(pane) - pane..end], None);
        if truth.values().sum::<f64>() == 0.0 || fresh.is_empty() {
            continue;
        }
        let Some((window, rows)) = emitted.next() else { panic!("{start} to {end} is missing") };
        let whole = end - start == pane * panes;
        assert_eq!(window, (start as u64, end as u64, whole), "{case:?}");
        check_rows(&rows, &truth, case.counters, 0.0);
    }
    assert!(emitted.next().is_none(), "no more windows than that");
}

#[test]
fn windows_of_items_keep_the_bounds_at_their_borders() {
    for algorithm in ALGORITHMS {
        for (pane, panes) in [(1, 1), (1, 3), (50, 1), (64, 2), (33, 5), (200, 3), (5_000, 1)] {
            for stream in [Stream::Uniform, Stream::Zipf(12), Stream::ChangingHitters] {
                for batch in [1, 40, 97, 700] {
                    let case = Case { stream, batch, len: 1_000, counters: 12, bins: 3, ..BASE };
                    check_windows(case, algorithm, pane, panes);
                }
            }
        }
        let case = Case { weights: Weights::UpTo(1_000), len: 600, counters: 9, bins: 2, ..BASE };
        check_windows(case, algorithm, 70, 4);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn windows_keep_the_bounds(
        stream in prop::sample::select(Stream::ALL.to_vec()),
        algorithm in prop::sample::select(ALGORITHMS.to_vec()),
        (pane, panes) in (1..150_usize, 1..12_usize),
        (bins, more) in (1..=10_usize, 1..20_usize),
        (len, batch) in (0..900_usize, 1..300_usize),
        seed: u64,
    ) {
        let weights = Weights::Ones;
        let case = Case { stream, weights, counters: bins + more, bins, len, batch, seed };
        check_windows(case, algorithm, pane, panes);
    }
}

/// The beginning of the present second.
fn second() -> Instant {
    let (now, clock) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap());
    now - Duration::from_nanos(clock.subsec_nanos().into())
}

/// Start and end of the window of these rows, in milliseconds since 1970, and whether the window is
/// complete.
fn times(records: &RecordBatch) -> (i64, i64, bool) {
    let border = |name| {
        let column = records.column_by_name(name).unwrap();
        column.as_primitive::<TimestampMillisecondType>().value(0)
    };
    let complete = records.column_by_name("complete").unwrap().as_boolean();
    (border("window_start"), border("window_end"), complete.value(0))
}

#[test]
fn windows_of_time_are_those_of_the_clock() {
    let zero = second();
    let at = |milliseconds| zero + Duration::from_millis(milliseconds);
    let spec = FrequentItems::new().counters(4).window(Window::seconds(3.0).slide(1.0));
    let mut driven = Driven::new(spec, &records(&[], None));
    assert_eq!(driven.operator.wake_at(), None, "nothing has come");
    driven.batch(records(&[1, 1], None), at(300));
    let wake_at = driven.operator.wake_at().unwrap();
    assert!(wake_at > at(750) && wake_at < at(1_250), "at the full second");
    driven.batch(records(&[2], None), at(700));
    assert!(driven.sent.is_empty());
    driven.batch(records(&[3, 3, 3], None), at(1_300));
    assert_eq!(rows(&driven.sent[0]), [(1, 2, 0), (2, 1, 0)]);
    // No batch arrives: the time closes windows until all counts are forgotten.
    driven.wake(at(1_700));
    driven.wake(at(2_300));
    assert_eq!(driven.sent.len(), 2);
    assert_eq!(rows(&driven.sent[1]), [(3, 3, 0), (1, 2, 0), (2, 1, 0)]);
    let mut wakes = 0;
    while let Some(wake_at) = driven.operator.wake_at() {
        driven.wake(wake_at);
        wakes += 1;
    }
    assert_eq!(wakes, 2);
    assert_eq!(rows(&driven.sent[2]).len(), 3, "0 to 3 s");
    assert_eq!(rows(&driven.sent[3]), [(3, 3, 0)], "1 to 4 s");
    assert_eq!(driven.sent.len(), 4, "nothing is said of windows in which nothing came");
    // A much later window, and the end of the stream within that window.
    driven.batch(records(&[9], None), at(1_000_500));
    driven.finish();
    assert_eq!(rows(&driven.sent[4]), [(9, 1, 0)]);
    let windows: Vec<_> = driven.sent.iter().map(times).collect();
    let second = windows[0].1 - 1_000;
    assert_eq!(second % 1_000, 0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    assert!((0..60_000).contains(&(i64::try_from(now.as_millis()).unwrap() - second)), "{second}");
    let windows: Vec<_> =
        windows.iter().map(|&(start, end, whole)| (start - second, end - second, whole)).collect();
    let expected = [
        (-2_000, 1_000, false),
        (-1_000, 2_000, false),
        (0, 3_000, false),
        (1_000, 4_000, true),
        (998_000, 1_001_000, false),
    ];
    assert_eq!(windows, expected);
}

#[test]
fn windows_of_a_millisecond_close_after_any_time() {
    let begin = Instant::now();
    let spec = FrequentItems::new().window(Window::seconds(0.001));
    let mut driven = Driven::new(spec, &records(&[], None));
    // 2^32 milliseconds are 49.7 days.
    for days in [0, 60, 600] {
        let entered = begin + Duration::from_secs(days * 86_400);
        driven.batch(records(&[1], None), entered);
        let wake_at = driven.operator.wake_at().expect("a window is open");
        let wait = wake_at.saturating_duration_since(entered);
        assert!(wait <= Duration::from_millis(1), "{wait:?}");
        driven.wake(wake_at);
        let (start, end, _) = times(driven.sent.last().unwrap());
        assert_eq!(end - start, 1);
    }
    assert_eq!(driven.sent.len(), 3);
}

#[test]
fn many_windows_of_one_batch_leave_in_bounded_calls() {
    let window = Window::items(1);
    let empty = records(&[], None);
    let mut operator = bind_operator(FrequentItems::new().window(window), &empty.schema());
    let numbers: Vec<u64> = (0..20_000).collect();
    let origin = Origin { sequence: 0, entered: Instant::now() };
    let batch = Batch { records: records(&numbers, None), origin };
    let mut out = Output::new();
    let mut flow = operator.process(0, Payload::Batch(batch), &mut out).unwrap();
    let mut sent = vec![out.drain_sent().count()];
    while flow == Flow::HaveOutput {
        flow = operator.resume(&mut out).unwrap();
        sent.push(out.drain_sent().count());
    }
    assert_eq!(sent.iter().sum::<usize>(), 20_000);
    assert!(sent.iter().all(|&sent| sent <= 8192), "{sent:?}");
}

#[test]
fn a_batch_that_is_late_counts_in_the_open_window() {
    let begin = Instant::now();
    let spec = FrequentItems::new().window(Window::seconds(10.0));
    let mut driven = Driven::new(spec, &records(&[], None));
    driven.batch(records(&[1], None), begin);
    driven.wake(begin + Duration::from_secs(10));
    driven.batch(records(&[2], None), begin);
    driven.finish();
    assert_eq!(driven.sent.iter().map(rows).collect::<Vec<_>>(), [[(1, 1, 0)], [(2, 1, 0)]]);
}

/// The weight of an item of `step`, if an item of the step `now` weighs 1.
fn faded(step: u64, now: u64) -> f64 {
    let rise = |step: u64| 2_f64.powf(16.0 + (step % 64) as f64 / 64.0).round();
    rise(step) / rise(now) * 2_f64.powf((step / 64) as f64 - (now / 64) as f64)
}

/// Checks a decayed summary after every batch against sums over the whole stream.
fn check_decay(case: Case, algorithm: Algorithm, half_life: HalfLifeOf) {
    let numbers = case.stream.numbers(case.len, case.counters, case.seed);
    let weights = case.weights.of(case.len, case.seed);
    let decay = match half_life {
        HalfLifeOf::Items(items) => Decay::items(items),
        HalfLifeOf::Milliseconds(milliseconds) => Decay::seconds(milliseconds as f64 / 1e3),
    };
    let mut spec = FrequentItems::new()
        .counters(case.counters)
        .filter_bins(case.bins)
        .algorithm(algorithm)
        .decay(decay);
    if weights.is_some() {
        spec = spec.weight("weight");
    }
    let begin = Instant::now();
    let empty = weights.as_ref().map(|_| &[][..]);
    let mut driven = Driven::new(spec, &records(&[], empty));
    // Item, weight and step of all items that have arrived.
    let mut history: Vec<(u64, f64, u64)> = Vec::new();
    for (turn, start) in (0..case.len).step_by(case.batch).enumerate() {
        let range = start..case.len.min(start + case.batch);
        // Between turns 5 and 6, no batch arrives for a long time.
        let elapsed = 7 * turn as u64 + if turn > 5 { 2_000 } else { 0 };
        let own = weights.as_ref().map(|all| &all[range.clone()]);
        driven.batch(records(&numbers[range.clone()], own), begin + Duration::from_millis(elapsed));
        for position in range {
            let step = match half_life {
                HalfLifeOf::Items(items) => 64 * position as u64 / items,
                HalfLifeOf::Milliseconds(milliseconds) => 64 * elapsed / milliseconds,
            };
            let own = weights.as_ref().map_or(1, |weights| weights[position]);
            history.push((numbers[position], own as f64, step));
        }
        let now = history.last().unwrap().2;
        let mut truth: HashMap<u64, f64> = HashMap::new();
        for &(item, own, step) in &history {
            *truth.entry(item).or_default() += own * faded(step, now);
        }
        let all = driven.query(&Request::new("top").with("n", u64::MAX));
        check_rows(&rows(&all), &truth, case.counters, 2.0);
        let lost = driven.query(&Request::new("estimate").with("item", 4_000_000_000_u64));
        let bound = truth.values().sum::<f64>() / case.counters as f64 + 2.0;
        assert!(rows(&lost)[0].1 as f64 <= bound, "{rows:?} {bound}", rows = rows(&lost));
    }
}

#[derive(Clone, Copy, Debug)]
enum HalfLifeOf {
    Items(u64),
    Milliseconds(u64),
}

#[test]
fn decayed_counts_keep_the_bounds() {
    let half_lives = [1, 3, 10, 100, 1_000, 100_000].map(HalfLifeOf::Items);
    let times = [1, 20, 1_000].map(HalfLifeOf::Milliseconds);
    for half_life in half_lives.into_iter().chain(times) {
        for algorithm in ALGORITHMS {
            for stream in [Stream::Uniform, Stream::Zipf(12), Stream::ChangingHitters] {
                let case = Case { stream, len: 800, counters: 12, bins: 3, batch: 73, ..BASE };
                check_decay(case, algorithm, half_life);
                let weights = Weights::UpTo(1 << 20);
                check_decay(Case { weights, batch: 400, ..case }, algorithm, half_life);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn decay_keeps_the_bounds(
        stream in prop::sample::select(Stream::ALL.to_vec()),
        algorithm in prop::sample::select(ALGORITHMS.to_vec()),
        half_life in prop_oneof![
            (1..3_000_u64).prop_map(HalfLifeOf::Items),
            (1..3_000_u64).prop_map(HalfLifeOf::Milliseconds),
        ],
        (bins, more) in (1..=10_usize, 1..20_usize),
        (len, batch) in (0..900_usize, 1..300_usize),
        bits in 0..30_u32,
        seed: u64,
    ) {
        let weights = if bits == 0 { Weights::Ones } else { Weights::UpTo(1 << bits) };
        let case = Case { stream, weights, counters: bins + more, bins, len, batch, seed };
        check_decay(case, algorithm, half_life);
    }
}

#[test]
fn what_has_faded_leaves_the_top() {
    let spec = FrequentItems::new().counters(50).decay(Decay::items(1_000));
    let mut driven = Driven::new(spec, &records(&[], None));
    driven.batch(records(&[1; 100_000], None), Instant::now());
    driven.batch(records(&[2; 3_000], None), Instant::now());
    let top = rows(&driven.query(&Request::new("top").with("n", 2)));
    assert_eq!((top[0].0, top[1].0), (2, 1));
    // The sum of all counts is 1,000 / ln 2; item 1 has an eighth of that sum.
    assert!((1_250..1_280).contains(&top[0].1) && (178..185).contains(&top[1].1), "{top:?}");
}

#[test]
fn windows_and_decay_that_make_no_sense_are_refused() {
    let error = |spec: FrequentItems| bind(spec, &[records(&[], None).schema()]).unwrap_err();
    let window = |window| FrequentItems::new().window(window);
    let cases = [
        (window(Window::items(0)), "window", "0 is not allowed"),
        (window(Window::items(10).slide(3.0)), "window", "10, must be a multiple"),
        (window(Window::items(10).slide(2.5)), "window", "10, must be a multiple"),
        (window(Window::items(10).slide(20.0)), "window", "20 is not allowed"),
        (window(Window::items(100_000).slide(1.0)), "window", "at most 1000"),
        (window(Window::seconds(0.0)), "window", "0 is not allowed"),
        (window(Window::seconds(f64::NAN)), "window", "NaN is not allowed"),
        (window(Window::seconds(1.0).slide(0.3)), "window", "1, must be a multiple"),
        (
            window(Window::items(1 << 30).slide(f64::from(1 << 21))).counters(100_000),
            "window",
            "fewer slides",
        ),
        (window(Window::items(10)).every(5), "emit", "a window emits when it closes"),
        (window(Window::items(10)).decay(Decay::items(5)), "decay", "use one of them"),
        (window(Window::items(10)).restore("x"), "restore", "whole stream"),
        (window(Window::items(10)).algorithm(Algorithm::ParallelFilter), "algorithm", "one core"),
        (FrequentItems::new().decay(Decay::items(0)), "decay", "0 is not allowed"),
        (FrequentItems::new().decay(Decay::seconds(-1.0)), "decay", "-1 is not allowed"),
        (FrequentItems::new().decay(Decay::items(9)).snapshot("x"), "snapshot", "whole stream"),
        (FrequentItems::new().snapshot("no such folder/x"), "snapshot", "there is no folder"),
        (FrequentItems::new().restore("no such file"), "restore", "no such file: No such file"),
    ];
    for (spec, parameter, message) in cases {
        let error = error(spec);
        assert_eq!(error.parameter, Some(parameter), "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
    // 0.3 / 0.1 is not 3 in binary.
    assert!(bind(window(Window::seconds(0.3).slide(0.1)), &[records(&[], None).schema()]).is_ok());
    let both: FrequentItems =
        serde_json::from_str(r#"{"window": {"items": 5, "seconds": 1}}"#).unwrap();
    assert!(error(both).to_string().contains("set either `items` or `seconds`"));
}

/// The number of bytes of the state, as the operator reports it.
fn state_bytes(driven: &Driven) -> u64 {
    let counters = driven.operator.counters();
    counters.iter().find(|(name, _)| *name == "state_bytes").unwrap().1
}

#[test]
fn a_window_takes_memory_by_what_its_panes_hold() {
    let spec = FrequentItems::new().window(Window::items(1_000).slide(1.0)).n(1);
    let mut driven = Driven::new(spec, &records(&[], None));
    let numbers: Vec<u64> = (0..3_000).map(|i| i % 1_500).collect();
    driven.batch(records(&numbers, None), Instant::now());
    // The state has 1,000 panes of one item, and some 60 sums of up to 1,000 items.
    assert!(state_bytes(&driven) < 3 << 20, "{}", state_bytes(&driven));
    let top = driven.query(&Request::new("top").with("n", 2_000));
    // The open window lacks one item.
    assert_eq!(rows(&top).len(), 999);
    assert!(rows(&top).iter().all(|row| (row.1, row.2) == (1, 0)));
    let spec = FrequentItems::new().counters(100).window(Window::items(10_000).slide(100.0)).n(1);
    let mut driven = Driven::new(spec, &records(&[], None));
    for seed in 0..30 {
        driven.batch(records(&Stream::Uniform.numbers(700, 100, seed), None), Instant::now());
        assert!(state_bytes(&driven) < 1 << 20, "{}", state_bytes(&driven));
    }
}

/// Values of a column of numbers.
fn numbers_of<T: arrow_array::types::ArrowPrimitiveType>(
    rows: &RecordBatch,
    name: &str,
) -> Vec<T::Native> {
    rows.column_by_name(name).expect(name).as_primitive::<T>().values().to_vec()
}

#[test]
fn the_window_that_closed_last_is_asked_beside_the_open_one() {
    for algorithm in ALGORITHMS {
        let spec = FrequentItems::new().algorithm(algorithm).counters(8).filter_bins(2).n(1);
        let spec = spec.window(Window::items(6).slide(3.0));
        let mut driven = Driven::new(spec, &records(&[], None));
        let ask = |driven: &Driven, request: Request| {
            driven.operator.query(&request, None).and_then(|response| response.compute())
        };
        let top = || Request::new("top");
        driven.batch(records(&[1, 1], None), Instant::now());
        let error = ask(&driven, top().with("window", "closed")).unwrap_err().to_string();
        assert_eq!(error, "the answer to `top` is not there yet: no window with items has closed");
        // The window from item 6 to 12 is the last closed window; the open window begins at item 9.
        driven.batch(records(&[1, 2, 2, 3, 3, 3, 3, 4, 4], None), Instant::now());
        driven.batch(records(&[5, 5], None), Instant::now());
        let rows = ask(&driven, top().with("window", "closed")).unwrap();
        assert_eq!(numbers_of::<UInt32Type>(&rows, "item"), [3, 4, 5], "{algorithm:?}");
        assert_eq!(numbers_of::<UInt64Type>(&rows, "count"), [3, 2, 1]);
        assert_eq!(numbers_of::<UInt64Type>(&rows, "window_start"), [6; 3]);
        assert_eq!(numbers_of::<UInt64Type>(&rows, "window_end"), [12; 3]);
        let estimate = |item: u32| Request::new("estimate").with("item", item);
        let rows = ask(&driven, estimate(4).with("window", "closed")).unwrap();
        assert_eq!(numbers_of::<UInt64Type>(&rows, "count"), [2]);
        let share = Request::new("at_least").with("share", "1/2").with("window", "closed");
        assert_eq!(numbers_of::<UInt32Type>(&ask(&driven, share).unwrap(), "item"), [3]);
        for open in [estimate(5), estimate(5).with("window", "open")] {
            let rows = ask(&driven, open).unwrap();
            assert_eq!(numbers_of::<UInt64Type>(&rows, "count"), [2]);
            assert!(rows.column_by_name("window_start").is_none());
        }
        let error = ask(&driven, top().with("window", "next")).unwrap_err().to_string();
        assert!(error.contains("unknown variant `next`"), "{error}");
    }
    let mut whole = Driven::new(FrequentItems::new(), &records(&[], None));
    whole.batch(records(&[1], None), Instant::now());
    let asked = whole.operator.query(&Request::new("top").with("window", "closed"), None);
    assert!(asked.unwrap_err().to_string().contains("unknown field `window`"));
}

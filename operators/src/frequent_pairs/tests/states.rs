//! States in files: a stream in two runs against one, and bytes that are no state.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::{TempDir, tempdir};

use super::*;

fn file(folder: &TempDir) -> PathBuf {
    folder.path().join("state")
}

/// Transactions whose old items vanish as the stream goes on.
fn changing(count: u32) -> Vec<Transaction> {
    let items = |t: u32| (0..6).map(|i| t / 20 + (t * (i + 3) + i) % 9).collect();
    (0..count).map(|t| Some(items(t))).collect()
}

fn spec() -> FrequentPairs {
    FrequentPairs::new(Support::Count(2)).tuning(Tuning::SMALL)
}

#[test]
fn a_stream_in_two_runs_has_the_pairs_of_one() {
    let folder = tempdir().unwrap();
    let (state, transactions) = (file(&folder), changing(150));
    for cut in [0, 1, 77, 149, 150] {
        for kernels in [1, 3] {
            let (first, second) = transactions.split_at(cut);
            let (rows, ended) = run(first, spec().snapshot(&state), 7, kernels);
            ended.unwrap();
            assert_eq!(pairs_of(&rows), by_hand(first, 2));
            let (rows, ended) = run(second, spec().restore(&state), 11, kernels);
            ended.unwrap();
            assert_eq!(pairs_of(&rows), by_hand(&transactions, 2), "{cut}");
        }
    }
}

#[test]
fn windows_go_on_after_a_restart() {
    let folder = tempdir().unwrap();
    let (state, transactions) = (file(&folder), changing(200));
    for (window, slide) in [(50, 50), (60, 20), (7, 1), (300, 100)] {
        let expected = windows_by_hand(&transactions, window, slide);
        let windows = PairWindow::transactions(window as u64).slide(slide as f64);
        for cuts in [[0, 1], [30, 120], [60, 61], [100, 200]] {
            let mut found = WindowPairs::new();
            let parts = [0..cuts[0], cuts[0]..cuts[1], cuts[1]..transactions.len()];
            for (run_number, part) in parts.into_iter().enumerate() {
                let mut spec = spec().window(windows).snapshot(&state);
                if run_number > 0 {
                    spec = spec.restore(&state);
                }
                let (rows, ended) = run(&transactions[part.clone()], spec, 9, 2);
                ended.unwrap();
                // The window in which the first run ends appears again in the second run.
                let is_cut = |(_, end, _): &(u64, u64, bool)| *end == part.end as u64;
                let is_last = part.end == transactions.len();
                let rows = windows_of(&rows).into_iter();
                found.extend(
                    rows.filter(|(key, _)| is_last || !is_cut(key) || key.1 % slide as u64 == 0),
                );
            }
            assert_eq!(found, expected, "{window} {slide} {cuts:?}");
        }
    }
}

#[test]
fn states_of_texts_have_texts() {
    let folder = tempdir().unwrap();
    let texts = |from: usize| {
        let mut sets = ListBuilder::new(arrow_array::builder::StringBuilder::new());
        for t in from..from + 40 {
            sets.append_value([Some(format!("a{}", t % 5)), Some("é".repeat(t % 3 * 700))]);
        }
        let sets: ArrayRef = Arc::new(sets.finish());
        RecordBatch::try_from_iter([("set", sets)]).unwrap()
    };
    let count = |batches: Vec<RecordBatch>, spec: FrequentPairs| {
        let mut graph = Graph::new();
        let source = graph.add("baskets", Memory::new(batches[0].schema(), batches));
        let pairs = graph.add_after(source, "pairs", spec);
        let (sink, rows) = Collect::new();
        graph.add_after(pairs, "rows", sink);
        graph.build().unwrap().run(RunOptions::new()).unwrap();
        let mut found = BTreeSet::new();
        for rows in rows.batches() {
            let [left, right] = [0, 1].map(|column| rows.column(column).as_string::<i32>().clone());
            let supports = rows.column(2).as_primitive::<UInt32Type>();
            for row in 0..rows.num_rows() {
                let pair = [&left, &right].map(|texts| texts.value(row).to_owned());
                found.insert((pair, supports.value(row)));
            }
        }
        found
    };
    let state = file(&folder);
    count(vec![texts(0)], spec().snapshot(&state));
    let second = count(vec![texts(40)], spec().restore(&state));
    let whole = count(vec![texts(0), texts(40)], spec());
    assert!(whole.len() > 10);
    assert_eq!(second, whole);
}

#[test]
fn windows_of_time_go_on_and_are_not_complete() {
    let folder = tempdir().unwrap();
    let state = file(&folder);
    let windows = PairWindow::seconds(1e6).slide(1e5);
    let transactions = vec![Some(vec![1, 2]); 5];
    let (_, ended) = run(&transactions, spec().window(windows).snapshot(&state), 2, 1);
    ended.unwrap();
    let (rows, ended) = run(&transactions, spec().window(windows).restore(&state), 2, 1);
    ended.unwrap();
    assert_eq!(pairs_of(&[rows[0].project(&[3, 4, 5]).unwrap()]), Pairs::from([((1, 2), 10)]));
    assert!(!rows[0].column(2).as_boolean().value(0));
}

#[test]
fn a_state_that_cannot_be_written_takes_no_row_along() {
    let folder = tempdir().unwrap();
    let transactions = changing(60);
    let missing = folder.path().join("none/state");
    let schema = batch(&[]).schema();
    let error = bind(spec().snapshot(missing), &[schema]).unwrap_err().to_string();
    assert!(error.contains("there is no folder"), "{error}");
    let (rows, ended) = run(&transactions, spec().snapshot("/dev/full"), 7, 2);
    assert!(ended.unwrap_err().contains("the state was not saved"));
    assert_eq!(pairs_of(&rows), by_hand(&transactions, 2));
}

fn refused(spec: FrequentPairs) -> String {
    let schema = batch(&[]).schema();
    bind(spec, &[schema]).unwrap_err().to_string()
}

#[test]
fn other_states_are_refused() {
    let folder = tempdir().unwrap();
    let state = file(&folder);
    let windows = PairWindow::transactions(60).slide(20.0);
    run(&changing(90), spec().window(windows).snapshot(&state), 7, 1).1.unwrap();
    let bytes = fs::read(&state).unwrap();
    assert!(refused(spec().restore(&state)).contains("the kind of windows"));
    let longer = spec().window(PairWindow::transactions(80).slide(20.0));
    assert!(refused(longer.restore(&state)).contains("the panes of windows is 3; expected 4"));
    let steps = spec().window(PairWindow::transactions(90).slide(30.0));
    assert!(refused(steps.restore(&state)).contains("the length of windows is 20; expected 30"));
    let small = spec().window(windows).memory_max(100).restore(&state);
    assert!(refused(small).contains("not enough memory"));
    let missing = folder.path().join("missing");
    assert!(refused(spec().restore(missing)).contains("missing"));
    for cut in 0..bytes.len() {
        fs::write(&state, &bytes[..cut]).unwrap();
        let error = refused(spec().window(windows).restore(&state));
        assert!(error.contains("snapshot"), "{cut}: {error}");
    }
}

/// Runs with a state of any content. The run must refuse the state or give pairs.
fn run_forged(state: &Path, mut bytes: Vec<u8>, windows: Option<PairWindow>) {
    let end = bytes.len() - 4;
    let checksum = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    fs::write(state, bytes).unwrap();
    let mut spec = spec().restore(state).memory_max(1 << 20);
    spec.window = windows;
    if bind(spec.clone(), &[batch(&[]).schema()]).is_ok() {
        let (_, ended) = run(&changing(70), spec, 30, 1);
        if let Err(error) = ended {
            assert!(error.contains("not enough memory") || error.contains("too many"), "{error}");
        }
    }
}

#[test]
fn forged_states_are_refused_or_counted() {
    let folder = tempdir().unwrap();
    let state = file(&folder);
    for (windows, step) in [(None, 1), (Some(PairWindow::transactions(30).slide(10.0)), 3)] {
        let mut first = spec().snapshot(&state);
        first.window = windows;
        run(&changing(35), first, 7, 1).1.unwrap();
        let bytes = fs::read(&state).unwrap();
        for offset in (24..bytes.len() - 4).step_by(step) {
            let mut forged = bytes.clone();
            forged[offset] = [0, 1, 0xFF, bytes[offset] ^ 1][offset % 4];
            run_forged(&state, forged, windows);
        }
    }
}

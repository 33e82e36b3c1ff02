//! Windows in files: a stream in several runs against one, and bytes that are no state.

use std::fs;
use std::path::Path;

use tempfile::tempdir;

use super::*;
use crate::epsilon_join::stream::stored::StoredVectors;
use crate::shared::window::Extent;

/// The pairs of a stream that is cut into runs; the ids continue from run to run.
fn pairs_of_runs(
    spec: &EpsilonJoin,
    rows: &[Row],
    dims: i32,
    cuts: &[usize],
    state: &Path,
    how: Run,
) -> Vec<(u32, u32, u64)> {
    let mut pairs = Vec::new();
    let ends = cuts.iter().copied().chain([rows.len()]);
    let mut begin = 0;
    for (number, end) in ends.enumerate() {
        let mut spec = spec.clone().snapshot(state);
        if number > 0 {
            spec = spec.restore(state);
        }
        // Rows before the run are left out, so that ids are the same in each run.
        let source = || {
            let first = u32::try_from(begin).unwrap();
            let batches = rows[begin..end].chunks(how.batch).zip((first..).step_by(how.batch));
            batches.map(|(part, id)| batch(part, id, dims)).collect::<Vec<_>>()
        };
        let (found, ended) = run_batches(spec, source(), dims, how);
        ended.unwrap();
        pairs.extend(pairs_of(&found));
        begin = end;
    }
    pairs.sort_unstable();
    pairs
}

fn run_batches(spec: EpsilonJoin, batches: Vec<RecordBatch>, dims: i32, how: Run) -> Ended {
    let mut graph = Graph::new();
    let schema = batch(&[], 0, dims).schema();
    let source = graph.add("vectors", Memory::new(schema, batches));
    let join = graph.add_after(source, "join", spec.tuning(how.tuning));
    graph.cores(join, vec![available_cores()[0]; how.kernels]);
    collect(graph, join)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    #[test]
    fn a_stream_in_several_runs_has_the_pairs_of_one(
        (dims, rows) in (1_usize..4).prop_flat_map(|dims| (Just(dims), rows(dims, 90))),
        length in prop_oneof![1_u64..70, Just(1 << 40)],
        cuts in prop::array::uniform2(0_usize..=100),
        batch in 1_usize..30,
    ) {
        let folder = tempdir().unwrap();
        let dims = i32::try_from(dims).unwrap();
        let mut cuts = cuts.map(|cut| cut * rows.len() / 100);
        cuts.sort_unstable();
        let how = Run { batch, ..Run::small() };
        for window in [VectorWindow::vectors(length), VectorWindow::seconds(1e6)] {
            for algorithm in [EpsilonAlgorithm::Directory, EpsilonAlgorithm::NestedLoop] {
                let spec = EpsilonJoin::new(1.5).window(window).algorithm(algorithm);
                let spec = spec.on_error(OnError::Skip);
                let (found, ended) = run(spec.clone(), &[&rows], dims, how);
                ended.unwrap();
                let state = folder.path().join("state");
                let of_runs = pairs_of_runs(&spec, &rows, dims, &cuts, &state, how);
                prop_assert_eq!(of_runs, pairs_of(&found), "{:?}", &cuts);
            }
        }
    }
}

#[test]
fn states_have_a_window_and_no_carried_columns() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("state");
    let schema = batch(&[], 0, 2).schema();
    let blamed = |spec: EpsilonJoin| {
        let error = bind(spec, &[Arc::clone(&schema)]).unwrap_err();
        (error.parameter.unwrap(), error.to_string())
    };
    let join = || EpsilonJoin::new(1.0);
    let stream = || join().window(VectorWindow::vectors(10));
    assert_eq!(blamed(join().snapshot(&file)).0, "snapshot");
    assert_eq!(blamed(join().restore(&file)).0, "restore");
    assert_eq!(blamed(stream().carry(["name"]).snapshot(&file)).0, "snapshot");
    assert_eq!(blamed(stream().restore(&file)).0, "restore");
    let rows = clusters(40, 2);
    let (_, ended) = run(stream().snapshot(&file), &[&rows], 2, Run::small());
    ended.unwrap();
    let (parameter, error) = blamed(stream().window(VectorWindow::vectors(11)).restore(&file));
    assert!(parameter == "restore" && error.contains("the length of the window"), "{error}");
    let (_, error) = blamed(stream().window(VectorWindow::seconds(1.0)).restore(&file));
    assert!(error.contains("the unit of the window"), "{error}");
    let (_, error) = blamed(stream().memory_max(100).restore(&file));
    assert!(error.contains("100 allowed (`memory_max`)"), "{error}");
    fs::write(&file, "no state").unwrap();
    assert!(blamed(stream().restore(&file)).1.contains("invalid snapshot"));
}

/// The bytes with a correct length and checksum.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 4;
    bytes[16..24].copy_from_slice(&(end as u64 - 24).to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn forged_states_are_refused_or_written_as_they_were() {
    let coordinates = vec![0.0, 1.5, -2.0, 3.0, 4.0, 1e38];
    let (ids, stamps) = (vec![7, 7, 9], vec![4, 5, 6]);
    let stored = StoredVectors { position: 7, time: 6, ids, stamps, coordinates };
    for window in [Extent::Items(5), Extent::Nanoseconds(5)] {
        let bytes = stored.write(2, window);
        assert_eq!(StoredVectors::read(&bytes, 2, window).unwrap(), stored);
        assert!(StoredVectors::read(&bytes, 3, window).is_err());
        for at in 24..bytes.len() - 4 {
            for value in [0, 1, 3, 6, 127, 255] {
                let mut forged = bytes.clone();
                forged[at] = value;
                let forged = sealed(forged);
                if let Ok(read) = StoredVectors::read(&forged, 2, window) {
                    assert_eq!(read.write(2, window), forged, "byte {at} is {value}");
                }
            }
            assert!(StoredVectors::read(&sealed(bytes[..at + 4].to_vec()), 2, window).is_err());
        }
    }
}

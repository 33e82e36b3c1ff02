//! Indexes in files: a stream in two runs against one, queries of a file, and damaged files.

use std::fs;
use std::os::unix::fs::FileExt;

use tempfile::tempdir;

use super::*;
use crate::conjunctive_query::IndexSource;
use crate::conjunctive_query::data::stored;
use crate::{Feed, MissingState};

#[test]
fn a_file_answers_as_the_documents() {
    let folder = tempdir().unwrap();
    let queries = questions(30);
    for (count, are_texts) in [(0, false), (200, false), (200, true)] {
        let file = folder.path().join(format!("index-{count}-{are_texts}"));
        let documents = corpus(count);
        let expected = by_hand(&documents, &queries);
        let how = Run { are_texts, ..RUN };
        let spec = spec().index_path(&file);
        let (rows, ended) = run(Some(&documents), &queries, spec.clone(), how);
        ended.unwrap();
        assert_eq!(documents_of(&rows, queries.len()), expected);
        let (rows, ended) = run(None, &queries, spec.clone(), how);
        ended.unwrap();
        assert_eq!(documents_of(&rows, queries.len()), expected);
        let before = fs::read(&file).unwrap();
        let spec = spec.index(IndexSource::Reuse);
        let (rows, ended) = run(Some(&corpus(5)), &queries, spec, how);
        ended.unwrap();
        assert_eq!(documents_of(&rows, queries.len()), expected);
        assert!(fs::read(&file).unwrap() == before, "a file that is reused is not written");
    }
}

/// The numbers of terms and the merged segment depend neither on the number of kernels nor on the
/// batches.
#[test]
fn any_number_of_kernels_makes_the_same_file() {
    let folder = tempdir().unwrap();
    let (documents, queries) = (corpus(300), questions(20));
    let expected = by_hand(&documents, &queries);
    for are_texts in [false, true] {
        let mut first = None;
        for kernels in [1, 2, 3, 8] {
            for batch in [1, 33, 300] {
                let file = folder.path().join("index");
                let spec = spec().index_path(&file).name("label");
                let how = Run { batch, kernels, are_texts };
                let (rows, ended) = run(Some(&documents), &queries, spec, how);
                ended.unwrap();
                assert_eq!(names_of(&rows, queries.len()).len(), expected.len());
                let bytes = fs::read(&file).unwrap();
                assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{how:?}");
            }
        }
    }
}

#[test]
fn a_missing_file_is_built_or_refused() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("index");
    let (documents, queries) = (corpus(20), questions(3));
    let spec = spec().index_path(&file).index(IndexSource::Reuse);
    let (_, ended) = run(None, &queries, spec.clone(), RUN);
    assert!(ended.is_err());
    let (rows, ended) = run(Some(&documents), &queries, spec, RUN);
    ended.unwrap();
    assert_eq!(documents_of(&rows, queries.len()), by_hand(&documents, &queries));
    assert!(file.exists());
}

#[test]
fn a_stream_in_two_runs_is_one() {
    let folder = tempdir().unwrap();
    let state = folder.path().join("state");
    let (documents, queries) = (corpus(150), questions(20));
    for cut in [0, 1, 77, 150] {
        for over in [AnswerOver::All, AnswerOver::Arrived] {
            let (first, second) = documents.split_at(cut);
            let (_, ended) = run(Some(first), &[], spec().over(over).snapshot(&state), RUN);
            ended.unwrap();
            let spec = spec().restore(&state).snapshot(&state);
            let (rows, ended) = run(Some(second), &queries, spec, Run { kernels: 2, ..RUN });
            ended.unwrap();
            let expected = by_hand(&documents, &queries);
            assert_eq!(documents_of(&rows, queries.len()), expected, "{cut}");
            let (rows, ended) = run(None, &queries, self::spec().restore(&state), RUN);
            ended.unwrap();
            assert_eq!(documents_of(&rows, queries.len()), expected, "{cut}");
        }
    }
}

#[test]
fn names_are_in_the_file() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("index");
    let (documents, queries) = (corpus(50), questions(10));
    let named = spec().index_path(&file).name("label");
    let (rows, ended) = run(Some(&documents), &queries, named.clone(), RUN);
    ended.unwrap();
    let expected = names_of(&rows, queries.len());
    let (rows, ended) = run(None, &queries, named, RUN);
    ended.unwrap();
    assert_eq!(names_of(&rows, queries.len()), expected);
    let (_, ended) = run(None, &queries, spec().index_path(&file), RUN);
    assert!(ended.unwrap_err().contains("search"), "an index with names needs `name`");
}

#[test]
fn a_damaged_file_is_an_error() {
    let folder = tempdir().unwrap();
    let (file, damaged) = (folder.path().join("index"), folder.path().join("damaged"));
    let (_, ended) = run(Some(&corpus(12)), &[], spec().index_path(&file).name("label"), RUN);
    ended.unwrap();
    let bytes = fs::read(&file).unwrap();
    let opened =
        stored::open(&file, &DataType::UInt32, usize::MAX).map(|opened| opened.names.len());
    assert!(opened.unwrap() > 0);
    let refused = |bytes: &[u8]| {
        fs::write(&damaged, bytes).unwrap();
        let error =
            stored::open(&damaged, &DataType::UInt32, usize::MAX).err().expect("it is damaged");
        assert!(!error.to_string().is_empty());
    };
    for at in 0..bytes.len() {
        refused(&bytes[..at]);
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        refused(&flipped);
    }
    refused(&[&bytes[..], b"x"].concat());
    assert!(stored::open(&file, &DataType::Utf8, usize::MAX).is_err(), "terms of another type");
}

#[test]
fn a_file_that_is_overwritten_in_place_leaves_a_running_stage_alone() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("index");
    let (documents, queries) = (corpus(2_000), questions(20));
    let (_, ended) = run(Some(&documents), &[], spec().index_path(&file), RUN);
    ended.unwrap();
    let bytes = fs::read(&file).unwrap();
    for is_cut in [false, true] {
        fs::write(&file, &bytes).unwrap();
        let mut graph = Graph::new();
        let (feed, feeder) = Feed::new(batch(&[], 0, false).schema(), 4).unwrap();
        let asked = graph.add("queries", feed);
        let search = graph.add_after(asked, "search", spec().index_path(&file));
        let (sink, rows) = Collect::new();
        graph.add_after(search, "rows", sink);
        let mut running = graph.build().unwrap().start(RunOptions::new()).unwrap();
        // The file keeps its inode, as with `cp`: its bytes change, or the file is cut after the
        // header.
        let other = fs::File::options().write(true).open(&file).unwrap();
        if is_cut {
            other.set_len(64).unwrap();
        } else {
            other.write_all_at(&vec![0xa5; bytes.len()], 0).unwrap();
        }
        feeder.send(batch(&queries, 0, false), WATCHDOG).unwrap();
        drop(feeder);
        assert!(running.wait(WATCHDOG), "the run hangs");
        running.join().unwrap();
        let expected = by_hand(&documents, &queries);
        assert_eq!(documents_of(&rows.take(), queries.len()), expected);
        let error = stored::open(&file, &DataType::UInt32, usize::MAX).err();
        assert!(error.is_some(), "the next run is told");
    }
}

#[test]
fn lists_that_exceed_the_memory_are_refused_before_they_are_read() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("index");
    let (_, ended) = run(Some(&corpus(500)), &[], spec().index_path(&file), RUN);
    ended.unwrap();
    let error = stored::open(&file, &DataType::UInt32, 1_000).err().expect("no room");
    assert!(error.to_string().contains("1000 allowed (`memory_max`)"), "{error}");
}

/// Runs a pipeline with fed documents. After the last document, the run is stopped, or the stream
/// ends.
fn fed(spec: ConjunctiveQuery, documents: &[Terms], is_stopped: bool) {
    let mut graph = Graph::new();
    let search = graph.add("search", spec);
    let (feed, feeder) = Feed::new(batch(&[], 0, false).schema(), 4).unwrap();
    let documents_stage = graph.add("documents", feed);
    graph.connect(documents_stage, search);
    let queries = graph.add("queries", batches(&[], 7, false));
    graph.connect(queries, search);
    let (sink, _rows) = Collect::new();
    graph.add_after(search, "rows", sink);
    let mut running = graph.build().unwrap().start(RunOptions::new()).unwrap();
    feeder.send(batch(documents, 0, false), WATCHDOG).unwrap();
    if is_stopped {
        // The feeder stays alive, so only the stop ends the stream.
        running.handle().stop();
    } else {
        drop(feeder);
    }
    assert!(running.wait(WATCHDOG), "the run hangs");
    running.join().unwrap();
}

#[test]
fn a_run_that_is_stopped_leaves_no_index_and_a_state_that_says_so() {
    let folder = tempdir().unwrap();
    let (index, state) = (folder.path().join("index"), folder.path().join("state"));
    let (documents, queries) = (corpus(60), questions(5));
    fed(spec().index_path(&index).snapshot(&state), &documents, true);
    assert!(!index.exists(), "the index is that of a part");
    // The file of an earlier run stays unchanged.
    fed(spec().index_path(&index), &documents, false);
    let whole = fs::read(&index).unwrap();
    fed(spec().index_path(&index).snapshot(&state), &documents[..9], true);
    assert!(fs::read(&index).unwrap() == whole);
    // The state of a stopped run is no index, with documents or without them.
    let reuse = spec().index_path(&state).index(IndexSource::Reuse);
    for documents in [None, Some(&documents[..])] {
        let (_, ended) = run(documents, &queries, reuse.clone(), RUN);
        let error = ended.unwrap_err();
        assert!(error.contains("stopped before the end of its documents"), "{error}");
    }
    let (rows, ended) = run(None, &queries, spec().restore(&state), RUN);
    ended.unwrap();
    let taken =
        stored::open(&state, &DataType::UInt32, usize::MAX).unwrap().segment.lists.documents();
    let expected = by_hand(&documents[..taken as usize], &queries);
    assert_eq!(documents_of(&rows, queries.len()), expected);
    // A state of all documents is an index.
    fed(spec().snapshot(&state), &documents, false);
    let (rows, ended) = run(None, &queries, spec().index_path(&state), RUN);
    ended.unwrap();
    assert_eq!(documents_of(&rows, queries.len()), by_hand(&documents, &queries));
}

#[test]
fn a_state_that_is_missing_is_an_error_or_no_state() {
    let folder = tempdir().unwrap();
    let state = folder.path().join("state");
    let (documents, queries) = (corpus(30), questions(5));
    let (_, ended) = run(Some(&documents), &queries, spec().restore(&state), RUN);
    assert!(ended.unwrap_err().contains("No such file"));
    let spec = spec().restore(&state).missing(MissingState::Begin).snapshot(&state);
    for _ in 0..2 {
        let (_, ended) = run(Some(&documents), &[], spec.clone(), RUN);
        ended.unwrap();
    }
    let (rows, ended) = run(None, &queries, self::spec().restore(&state), RUN);
    ended.unwrap();
    let twice = [&documents[..], &documents].concat();
    assert_eq!(documents_of(&rows, queries.len()), by_hand(&twice, &queries));
}

//! Indexes in files: a stream in two runs against one, queries of a file, and damaged files.

use std::fs;

use tempfile::tempdir;

use super::*;
use crate::conjunctive_query::IndexSource;
use crate::conjunctive_query::stored;

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
    let opened = stored::open(&file, &DataType::UInt32).map(|opened| opened.names.len());
    assert!(opened.unwrap() > 0);
    let refused = |bytes: &[u8]| {
        fs::write(&damaged, bytes).unwrap();
        let error = stored::open(&damaged, &DataType::UInt32).err().expect("it is damaged");
        assert!(!error.to_string().is_empty());
    };
    for at in 0..bytes.len() {
        refused(&bytes[..at]);
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        refused(&flipped);
    }
    refused(&[&bytes[..], b"x"].concat());
    assert!(stored::open(&file, &DataType::Utf8).is_err(), "terms of another type");
}

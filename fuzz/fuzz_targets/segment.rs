//! Opens arbitrary bytes as a segment of an inverted index, and segments with some words changed.
//! A segment that is accepted answers queries without a panic, on all levels alike.
//!
//! `cargo xtask fuzz segment`
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use trommel_kernels::Isa;
use trommel_kernels::inverted::{
    DocumentSet, MergePart, Query, QueryScratch, Segment, SegmentBuilder, SegmentBytes, merge,
};

#[derive(Debug, Arbitrary)]
enum Input {
    /// Arbitrary words.
    Any { words: Vec<u32>, queries: Vec<Vec<u8>> },
    /// A segment of documents, with words changed.
    Changed { documents: Vec<u64>, spread: u8, changes: Vec<(u16, u32)>, queries: Vec<Vec<u8>> },
}

/// Terms of the segments that are built: each a bit of a document.
const TERMS: u32 = 64;

/// The segment of documents, each of which is followed by `spread` documents without terms.
fn build(documents: &[u64], spread: u8) -> SegmentBytes {
    let mut builder = SegmentBuilder::new();
    for document in documents {
        let terms: Vec<u32> = (0..TERMS).filter(|term| document >> term & 1 != 0).collect();
        builder.push(&terms);
        for _ in 0..spread {
            builder.push(&[]);
        }
    }
    builder.finish(TERMS)
}

/// Asks queries of bytes, if they are a segment.
fn ask(bytes: &[u8], queries: &[Vec<u8>]) {
    let Ok(copy) = SegmentBytes::copy_of(bytes) else { return };
    let Ok(segment) = Segment::new(copy) else { return };
    let mut scratch = QueryScratch::new();
    for query in queries.iter().take(8) {
        let terms: Vec<u32> = query.iter().map(|&term| term.into()).collect();
        let mut expected = Vec::new();
        segment.find(Isa::Scalar, &terms, &mut scratch, &mut expected);
        assert!(expected.is_sorted_by(|left, right| left < right), "documents must ascend");
        for isa in Isa::available() {
            let mut found = Vec::new();
            segment.find(isa, &terms, &mut scratch, &mut found);
            assert_eq!(found, expected, "{isa}");
            assert_eq!(segment.count(isa, &terms, &mut scratch) as usize, expected.len(), "{isa}");
            let within = Query { within: Some(DocumentSet::list(&expected)), terms: &terms };
            assert_eq!(segment.count(isa, within, &mut scratch) as usize, expected.len(), "{isa}");
        }
    }
    // The lists of one segment are those of a merge with nothing.
    let (_, merged) = merge(&[MergePart { segment: &segment, numbers: None }]);
    let copy = SegmentBytes::copy_of(merged.as_bytes()).expect("the bytes of a segment");
    assert!(Segment::new(copy).is_ok(), "a merge makes a segment");
    assert_eq!(merged.postings(), segment.postings());
}

fuzz_target!(|input: Input| match input {
    Input::Any { words, queries } => {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        ask(&bytes, &queries);
    }
    Input::Changed { documents, spread, changes, queries } => {
        let mut bytes = build(&documents, spread).as_ref().to_vec();
        for (at, word) in changes {
            let at = usize::from(at) % (bytes.len() / 4) * 4;
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        ask(&bytes, &queries);
    }
});

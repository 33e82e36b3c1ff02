//! Bytes that are damaged or forged: an error or a correct segment, never a panic.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Isa, Query, QueryScratch, Segment, SegmentBytes, encode, narrow};
use crate::inverted::segment::{Form, LINE, Line, SegmentError, bytes, words, words_mut};

/// Bytes in aligned lines; bytes past the last word are zero.
fn aligned(content: &[u8]) -> Vec<Line> {
    let mut lines = vec![Line::default(); content.len().div_ceil(4 * LINE)];
    for (word, bytes) in words_mut(&mut lines).iter_mut().zip(content.chunks(4)) {
        let mut whole = [0; 4];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u32::from_le_bytes(whole);
    }
    lines
}

/// Asks queries of bytes, if they are a segment; answers are documents that ascend.
fn ask(content: &[u8]) -> Result<(), SegmentError> {
    let segment = Segment::new(content)?;
    let mut scratch = QueryScratch::new();
    for isa in Isa::available() {
        for terms in [&[0][..], &[1], &[2, 3], &[0, 1, 2, 3, 4], &[3, 4], &[0, 3], &[1, 4]] {
            let mut found = Vec::new();
            segment.find(isa, Query::from(terms), &mut scratch, &mut found);
            assert!(found.is_sorted_by(|left, right| left < right));
            assert!(found.last().is_none_or(|&last| last < segment.documents()));
            assert_eq!(segment.count(isa, terms, &mut scratch) as usize, found.len());
        }
    }
    Ok(())
}

/// A segment with groups of a list in buckets, of a list of plain ids and of a bitmap.
fn grouped() -> Vec<u8> {
    let documents = 20_000;
    let lists: [BTreeSet<u32>; 5] = [
        (3_000..3_050).chain(9_000..9_060).chain(19_900..20_000).collect(),
        (9_020..9_120).collect(),
        (0..documents).filter(|id| id % 1_000 < 200).collect(),
        (9_030..9_040).collect(),
        BTreeSet::from([9_031, 9_032]),
    ];
    encode(documents, &lists).as_ref().to_vec()
}

#[test]
fn groups_with_a_flipped_bit_are_refused() {
    let grouped = grouped();
    assert_eq!(ask(bytes(&aligned(&grouped))), Ok(()));
    let (mut refused, mut accepted) = (0, 0);
    let mut kinds = BTreeSet::new();
    for at in 0..grouped.len() {
        let mut damaged = grouped.clone();
        damaged[at] ^= 1 << (at % 8);
        match ask(bytes(&aligned(&damaged))) {
            Err(SegmentError::Groups { term }) => {
                refused += 1;
                kinds.insert(term);
            }
            Err(_) => refused += 1,
            Ok(()) => accepted += 1,
        }
    }
    assert!(refused > accepted, "{refused} refused, {accepted} accepted");
    assert!(kinds.len() >= 2, "{kinds:?}");
}

#[test]
fn forged_numbers_of_groups_are_refused() {
    let grouped = grouped();
    for term in 0..3 {
        let word = LINE + 4 * term + 3;
        for number in [1, 2, 1_000, u32::MAX] {
            let mut lines = aligned(&grouped);
            words_mut(&mut lines)[word] = number;
            assert!(ask(bytes(&lines)).is_err(), "{number} groups of term {term}");
        }
        // Groups are not needed.
        let mut lines = aligned(&grouped);
        words_mut(&mut lines)[word] = 0;
        assert_eq!(ask(bytes(&lines)), Ok(()));
    }
}

/// A small segment with a list of each form, and with buckets of two widths.
fn small() -> Vec<u8> {
    let documents = 4_000;
    let lists: [BTreeSet<u32>; 6] = [
        (0..documents).step_by(3).collect(),
        (0..60).map(|i| i * 66).collect(),
        BTreeSet::from([5, 3_999]),
        (100..120).collect(),
        BTreeSet::from([5, 6, 7]),
        BTreeSet::new(),
    ];
    let forms = lists.each_ref().map(|list| Form::of(narrow(list.len()), documents));
    let [wide, narrow] = [11, 9].map(|shift| Form::Buckets { shift });
    assert_eq!(forms, [Form::Bits, narrow, Form::Inline, wide, Form::Plain, Form::Inline]);
    encode(documents, &lists).as_ref().to_vec()
}

#[test]
fn a_segment_that_is_cut_is_refused() {
    let small = small();
    for len in 0..small.len() {
        let lines = aligned(&small[..len]);
        let _ = ask(bytes(&lines));
        assert!(ask(&bytes(&lines)[..len]).is_err(), "{len} bytes");
    }
    assert_eq!(ask(bytes(&aligned(&small))), Ok(()));
}

#[test]
fn a_segment_with_a_flipped_byte_is_refused_or_right() {
    let small = small();
    let mut refused = 0;
    for at in 0..small.len() {
        for bit in 0..8 {
            let mut damaged = small.clone();
            damaged[at] ^= 1 << bit;
            refused += u32::from(ask(bytes(&aligned(&damaged))).is_err());
        }
    }
    assert!(refused > 0);
}

#[test]
fn bytes_that_are_not_aligned_are_refused() {
    let small = small();
    let lines = aligned(&[&[0][..], &small[..]].concat());
    let shifted = &bytes(&lines)[1..=small.len()];
    assert_eq!(ask(shifted), Err(SegmentError::Alignment { bytes: small.len() }));
}

/// The error for the words of the small segment after a change.
fn forge(change: impl FnOnce(&mut [u32])) -> Result<(), SegmentError> {
    let mut lines = aligned(&small());
    change(words_mut(&mut lines));
    ask(bytes(&lines))
}

#[test]
fn forged_rows_are_refused_with_their_term() {
    let row = |term: usize| LINE + 4 * term;
    let bytes = small().len();
    assert_eq!(forge(|words| words[1] = u32::MAX), Err(SegmentError::Header { bytes }));
    assert_eq!(forge(|words| words[9] = 1), Err(SegmentError::Header { bytes }));
    assert_eq!(
        forge(|words| words[2] += 1),
        Err(SegmentError::Postings { postings: 1_419, expected: 1_420 })
    );
    // An unknown form, a place in the previous list, and a length past the documents.
    for (term, word, value) in [(0, 1, 9), (1, 2, 48), (3, 0, 5_000), (2, 0, 3), (4, 1, 1 << 16)] {
        let refused = forge(|words| words[row(term) + word] = value);
        let term = u32::try_from(term).unwrap();
        assert_eq!(refused, Err(SegmentError::Row { term }));
    }
}

#[test]
fn forged_lists_are_refused_with_their_term() {
    // The list of a term, a word of it, and the bits that change.
    let changes = [
        (0, 0, 2),        // A bit more than ids.
        (1, 0, 1),        // The first bucket begins after the first id.
        (1, 1, 1),        // An id belongs to the bucket before.
        (1, 1, 1 << 31),  // A bucket ends after the list.
        (1, 8, 1),        // The last bucket ends before the list.
        (1, 9, 66 << 16), // Two ids of a bucket are equal.
        (1, 9, 1 << 31),  // An id is in the bucket of another one.
        (3, 3, 255),      // Ids of a bucket descend.
        (4, 1, 15),       // An id is greater than the one after it.
        (4, 2, 1 << 20),  // An id is no document.
    ];
    for (term, word, bits) in changes {
        let refused = forge(|words| {
            let place = words[LINE + 4 * term + 2] as usize;
            words[place + word] ^= bits;
        });
        let term = narrow(term);
        assert_eq!(refused, Err(SegmentError::List { term }), "word {word} of term {term}");
    }
}

#[test]
fn a_copy_is_the_same_segment() {
    let small = small();
    let copy = SegmentBytes::copy_of(&small).unwrap();
    assert_eq!(copy.as_ref(), small);
    assert_eq!(ask(copy.as_ref()), Ok(()));
    let bytes = small.len() - 4;
    assert_eq!(SegmentBytes::copy_of(&small[..bytes]), Err(SegmentError::Alignment { bytes }));
    assert!(SegmentBytes::copy_of(&small[1..]).is_err());
}

#[test]
fn errors_say_what_is_wrong() {
    let error = SegmentError::Postings { postings: 3, expected: 4 };
    assert_eq!(error.to_string(), "3 postings; the header says 4");
    assert_eq!(SegmentError::Row { term: 9 }.to_string(), "invalid row of term 9");
}

proptest! {
    #[test]
    fn arbitrary_changes_of_words_never_panic(
        changes in prop::collection::vec((any::<u16>(), prop_oneof![
            any::<u32>(), 0..70_u32, (0..32_u32).prop_map(|bit| 1 << bit),
        ]), 1..6),
    ) {
        let mut lines = aligned(&small());
        let content = words_mut(&mut lines);
        for (at, word) in changes {
            let len = content.len();
            content[usize::from(at) % len] = word;
        }
        let _ = ask(bytes(&lines));
        prop_assert!(words(bytes(&lines)).is_some());
    }
}

//! Fetches the lists of several queries, so that their misses of the cache overlap.

use super::answers::fetch_buckets;
use super::plan::Steps;
use super::segment::{Groups, List};
use crate::simd::prefetch;

/// Number of queries whose lists are fetched together. More queries push each other's lists out of
/// the first-level cache.
pub(super) const GROUP: usize = 16;

/// Lines of a list that are fetched: the processor prefetches later lines by itself.
const LINES: usize = 4;

/// Lines of a summary that are fetched.
const SUMMARY_LINES: usize = 16;

/// Ids of a list whose places in the next list are fetched; the step fetches the places of later
/// ids.
const IDS: usize = 32;

/// The first ids of a list.
#[derive(Clone, Copy)]
struct Head {
    ids: [u32; IDS],
    len: usize,
}

/// Fetches the first lines of all lists of at most [`GROUP`] queries, and then the places in the
/// second list of a query that its first ids meet.
#[inline(always)]
pub(super) fn fetch(group: &[Steps<'_>]) {
    for steps in group {
        if is_grouped(steps) {
            for &key in steps.keys {
                steps.groups(key).into_iter().for_each(fetch_summary);
            }
            continue;
        }
        for &key in steps.keys {
            fetch_lines(steps.list(key));
        }
    }
    let mut heads = [Head { ids: [0; IDS], len: 0 }; GROUP];
    for (steps, head) in group.iter().zip(&mut heads) {
        let Some((first, [second, ..])) = steps.split() else { continue };
        if is_grouped(steps) {
            continue;
        }
        head.len = first.head(&mut head.ids);
        fetch_places(steps.list(*second), &head.ids[..head.len]);
    }
    for (steps, head) in group.iter().zip(&heads) {
        let Some((_, [second, ..])) = steps.split() else { continue };
        if head.len == 0 {
            continue;
        }
        if let List::Buckets(list) = steps.list(*second) {
            fetch_buckets(&head.ids[..head.len], list);
        }
    }
}

/// Whether a query is answered by groups, except for rare queries with a longer list without
/// groups.
#[inline(always)]
fn is_grouped(steps: &Steps<'_>) -> bool {
    steps.keys.first().is_some_and(|&key| steps.groups(key).is_some())
}

/// Fetches the first lines of a summary.
#[inline(always)]
fn fetch_summary(groups: Groups<'_>) {
    for line in 0..SUMMARY_LINES.min(groups.summary.len()) {
        prefetch(groups.summary, line);
    }
}

/// Fetches the first lines of a list that is read from its beginning.
#[inline(always)]
fn fetch_lines(list: List<'_>) {
    match list {
        List::Plain(ids) => {
            for line in 0..LINES.min(ids.len().div_ceil(16)) {
                prefetch(ids, line * 16);
            }
        }
        List::Buckets(list) => {
            prefetch(list.directory, 0);
            for line in 0..LINES {
                prefetch(list.halves, line * 32);
            }
        }
        List::Bits(_) => {}
    }
}

/// Fetches the words that say whether ids are in a list, or where.
#[inline(always)]
fn fetch_places(list: List<'_>, ids: &[u32]) {
    match list {
        List::Plain(_) => {}
        List::Buckets(list) => {
            for id in ids {
                prefetch(list.directory, (id >> list.shift) as usize);
            }
        }
        List::Bits(words) => {
            for id in ids {
                prefetch(words, (id / 32) as usize);
            }
        }
    }
}

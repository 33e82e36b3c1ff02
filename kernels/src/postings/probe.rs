//! The loop over probes.

use super::call::{Candidate, Index, List, Met, Posting, Probes, Sifted, Window};
use super::registers::{Kernel, Registers};
use super::scan::{Blocks, PART, Passed, Scalar, Scan, Sought};
use super::{BLOCK, LINE, POSITION_MAX};
use crate::prefetch::prefetch;

/// How many probes ahead lists are asked for, and how many ahead their postings.
const LISTS_AHEAD: usize = 6;
const POSTINGS_AHEAD: usize = 3;

/// Bytes of lists that are in the second-level cache anyway.
const LISTS_NEAR: usize = 1 << 20;

/// The arguments of [`sift`](super::sift).
pub(super) struct Sift<'a, 'b, 'c> {
    pub(super) probes: Probes<'a>,
    pub(super) window: Window<'a>,
    pub(super) index: &'b mut Index<'c>,
    pub(super) candidates: &'b mut Vec<Candidate>,
    pub(super) candidates_max: usize,
}

impl Kernel for Sift<'_, '_, '_> {
    type Output = Sifted;

    fn scalar(self) -> Sifted {
        sift(Scalar, self)
    }

    #[inline(always)]
    fn blocks<R: Registers>(self, registers: R) -> Sifted {
        sift(Blocks(registers), self)
    }
}

#[inline(always)]
fn sift(scan: impl Scan, call: Sift<'_, '_, '_>) -> Sifted {
    let Sift { probes, window, index, candidates, candidates_max } = call;
    let mut passed = Passed { met: [Met::default(); PART + BLOCK], len: 0 };
    let mut sifted = Sifted::default();
    for probe in probes.range.clone() {
        if probe > probes.range.start && sifted.candidates >= candidates_max {
            break;
        }
        ask_ahead(&probes, window, index, probe as usize);
        let tokens = &probes.tokens[probes.offsets[probe as usize] as usize..];
        let signature = probes.signatures[probe as usize];
        for (position, (&token, &rank_max)) in (0..).zip(tokens.iter().zip(window.rank_max)) {
            if token < probes.token_min {
                continue;
            }
            let list = &mut index.lists[index.partner_lists + token as usize];
            skip_small(list, index.postings, window.rank_min);
            if list.begin == list.end {
                continue;
            }
            let list = *list;
            let sought = Sought { window, rank_max, signature };
            let found = Found { probe, position, list, sought };
            found.collect(scan, index, &mut passed, candidates, &mut sifted);
        }
        add(&probes, window, index, probe);
        sifted.probes += 1;
    }
    sifted
}

/// Asks for the lists and the postings of the probes to come.
#[inline(always)]
fn ask_ahead(probes: &Probes<'_>, window: Window<'_>, index: &Index<'_>, probe: usize) {
    let end = probes.range.end as usize;
    let prefix =
        |probe: usize| &probes.tokens[probes.offsets[probe] as usize..][..window.rank_max.len()];
    if probe + LISTS_AHEAD < end && size_of_val(&*index.lists) > LISTS_NEAR {
        for &token in prefix(probe + LISTS_AHEAD) {
            prefetch(index.lists, index.partner_lists + token as usize);
        }
    }
    if probe + POSTINGS_AHEAD < end {
        for &token in prefix(probe + POSTINGS_AHEAD) {
            let list = index.lists[index.partner_lists + token as usize];
            let begin = list.begin as usize;
            if list.begin < list.end {
                prefetch(index.postings, begin);
                if begin + LINE < list.end as usize {
                    prefetch(index.postings, begin + LINE);
                }
            }
        }
    }
}

/// Moves the beginning of a list behind the sets that are too small.
#[inline(always)]
fn skip_small(list: &mut List, postings: &[Posting], rank_min: u32) {
    while list.begin < list.end && postings[list.begin as usize].place >> 16 < rank_min {
        list.begin += 1;
    }
}

/// Adds a probe to the lists of its prefix.
#[inline(always)]
fn add(probes: &Probes<'_>, window: Window<'_>, index: &mut Index<'_>, probe: u32) {
    let tokens = &probes.tokens[probes.offsets[probe as usize] as usize..][..window.index_prefix];
    let signature = probes.signatures[probe as usize];
    for (position, &token) in (0_u32..).zip(tokens) {
        if token < probes.token_min {
            continue;
        }
        let list = &mut index.lists[index.own_lists + token as usize];
        let place = window.rank << 16 | position.min(POSITION_MAX);
        index.postings[list.end as usize] = Posting { place, set: probe, signature };
        list.end += 1;
    }
}

/// A list in which a probe may find candidates.
struct Found<'a> {
    probe: u32,
    position: u32,
    list: List,
    sought: Sought<'a>,
}

impl Found<'_> {
    /// Writes down what passes and is new.
    ///
    /// A set that fails by position here fails at every later token too, so it counts as met.
    #[inline(always)]
    fn collect(
        self,
        scan: impl Scan,
        index: &mut Index<'_>,
        passed: &mut Passed,
        candidates: &mut Vec<Candidate>,
        sifted: &mut Sifted,
    ) {
        let Self { probe, position, list, sought } = self;
        let (mut at, end) = (list.begin as usize, list.end as usize);
        loop {
            let stop = scan.scan(index.postings, at, end, sought, passed);
            sifted.postings += (stop.at - at) as u64;
            sifted.passed += passed.len as u64;
            let mut written = sifted.candidates;
            let needed = written + passed.len + 1;
            if candidates.len() < needed {
                candidates.resize(needed.next_power_of_two(), Candidate::default());
            }
            for &Met { place, set } in &passed.met[..passed.len] {
                let rank = (place >> 16).min(sought.window.rank);
                let met = &mut index.met[set as usize];
                let is_new = *met != probe + 1
                    && rank <= sought.rank_max
                    && place & 0xffff <= sought.window.position_max[rank as usize];
                *met = probe + 1;
                candidates[written] = Candidate { probe, set, position, place };
                written += usize::from(is_new);
            }
            sifted.candidates = written;
            at = stop.at;
            if stop.is_end {
                return;
            }
        }
    }
}

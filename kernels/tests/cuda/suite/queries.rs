//! Conjunctive queries over lists of every form, against intersections of `BTreeSet`s.

use std::sync::Arc;

use trommel_kernels::cuda::queries::{
    DeviceIndex, DocumentLimits, Policy, QueryCounts, QueryDocuments, QueryJob, QueryLimits,
    SerialCounts, SerialLimits, Streamed, StreamedJob, StreamedLimits, Way,
};
use trommel_kernels::cuda::{Device, Flights, Kernels, Lane, Memory, Slot};
use trommel_kernels::inverted::{DocumentSet, ListNamer, QueryBatch};

use super::super::device;
use super::super::lists::{Form, ListCase};
use super::BUDGET;

/// The memory, streams and kernels that run cases on a device.
struct Bench {
    memory: Arc<Memory>,
    lane: Arc<Lane>,
    counts: Arc<Kernels<QueryCounts>>,
    documents: Arc<Kernels<QueryDocuments>>,
}

/// Limits of exactly the size of a case, so that an access past its end is outside of memory.
fn limits(case: &ListCase, units: usize) -> QueryLimits {
    QueryLimits { queries: case.queries(), terms: case.terms.len(), units }
}

impl Bench {
    fn new(device: &Device) -> Self {
        Self {
            memory: Memory::new(device, BUDGET, BUDGET),
            lane: Arc::new(Lane::new(device).unwrap()),
            counts: Kernels::load(device).unwrap(),
            documents: Kernels::load(device).unwrap(),
        }
    }

    fn count(&self, slot: Slot<QueryCounts>, job: &QueryJob<'_>) -> Slot<QueryCounts> {
        slot.submit(&self.lane, &self.counts, job).unwrap().collect().unwrap()
    }

    /// Asks until all queries are finished, with room for `room` documents.
    fn find(&self, case: &ListCase, index: &Arc<DeviceIndex>, limits: DocumentLimits) -> Found {
        let mut slot = Slot::<QueryDocuments>::new(&self.memory, limits).unwrap();
        let mut found = Found { documents: Vec::new(), batches: 0 };
        while found.batches == 0 || found.documents.len() < case.queries() {
            let offsets = &case.offsets[found.documents.len()..];
            let queries = QueryBatch::new(offsets, &case.terms);
            let job = QueryJob { queries, index, policy: Policy::default() };
            slot = slot.submit(&self.lane, &self.documents, &job).unwrap().collect().unwrap();
            let finished = slot.finished();
            let least = queries.len().min(1);
            assert!((least..=queries.len()).contains(&finished), "{finished} are finished");
            let documents = (0..finished).map(|query| slot.documents(query).unwrap().to_vec());
            found.documents.extend(documents);
            assert!((finished..queries.len()).all(|query| slot.documents(query).is_none()));
            let (offsets, documents) = slot.all_documents();
            assert_eq!(offsets.len(), finished + 1);
            assert_eq!(*offsets.last().unwrap() as usize, documents.len());
            found.batches += 1;
        }
        found
    }
}

/// The documents of each query, and the number of batches that found them.
struct Found {
    documents: Vec<Vec<u32>>,
    batches: usize,
}

/// Compares counts of both ways, and documents, with room for no, few and all units and documents.
fn check(case: &ListCase) {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device);
    let (expected, segment) = (case.by_hand(), case.segment());
    let index = DeviceIndex::upload(&bench.memory, &segment).unwrap();
    let plain = DeviceIndex::upload_plain(&bench.memory, &segment).unwrap();
    let counts: Vec<u32> = expected.iter().map(|ids| ids.len().try_into().unwrap()).collect();
    let queries = QueryBatch::new(&case.offsets, &case.terms);
    for (way, index, units) in [
        (Way::Units, &index, 10_000),
        (Way::Units, &index, 1),
        (Way::Units, &plain, 5),
        (Way::Blocks, &index, 0),
        (Way::Blocks, &plain, 0),
    ] {
        let slot = Slot::new(&bench.memory, limits(case, units)).unwrap();
        let policy = Policy::of(way);
        let slot = bench.count(slot, &QueryJob { queries, index, policy });
        assert_eq!(slot.counts(), counts, "{}, {way:?}, {units} units", case.name);
    }
    let all: usize = expected.iter().map(Vec::len).sum();
    for (units, room) in [(10_000, all), (2, case.longest().max(all / 3))] {
        let documents = room.max(case.longest()).max(1);
        let limits = DocumentLimits { queries: limits(case, units), documents };
        let found = bench.find(case, &index, limits);
        assert!(found.documents == expected, "{}, {units} units, room {room}", case.name);
        assert!((found.batches == 1) == (documents >= all), "{}: {}", case.name, found.batches);
    }
}

/// Every `step`th number from `begin` on below `end`.
fn every(begin: u32, end: u32, step: usize) -> impl Iterator<Item = u32> {
    (begin..end).step_by(step)
}

/// Lists of few ids, in all forms that such lists can have.
fn few_ids() -> ListCase {
    ListCase::new("few ids", 200)
        .list(Form::Inline, [])
        .list(Form::Inline, [0])
        .list(Form::Inline, [7, 199])
        .list(Form::Plain, [0, 7, 199])
        .list(Form::Plain, every(0, 15, 1))
        .list(Form::Buckets(4), every(0, 64, 4))
        .list(Form::Buckets(16), every(7, 92, 5))
        .list(Form::Bits, every(7, 200, 2))
        .list(Form::Bits, every(0, 200, 1))
        .all_pairs()
        .query(&[])
        .query(&[8, 7, 8, 7])
        .query(&[8, 9])
        .query(&[u32::MAX])
        .query(&[3, 8, 6, 7, 2, 3])
}

/// Lists around the size of a unit, skewed lists, and lists that span several upper halves of ids.
fn units_of_ids() -> ListCase {
    let documents = 3 * 65_536 + 40;
    ListCase::new("units of ids", documents)
        .list(Form::Plain, every(3, documents, 768))
        .list(Form::Buckets(13), every(5, documents, 771))
        .list(Form::Buckets(9), every(1, documents, 97))
        .list(Form::Buckets(7), (65_536..65_536 + 770).chain([documents - 1]))
        .list(Form::Buckets(16), (65_500..66_000).chain(131_000..131_100))
        .list(Form::Buckets(0), every(2, documents, 4_999))
        .list(Form::Bits, every(0, documents, 40))
        .list(Form::Bits, every(1, documents, 27))
        .list(Form::Plain, every(0, 257, 1))
        .list(Form::Plain, every(1, 257, 1))
        .list(Form::Plain, every(2, 257, 1))
        .all_pairs()
        .drawn(20, 3, 11)
        .drawn(12, 8, 12)
        .drawn(4, 100, 13)
        .query(&[6; 100])
        .query(&[2; 40])
        .query(&[2, 6, 7])
}

/// Compares counts and documents of batches that send their lists: with room for all lists, and
/// with room for the lists of the query with the most words.
fn check_streamed(case: &ListCase) {
    let Some(device) = device() else { return };
    let (segment, expected, mut namer) = (case.segment(), case.by_hand(), ListNamer::new());
    let queries = QueryBatch::new(&case.offsets, &case.terms);
    let all = namer.name(&segment, queries, usize::MAX).words();
    let alone = |query: usize| {
        let offsets = [0, queries.terms(query).len().try_into().unwrap()];
        let query = QueryBatch::new(&offsets, queries.terms(query));
        ListNamer::new().name(&segment, query, usize::MAX).words()
    };
    let largest = (0..queries.len()).map(alone).max().unwrap_or(all);
    for (words, units) in [(all, 10_000), (largest, 3)] {
        let batch = limits(case, units);
        let limits = StreamedLimits { batch, words };
        let documents = expected.iter().map(Vec::len).sum::<usize>().max(1);
        let batch = DocumentLimits { queries: batch, documents };
        let found = StreamedLimits { batch, words };
        let mut counts = Flights::<Streamed<QueryCounts>>::open(&device, 1, limits, 0).unwrap();
        let mut found = Flights::<Streamed<QueryDocuments>>::open(&device, 1, found, 0).unwrap();
        let (mut begin, mut batches) = (0, 0);
        while begin < queries.len() {
            let queries = QueryBatch::new(&case.offsets[begin..], &case.terms);
            let lists = namer.name(&segment, queries, words);
            let end = begin + lists.queries().len();
            assert!(begin < end, "{}: the lists of a query have room", case.name);
            for way in Way::ALL {
                counts.submit(&StreamedJob { lists, policy: Policy::of(*way) }, 0).unwrap();
                let landed = counts.collect(|slot| {
                    let counts = slot.counts().iter().map(|&count| count as usize);
                    assert!(counts.eq(expected[begin..end].iter().map(Vec::len)), "{way:?}");
                });
                let sent = lists.words() + 2 + end - begin + 1 + terms_len(lists.queries());
                assert_eq!(landed.unwrap().bytes_to_device, 4 * sent as u64);
            }
            found.submit(&StreamedJob { lists, policy: Policy::default() }, 0).unwrap();
            let landed = found.collect(|slot| {
                assert_eq!(slot.finished(), end - begin);
                assert_eq!(slot.all_documents().1, expected[begin..end].concat());
            });
            landed.unwrap();
            (begin, batches) = (end, batches + 1);
        }
        let is_cut = batches > 1;
        assert_eq!(is_cut, words < all, "{}: {batches} batches", case.name);
    }
}

fn terms_len(queries: QueryBatch<'_>) -> usize {
    (0..queries.len()).map(|query| queries.terms(query).len()).sum()
}

#[test]
fn small_queries_match_sets() {
    check(&few_ids());
    check_streamed(&few_ids());
}

#[test]
fn queries_of_several_units_match_sets() {
    check(&units_of_ids());
}

#[test]
fn queries_that_bring_their_lists_match_sets() {
    check_streamed(&units_of_ids());
}

#[test]
fn lists_of_a_power_of_2_of_ids_match_sets() {
    let documents = 65_900;
    check(
        &ListCase::new("2^16 ids", documents)
            .list(Form::Bits, 0..65_535)
            .list(Form::Plain, 0..65_536)
            .list(Form::Buckets(6), 300..65_837)
            .list(Form::Bits, every(11, documents, 999))
            .query(&[0, 1])
            .query(&[1, 2])
            .query(&[0, 3])
            .query(&[2, 3, 1, 0]),
    );
}

#[test]
fn ids_up_to_the_last_one_match_sets() {
    let last = u32::MAX - 1;
    check(
        &ListCase::new("last ids", u32::MAX)
            .list(Form::Plain, [1, 65_535, 65_536, last - 1, last])
            .list(Form::Buckets(16), (last - 300..=last).chain([0, 1, 65_536]))
            .list(Form::Buckets(16), every(last % 1_000_003, u32::MAX, 1_000_003))
            .list(Form::Inline, [last])
            .all_pairs()
            .query(&[0, 1, 2, 3])
            // A list follows the row of the last term.
            .query(&[4]),
    );
}

#[test]
fn nothing_is_a_batch() {
    check(&ListCase::new("no queries", 5).list(Form::Inline, [1]));
    check(&ListCase::new("no documents", 0).list(Form::Inline, []).query(&[0]).query(&[]));
}

/// Compares counts of one query after another, in batches of `step` queries. With one query, a
/// batch is the serial model of the paper: transfer, kernels and transfer back for each query.
fn check_serial(case: &ListCase, policy: Policy, step: usize) {
    let Some(device) = device() else { return };
    let memory = Memory::new(&device, BUDGET, BUDGET);
    let index = DeviceIndex::upload_plain(&memory, &case.segment()).unwrap();
    let expected: Vec<usize> = case.by_hand().iter().map(Vec::len).collect();
    let (terms, ids) = (case.terms.len(), case.longest());
    let limits = SerialLimits { queries: step, terms, ids };
    let mut flights = Flights::<SerialCounts>::open(&device, 1, limits, 0).unwrap();
    for (begin, expected) in (0..).step_by(step).zip(expected.chunks(step)) {
        let offsets = &case.offsets[begin..=begin + expected.len()];
        let terms = &case.terms[..*offsets.last().unwrap() as usize];
        let job = QueryJob { queries: QueryBatch::new(offsets, terms), index: &index, policy };
        flights.submit(&job, 0).unwrap();
        let landed = flights.collect(|slot| {
            let counts = slot.counts().iter().map(|&count| count as usize);
            assert!(counts.eq(expected.iter().copied()), "{} from {begin}", case.name);
        });
        let words = 2 + offsets.len() + terms.len() - offsets[0] as usize;
        let [sent, fetched] = [words, expected.len()].map(|words| 4 * words as u64);
        let landed = landed.unwrap();
        assert_eq!([landed.bytes_to_device, landed.bytes_from_device], [sent, fetched]);
    }
}

#[test]
fn serial_queries_match_sets() {
    let no_documents = ListCase::new("no documents", 0).list(Form::Inline, []).query(&[0]);
    check_serial(&no_documents, Policy::default(), 1);
    check_serial(&few_ids(), Policy::default(), 7);
    let case = ListCase::new("plain lists", 5_000)
        .list(Form::Plain, every(3, 5_000, 7))
        .list(Form::Plain, every(0, 5_000, 3))
        .list(Form::Plain, every(200, 5_000, 1))
        .list(Form::Plain, every(4_000, 5_000, 9))
        .all_pairs()
        .query(&[])
        .query(&[2, 2, 1, 0])
        .drawn(6, 4, 21);
    check_serial(&case, Policy::default(), case.queries());
    check_serial(&case, Policy::default().with_blocks_max(1), 1);
}

#[test]
fn serial_queries_of_many_tiles_match_sets() {
    let case = ListCase::new("tiles", 70_000)
        .list(Form::Plain, every(0, 66_100, 1))
        .list(Form::Plain, every(100, 70_000, 1))
        .query(&[0, 1, 1])
        .query(&[1, 1]);
    check_serial(&case, Policy::default(), 2);
}

#[test]
fn any_grid_gives_the_same() {
    let Some(device) = device() else { return };
    let (bench, case) = (Bench::new(&device), units_of_ids());
    let index = DeviceIndex::upload(&bench.memory, &case.segment()).unwrap();
    let queries = QueryBatch::new(&case.offsets, &case.terms);
    let counts: Vec<usize> = case.by_hand().iter().map(Vec::len).collect();
    for way in Way::ALL {
        let policy = Policy::of(*way).with_blocks_max(1);
        let slot = Slot::new(&bench.memory, limits(&case, 50)).unwrap();
        let slot = bench.count(slot, &QueryJob { queries, index: &index, policy });
        assert!(slot.counts().iter().map(|count| *count as usize).eq(counts.iter().copied()));
    }
}

#[test]
fn several_batches_are_in_flight_over_one_index() {
    let Some(device) = device() else { return };
    let case = units_of_ids();
    let limits = QueryLimits { queries: 9, terms: 900, units: 20 };
    let limits = DocumentLimits { queries: limits, documents: 900_000 };
    let mut flights = Flights::<QueryDocuments>::open(&device, 2, limits, BUDGET).unwrap();
    let index = DeviceIndex::upload(flights.memory(), &case.segment()).unwrap();
    let mut found = Vec::new();
    let mut collect = |flights: &mut Flights<QueryDocuments>| {
        let landed = flights.collect(|slot| {
            let finished = slot.finished();
            found.extend((0..finished).map(|query| slot.documents(query).unwrap().to_vec()));
        });
        assert!(landed.unwrap().bytes_from_device > 0);
    };
    for begin in (0..case.queries()).step_by(9) {
        if !flights.has_room() {
            collect(&mut flights);
        }
        let offsets = &case.offsets[begin..case.offsets.len().min(begin + 10)];
        let terms = &case.terms[..*offsets.last().unwrap() as usize];
        let queries = QueryBatch::new(offsets, terms);
        let job = QueryJob { queries, index: &index, policy: Policy::default() };
        flights.submit(&job, 0).unwrap();
    }
    while !flights.is_idle() {
        collect(&mut flights);
    }
    assert!(found == case.by_hand());
    assert_eq!(index.longest() as usize, case.longest());
}

#[test]
fn a_batch_crosses_the_bus_once_each_way() {
    let Some(device) = device() else { return };
    let (bench, case) = (Bench::new(&device), few_ids());
    let index = DeviceIndex::upload(&bench.memory, &case.segment()).unwrap();
    let queries = QueryBatch::new(&case.offsets, &case.terms);
    let job = QueryJob { queries, index: &index, policy: Policy::default() };
    let slot = Slot::new(&bench.memory, limits(&case, 1)).unwrap();
    let landed = bench.count(slot, &job).landed();
    let words = 2 + case.offsets.len() + case.terms.len();
    assert_eq!(landed.bytes_to_device, 4 * words as u64);
    assert_eq!(landed.bytes_from_device, 4 * case.queries() as u64);
}

#[test]
#[should_panic(expected = "words exceed 16")]
fn too_many_lists_are_refused() {
    let device = device().unwrap_or_else(|| panic!("words exceed 16, and no device"));
    let (case, mut namer) = (few_ids(), ListNamer::new());
    let (segment, queries) = (case.segment(), QueryBatch::new(&case.offsets, &case.terms));
    let limits = StreamedLimits { batch: limits(&case, 0), words: 16 };
    let mut flights = Flights::<Streamed<QueryCounts>>::open(&device, 1, limits, 0).unwrap();
    let lists = namer.name(&segment, queries, usize::MAX);
    drop(flights.submit(&StreamedJob { lists, policy: Policy::default() }, 0));
}

#[test]
#[should_panic(expected = "the lists are not plain")]
fn serial_queries_over_other_lists_are_refused() {
    let device = device().unwrap_or_else(|| panic!("the lists are not plain, and no device"));
    let (memory, case) = (Memory::new(&device, BUDGET, BUDGET), few_ids());
    let index = DeviceIndex::upload(&memory, &case.segment()).unwrap();
    let limits = SerialLimits { queries: 100, terms: 200, ids: 200 };
    let mut flights = Flights::<SerialCounts>::open(&device, 1, limits, 0).unwrap();
    let queries = QueryBatch::new(&case.offsets, &case.terms);
    drop(flights.submit(&QueryJob { queries, index: &index, policy: Policy::default() }, 0));
}

/// Submits two queries of three terms over a list of two ids; `said` is the panic without a
/// device.
fn refused(said: &str, limits: DocumentLimits, within: Option<DocumentSet<'_>>) {
    let device = device().unwrap_or_else(|| panic!("{said}, and no device"));
    let bench = Bench::new(&device);
    let case = ListCase::new("refused", 9).list(Form::Inline, [1, 2]).query(&[0, 0]).query(&[0]);
    let index = DeviceIndex::upload(&bench.memory, &case.segment()).unwrap();
    let mut queries = QueryBatch::new(&case.offsets, &case.terms);
    if let Some(within) = within {
        queries = queries.within(within);
    }
    let job = QueryJob { queries, index: &index, policy: Policy::default() };
    let slot = Slot::<QueryDocuments>::new(&bench.memory, limits).unwrap();
    drop(slot.submit(&bench.lane, &bench.documents, &job));
}

const LIMITS: QueryLimits = QueryLimits { queries: 2, terms: 3, units: 0 };

#[test]
#[should_panic(expected = "a batch of 2 queries exceeds 1")]
fn too_many_queries_are_refused() {
    let queries = QueryLimits { queries: 1, ..LIMITS };
    refused("a batch of 2 queries exceeds 1", DocumentLimits { queries, documents: 2 }, None);
}

#[test]
#[should_panic(expected = "a batch of 3 terms exceeds 2")]
fn too_many_terms_are_refused() {
    let queries = QueryLimits { terms: 2, ..LIMITS };
    refused("a batch of 3 terms exceeds 2", DocumentLimits { queries, documents: 2 }, None);
}

#[test]
fn a_query_without_room_is_not_finished() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device);
    let case = ListCase::new("room", 9).list(Form::Inline, [1, 2]).list(Form::Inline, [5]);
    let case = case.query(&[1]).query(&[0]).query(&[1]);
    let index = DeviceIndex::upload(&bench.memory, &case.segment()).unwrap();
    for (skipped, expected) in [(0, 1), (1, 0), (2, 1)] {
        let limits = DocumentLimits { queries: limits(&case, 0), documents: 1 };
        let slot = Slot::<QueryDocuments>::new(&bench.memory, limits).unwrap();
        let queries = QueryBatch::new(&case.offsets[skipped..], &case.terms);
        let job = QueryJob { queries, index: &index, policy: Policy::default() };
        let slot = slot.submit(&bench.lane, &bench.documents, &job).unwrap().collect().unwrap();
        assert_eq!(slot.finished(), expected);
        assert_eq!(slot.documents(0).map(<[u32]>::to_vec), (expected > 0).then(|| vec![5]));
    }
}

#[test]
#[should_panic(expected = "room for 0 documents")]
fn no_room_is_refused() {
    let limits = DocumentLimits { queries: LIMITS, documents: 0 };
    refused("room for 0 documents", limits, None);
}

#[test]
#[should_panic(expected = "a device answers queries over all documents")]
fn queries_within_documents_are_refused() {
    let limits = DocumentLimits { queries: LIMITS, documents: 2 };
    let said = "a device answers queries over all documents";
    refused(said, limits, Some(DocumentSet::list(&[1])));
}

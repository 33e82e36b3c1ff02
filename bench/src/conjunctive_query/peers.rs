//! Other indexes of the same documents, on one thread: the crates roaring, croaring and tantivy.
//!
//! Bitmaps are intersected by their shortest list first, and the last intersection only counts.
//! tantivy has one segment in memory, without positions, frequencies and norms, and its counting
//! collector, which computes no scores; queries are made before.

use croaring::{Bitmap, Portable};
use roaring::RoaringBitmap;
use tantivy::collector::Count;
use tantivy::indexer::NoMergePolicy;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, Searcher, TantivyDocument, TantivyError, Term};

use super::index::Workload;
use super::peer::{Peer, PeerName};

/// Memory of the writer of tantivy in bytes.
const WRITER_BYTES: usize = 1 << 30;

/// Builds the index of a peer.
pub(super) fn named(workload: &Workload, queries: usize, name: PeerName) -> Peer<'_> {
    match name {
        PeerName::Roaring => of_roaring(workload),
        PeerName::Croaring => of_croaring(workload),
        PeerName::Tantivy => of_tantivy(workload, queries).expect("tantivy indexes and finds"),
    }
}

fn of_roaring(workload: &Workload) -> Peer<'_> {
    let list = |ids: &Vec<u32>| {
        let list = RoaringBitmap::from_sorted_iter(ids.iter().copied());
        let mut list = list.expect("documents ascend");
        list.optimize();
        list
    };
    let lists: Vec<RoaringBitmap> = workload.lists.iter().map(list).collect();
    let bytes = lists.iter().map(RoaringBitmap::serialized_size).sum();
    let count = move |query| {
        let terms = workload.query(query).iter();
        let mut of_query: Vec<&RoaringBitmap> = terms.map(|&term| &lists[term as usize]).collect();
        of_query.sort_unstable_by_key(|list| list.len());
        let found = match &of_query[..] {
            [] => 0,
            [only] => only.len(),
            [first, last] => first.intersection_len(last),
            [first, second, others @ .., last] => {
                let mut left = *first & *second;
                others.iter().for_each(|list| left &= *list);
                left.intersection_len(last)
            }
        };
        u32::try_from(found).expect("ids have 32 bits")
    };
    Peer { name: "roaring", bytes, count: Box::new(count) }
}

fn of_croaring(workload: &Workload) -> Peer<'_> {
    let list = |ids: &Vec<u32>| {
        let mut list = Bitmap::of(ids);
        list.run_optimize();
        list.shrink_to_fit();
        list
    };
    let lists: Vec<Bitmap> = workload.lists.iter().map(list).collect();
    let size = |list: &Bitmap| list.get_serialized_size_in_bytes::<Portable>();
    let bytes = lists.iter().map(size).sum();
    let count = move |query| {
        let terms = workload.query(query).iter();
        let mut of_query: Vec<(usize, &Bitmap)> = terms
            .map(|&term| (workload.lists[term as usize].len(), &lists[term as usize]))
            .collect();
        of_query.sort_unstable_by_key(|&(len, _)| len);
        let found = match &of_query[..] {
            [] => 0,
            [(_, only)] => only.cardinality(),
            [(_, first), (_, last)] => first.and_cardinality(last),
            [(_, first), (_, second), others @ .., (_, last)] => {
                let mut left = first.and(second);
                others.iter().for_each(|(_, list)| left.and_inplace(list));
                left.and_cardinality(last)
            }
        };
        u32::try_from(found).expect("ids have 32 bits")
    };
    Peer { name: "croaring", bytes, count: Box::new(count) }
}

fn of_tantivy(workload: &Workload, queries: usize) -> Result<Peer<'_>, TantivyError> {
    let (searcher, field) = open_tantivy(workload)?;
    let term = |&term: &u32| {
        let term = Term::from_field_text(field, &text(term));
        let query: Box<dyn Query> = Box::new(TermQuery::new(term, IndexRecordOption::Basic));
        (Occur::Must, query)
    };
    let query = |query| BooleanQuery::new(workload.query(query).iter().map(term).collect());
    let made: Vec<BooleanQuery> = (0..queries).map(query).collect();
    let usage = searcher.space_usage()?;
    let bytes = usage
        .segments()
        .iter()
        .map(|segment| (segment.termdict().total() + segment.postings().total()).get_bytes());
    let bytes = usize::try_from(bytes.sum::<u64>()).expect("it is in memory");
    let count = move |query: usize| {
        let found = searcher.search(&made[query], &Count).expect("memory can be read");
        u32::try_from(found).expect("ids have 32 bits")
    };
    Ok(Peer { name: "tantivy", bytes, count: Box::new(count) })
}

/// A term as text.
fn text(term: u32) -> String {
    format!("{term:x}")
}

/// An index of one segment in memory.
fn open_tantivy(workload: &Workload) -> Result<(Searcher, Field), TantivyError> {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("whitespace")
        .set_index_option(IndexRecordOption::Basic)
        .set_fieldnorms(false);
    let mut schema = Schema::builder();
    let options = TextOptions::default().set_indexing_options(indexing);
    let field = schema.add_text_field("terms", options);
    let index = Index::create_in_ram(schema.build());
    let mut writer = index.writer_with_num_threads(1, WRITER_BYTES)?;
    writer.set_merge_policy(Box::new(NoMergePolicy));
    for document in 0..workload.documents.len() {
        let terms = workload.documents.terms(document).iter();
        let terms: Vec<String> = terms.map(|&term| text(term)).collect();
        let mut document = TantivyDocument::new();
        document.add_text(field, terms.join(" "));
        writer.add_document(document)?;
    }
    writer.commit()?;
    let segments = index.searchable_segment_ids()?;
    // Several segments would be searched one after the other.
    if segments.len() > 1 {
        writer.merge(&segments).wait()?;
    }
    writer.wait_merging_threads()?;
    Ok((index.reader()?.searcher(), field))
}

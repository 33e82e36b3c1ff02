//! Other indexes of the same documents, on one thread: the crates roaring, croaring and tantivy.
//!
//! Bitmaps are intersected by their shortest list first, and the last intersection only counts.
//! tantivy has one segment in memory, without positions, frequencies and norms, and its counting
//! collector, which computes no scores; queries are made before.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use croaring::{Bitmap, Portable};
use roaring::RoaringBitmap;
use serde::Deserialize;
use serde_json::{Value, json};
use tantivy::collector::Count;
use tantivy::indexer::NoMergePolicy;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Searcher, TantivyDocument, TantivyError, Term};

use crate::numbers::read_u32;

/// Memory of the writer of tantivy in bytes.
const WRITER_BYTES: usize = 1 << 30;

/// A task over the documents of files.
#[derive(Debug, Deserialize)]
pub(crate) struct Job {
    /// Name of the crate.
    index: String,
    /// Folder of the files `offsets` and `ids` of the documents of each term, and `query_offsets`
    /// and `query_terms`.
    folder: PathBuf,
    documents: u32,
    task: Task,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Task {
    /// The count of each query, and the bytes of the index.
    Counts,
    /// The time of all queries as they come, and the sum of their counts.
    Sum,
    /// As `Sum`, but queries that search the same list follow each other.
    SumByList,
}

/// Lists of documents and queries, and the indexes that earlier jobs have built.
#[derive(Default)]
pub(crate) struct Documents {
    folder: PathBuf,
    workload: Option<&'static Workload>,
    indexes: Vec<Index>,
}

/// The documents of each term, and queries.
struct Workload {
    documents: u32,
    lists: Vec<Vec<u32>>,
    queries: Vec<Vec<u32>>,
    /// Order of the queries by their lists.
    by_list: Vec<usize>,
}

/// An index of a peer.
struct Index {
    name: &'static str,
    /// Bytes of the index, as it would be stored.
    bytes: usize,
    /// Counts the documents of a query.
    count: Box<dyn Fn(usize) -> u32>,
}

impl Documents {
    pub(crate) fn run(&mut self, job: &Job) -> Result<Value, Box<dyn Error>> {
        if self.folder != job.folder {
            // The indexes of the old documents go, and their lists stay: few workloads have a run.
            self.indexes.clear();
            self.workload = Some(Box::leak(Box::new(Workload::read(&job.folder, job.documents)?)));
            self.folder.clone_from(&job.folder);
        }
        let workload = self.workload.ok_or("the folder has no name")?;
        if self.indexes.iter().all(|index| index.name != job.index) {
            self.indexes.push(match job.index.as_str() {
                "roaring" => of_roaring(workload),
                "croaring" => of_croaring(workload),
                "tantivy" => of_tantivy(workload)?,
                other => return Err(format!("no index has the name {other:?}").into()),
            });
        }
        let index = self.indexes.iter().find(|index| index.name == job.index).expect("it is built");
        Ok(index.answer(&job.task, workload))
    }
}

impl Index {
    fn answer(&self, task: &Task, workload: &Workload) -> Value {
        let (bytes, queries) = (self.bytes, workload.queries.len());
        let count = |query| u64::from((self.count)(query));
        let begin = Instant::now();
        let sum: u64 = match task {
            Task::Counts => {
                let counts: Vec<u32> = (0..queries).map(&self.count).collect();
                return json!({ "bytes": bytes, "counts": counts });
            }
            Task::Sum => (0..queries).map(count).sum(),
            Task::SumByList => workload.by_list.iter().map(|&query| count(query)).sum(),
        };
        json!({ "seconds": begin.elapsed().as_secs_f64(), "answer": sum })
    }
}

impl Workload {
    fn read(folder: &Path, documents: u32) -> io::Result<Self> {
        let numbers = |name: &str| read_u32(&folder.join(name));
        let lists = parts(&numbers("offsets")?, &numbers("ids")?);
        let queries = parts(&numbers("query_offsets")?, &numbers("query_terms")?);
        // Queries by their second shortest list, then by their shortest.
        let mut by_list: Vec<usize> = (0..queries.len()).collect();
        by_list.sort_by_cached_key(|&query| {
            let len = |term: u32| lists[term as usize].len();
            let mut of_query: Vec<(usize, u32)> =
                queries[query].iter().map(|&term| (len(term), term)).collect();
            of_query.sort_unstable();
            [of_query.get(1).copied(), of_query.first().copied()]
        });
        Ok(Self { documents, lists, queries, by_list })
    }

    /// The terms of each document.
    fn terms(&self) -> Vec<Vec<u32>> {
        let mut terms = vec![Vec::new(); self.documents as usize];
        for (term, list) in (0..).zip(&self.lists) {
            list.iter().for_each(|&id| terms[id as usize].push(term));
        }
        terms
    }
}

/// Cuts numbers at offsets.
fn parts(offsets: &[u32], numbers: &[u32]) -> Vec<Vec<u32>> {
    let part = |ends: &[u32]| numbers[ends[0] as usize..ends[1] as usize].to_vec();
    offsets.windows(2).map(part).collect()
}

fn of_roaring(workload: &'static Workload) -> Index {
    let list = |ids: &Vec<u32>| {
        let list = RoaringBitmap::from_sorted_iter(ids.iter().copied());
        let mut list = list.expect("documents ascend");
        list.optimize();
        list
    };
    let lists: Vec<RoaringBitmap> = workload.lists.iter().map(list).collect();
    let bytes = lists.iter().map(RoaringBitmap::serialized_size).sum();
    let count = move |query: usize| {
        let terms = workload.queries[query].iter();
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
    Index { name: "roaring", bytes, count: Box::new(count) }
}

fn of_croaring(workload: &'static Workload) -> Index {
    let list = |ids: &Vec<u32>| {
        let mut list = Bitmap::of(ids);
        list.run_optimize();
        list.shrink_to_fit();
        list
    };
    let lists: Vec<Bitmap> = workload.lists.iter().map(list).collect();
    let size = |list: &Bitmap| list.get_serialized_size_in_bytes::<Portable>();
    let bytes = lists.iter().map(size).sum();
    let count = move |query: usize| {
        let terms = workload.queries[query].iter();
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
    Index { name: "croaring", bytes, count: Box::new(count) }
}

fn of_tantivy(workload: &'static Workload) -> Result<Index, TantivyError> {
    let (searcher, field) = open_tantivy(workload)?;
    let term = |&term: &u32| {
        let term = Term::from_field_text(field, &text(term));
        let query: Box<dyn Query> = Box::new(TermQuery::new(term, IndexRecordOption::Basic));
        (Occur::Must, query)
    };
    let query =
        |query: usize| BooleanQuery::new(workload.queries[query].iter().map(term).collect());
    let made: Vec<BooleanQuery> = (0..workload.queries.len()).map(query).collect();
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
    Ok(Index { name: "tantivy", bytes, count: Box::new(count) })
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
    let index = tantivy::Index::create_in_ram(schema.build());
    let mut writer = index.writer_with_num_threads(1, WRITER_BYTES)?;
    writer.set_merge_policy(Box::new(NoMergePolicy));
    for terms in workload.terms() {
        let terms: Vec<String> = terms.into_iter().map(text).collect();
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

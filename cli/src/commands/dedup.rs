//! `trommel dedup`: the rows that are not similar to an earlier one, without a pipeline file.
//!
//! ```text
//! read ──► set_similarity_join, deduplicate ──► write
//!     └──► set_similarity_join              ──► write the pairs
//!                                          └──► clusters ──► write the clusters
//! ```

use std::path::Path;

use arrow_schema::DataType;
use serde_json::json;
use trommel::files::Destination;
use trommel::set_similarity_join::Similarity;
use trommel::{
    Clusters, Graph, Keep, Metrics, RunOptions, SetSimilarityJoin, Topology, Write, WriteFormat,
};

use super::inputs::{self, READ, STDIN, mistakes};
use crate::args::{DedupArguments, FileFormat, SimilarityName};
use crate::config::claim;
use crate::failure::{Failure, RUN_FAILED};
use crate::progress::{Ends, Progress};
use crate::session::Session;
use crate::units::{counted, grouped};

/// The id of the stage that passes rows.
const DEDUP: &str = "dedup";
/// The id of the stage that finds pairs.
const PAIRS: &str = "pairs";
/// The id of the stage that makes clusters of them.
const CLUSTERS: &str = "clusters";

pub(super) fn run(arguments: &DedupArguments) -> Result<u8, Failure> {
    let mut topology = graph(arguments)?;
    if arguments.output.is_some() {
        claim(&mut topology, Destination::stdout().claim("standard output"))?;
    }
    let ends = Ends { sources: vec![READ.to_owned()], sinks: vec!["rows".to_owned()] };
    let progress = Progress::new(ends, !arguments.quiet);
    let outcome = Session::start(topology, RunOptions::new(), progress, None)?.wait();
    let status = outcome.conclude();
    if !outcome.has_all_rows() {
        return Ok(status);
    }
    let metrics = &outcome.metrics;
    say_counts(metrics, arguments);
    inputs::say_left_out(metrics, &arguments.input, true, "");
    // As for `top`: a script learns that inputs were left out.
    Ok(if status == 0 && inputs::has_left_out(metrics) { RUN_FAILED } else { status })
}

/// The pipeline. A pair has the earlier row as `left`, which the clusters need, but for ids of 32
/// bits, which are in the order of their values: these are widened.
fn graph(arguments: &DedupArguments) -> Result<Topology, Failure> {
    let topology = graph_of(arguments, arguments.id.clone())?;
    let pairs = topology.stages().iter().find(|stage| stage.id == PAIRS);
    let has_narrow_ids =
        pairs.is_some_and(|pairs| *pairs.outputs[0].field(0).data_type() == DataType::UInt32);
    let read = topology.stages().iter().find(|stage| stage.id == READ);
    let has_column = read.is_some_and(|read| read.outputs[0].column_with_name("id").is_some());
    let id = arguments.id.clone().or_else(|| has_column.then(|| "id".to_owned()));
    match id.filter(|_| arguments.clusters.is_some() && has_narrow_ids) {
        Some(id) => graph_of(arguments, Some(format!("({id})::bigint"))),
        None => Ok(topology),
    }
}

fn graph_of(arguments: &DedupArguments, id: Option<String>) -> Result<Topology, Failure> {
    let files = inputs::files(&arguments.input);
    let format = inputs::format_of(&arguments.input, &files, true);
    let set = match (&arguments.by, format) {
        (Some(by), _) => by.clone(),
        (None, FileFormat::Lines) => "words(line)".to_owned(),
        (None, _) => {
            let example = "name the set of a row, such as --by 'words(text)'";
            return Err(Failure::usage(format!("--by is missing: {example}")));
        }
    };
    let similar = || {
        let join = SetSimilarityJoin::new(arguments.threshold).set(set.clone());
        join.similarity(match arguments.similarity {
            SimilarityName::Jaccard => Similarity::Jaccard,
            SimilarityName::Cosine => Similarity::Cosine,
            SimilarityName::Dice => Similarity::Dice,
            SimilarityName::Overlap => Similarity::Overlap,
        })
    };
    let mut graph = Graph::new();
    let rows = graph.add(READ, inputs::reading(&arguments.input, files, format)?);
    let kept = graph.add_after(rows, DEDUP, similar().deduplicate());
    graph.add_after(kept, "rows", writing(arguments, format)?);
    if arguments.pairs.is_some() || arguments.clusters.is_some() {
        let pairs = id.into_iter().fold(similar(), SetSimilarityJoin::id);
        let pairs = graph.add_after(rows, PAIRS, pairs);
        if let Some(path) = &arguments.pairs {
            let write = Write::new(path.clone(), format_named("--pairs", path)?);
            graph.add_after(pairs, "pairs-rows", write);
        }
        if let Some(path) = &arguments.clusters {
            let clusters = Clusters::new().keep(Keep::Unmatched);
            let clusters = graph.add_after(pairs, CLUSTERS, clusters);
            let write = Write::new(path.clone(), format_named("--clusters", path)?);
            graph.add_after(clusters, "clusters-rows", write);
        }
    }
    graph.build().map_err(mistakes)
}

/// The sink of the rows that stay.
fn writing(arguments: &DedupArguments, read: FileFormat) -> Result<Write, Failure> {
    if let Some(path) = arguments.output.as_deref().filter(|path| *path != STDIN) {
        return Ok(Write::new(path, format_named("--output", path)?));
    }
    Ok(Write::new(
        STDIN,
        match read {
            FileFormat::Lines => WriteFormat::Lines,
            FileFormat::Csv | FileFormat::Tsv => WriteFormat::Csv,
            FileFormat::Jsonl | FileFormat::Log | FileFormat::Parquet | FileFormat::Arrow => {
                WriteFormat::Jsonl
            }
        },
    ))
}

/// The format that the name of an output stands for.
fn format_named(option: &str, path: &str) -> Result<WriteFormat, Failure> {
    match Path::new(path).extension().and_then(|end| end.to_str()) {
        Some("jsonl" | "ndjson") => Ok(WriteFormat::Jsonl),
        Some("csv") => Ok(WriteFormat::Csv),
        Some("parquet") => Ok(WriteFormat::Parquet),
        Some("arrow" | "feather" | "ipc") => Ok(WriteFormat::Arrow),
        Some("txt") => Ok(WriteFormat::Lines),
        _ => {
            let allowed = "expected a name that ends with .jsonl, .csv, .parquet, .arrow or .txt";
            Err(Failure::usage(format!("{option}: {path}: {allowed}")))
        }
    }
}

fn say_counts(metrics: &Metrics, arguments: &DedupArguments) {
    let of = |stage: &str| {
        metrics.stage(stage).map_or((0, 0), |stage| (stage.items_in(), stage.items_out()))
    };
    let (read, kept) = of(DEDUP);
    let left_out = read.saturating_sub(kept);
    if arguments.report {
        let mut report = json!({ "rows": read, "kept": kept, "left_out": left_out });
        if arguments.pairs.is_some() {
            report["pairs"] = of(PAIRS).1.into();
        }
        if arguments.clusters.is_some() {
            report["clusters"] = inputs::counter(metrics, CLUSTERS, "clusters").into();
        }
        crate::say(&report.to_string());
    } else if !arguments.quiet {
        let (read, kept) = (counted(read, "row"), grouped(kept));
        crate::say(&format!(
            "kept {kept} of {read}; left out as similar to an earlier one: {left_out}"
        ));
    }
}

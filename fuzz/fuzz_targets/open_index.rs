//! Opens arbitrary bytes as an index file of `conjunctive_query`, and index files with some bytes
//! changed, under right checksums. An index that is accepted answers queries without a panic.
//!
//! `cargo xtask fuzz open_index`
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch};
use libfuzzer_sys::fuzz_target;
use trommel_engine::graph::Graph;
use trommel_engine::runtime::RunOptions;
use trommel_operators::{Collect, ConjunctiveQuery, Memory};

const HEADER_BYTES: usize = 64;

/// A folder of this process.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("trommel-fuzz-index-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("there is room for temporary files");
    folder
});

/// Sets of up to five terms each.
fn batch(terms: &[u8]) -> RecordBatch {
    let mut sets = ListBuilder::new(UInt32Builder::new());
    let set = |held: &[u8]| held.iter().map(|&term| Some(term.into())).collect::<Vec<_>>();
    terms.chunks(5).for_each(|held| sets.append_value(set(held)));
    let sets: ArrayRef = Arc::new(sets.finish());
    RecordBatch::try_from_iter([("set", sets)]).expect("one column")
}

/// Runs the operator; false if it refuses the index.
fn run(documents: Option<&[u8]>, queries: &[u8], spec: ConjunctiveQuery) -> bool {
    let mut graph = Graph::new();
    let search = graph.add("search", spec.memory_max(1 << 24));
    for (id, terms) in [("documents", documents), ("queries", Some(queries))] {
        let Some(terms) = terms else { continue };
        let batch = batch(terms);
        let source = graph.add(id, Memory::new(batch.schema(), vec![batch]));
        graph.connect(source, search);
    }
    let (sink, _rows) = Collect::new();
    graph.add_after(search, "rows", sink);
    let Ok(pipeline) = graph.build() else { return false };
    pipeline.run(RunOptions::new()).is_ok()
}

/// Writes the checksums of valid sections, if the header says where these are.
fn seal(bytes: &mut [u8]) {
    if bytes.len() < HEADER_BYTES {
        return;
    }
    let number = |bytes: &[u8], at: usize| {
        let bytes = bytes[at..].first_chunk().expect("within the header");
        usize::try_from(u64::from_le_bytes(*bytes)).unwrap_or(usize::MAX)
    };
    let end = HEADER_BYTES.saturating_add(number(bytes, 16)).min(bytes.len());
    let lists = crc32fast::hash(&bytes[HEADER_BYTES..end]);
    bytes[32..36].copy_from_slice(&lists.to_le_bytes());
    if let Some(begin) = bytes.len().checked_sub(4).filter(|&begin| begin >= end) {
        let description = crc32fast::hash(&bytes[end..begin]);
        bytes[begin..].copy_from_slice(&description.to_le_bytes());
    }
    let header = crc32fast::hash(&bytes[..60]);
    bytes[60..64].copy_from_slice(&header.to_le_bytes());
}

fuzz_target!(|data: &[u8]| {
    let Some((&[mode, split], data)) = data.split_first_chunk() else { return };
    let file = FOLDER.join("index");
    let spec = || ConjunctiveQuery::new().index_path(&file);
    let (documents, rest) = data.split_at(data.len() * usize::from(split) / 256);
    let mut bytes = data.to_vec();
    if mode % 3 > 0 {
        assert!(run(Some(documents), &[], spec()));
        bytes = fs::read(&file).expect("it was written");
        for change in rest.chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
            bytes[at] = change[2];
        }
        if mode % 3 > 1 {
            seal(&mut bytes);
        }
    }
    fs::write(&file, &bytes).expect("there is room");
    if run(None, rest, spec()) {
        let again = ConjunctiveQuery::new().restore(&file);
        assert!(run(Some(documents), rest, again) || rest.len() > 1 << 16, "it was opened before");
    }
});

//! Tables of Parquet and of Arrow.

use std::fs::File;
use std::path::Path;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::properties::WriterProperties;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, StringArray, UInt32Array};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use trommel_engine::memory::MemoryBudget;

use super::*;
use crate::source::read::pieces::reader::TableReader;
use crate::source::read::tables::arrow::ArrowTable;
use crate::source::read::tables::parquet::ParquetTable;
use crate::source::read::tables::source::{Columns, OpenTable, Opening, Tables, columns_of};

const WORDS: [&str; 3] = ["one", "two", "three"];

/// The format of a file.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Parquet(Compression),
    Arrow(Option<CompressionType>),
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![
        Kind::Parquet(Compression::UNCOMPRESSED),
        Kind::Parquet(Compression::ZSTD(ZstdLevel::default())),
        Kind::Arrow(None),
        Kind::Arrow(Some(CompressionType::ZSTD)),
    ])
}

impl Kind {
    fn open_as(self) -> OpenTable {
        match self {
            Self::Parquet(_) => ParquetTable::open,
            Self::Arrow(_) => ArrowTable::open,
        }
    }

    /// Writes rows in blocks of this number of rows.
    fn write(self, path: &Path, rows: &RecordBatch, block: usize) {
        let file = File::create(path).unwrap();
        match self {
            Self::Parquet(compression) => {
                let properties = WriterProperties::builder()
                    .set_compression(compression)
                    .set_max_row_group_row_count(Some(block))
                    .build();
                let mut writer =
                    ArrowWriter::try_new(file, rows.schema(), Some(properties)).unwrap();
                writer.write(rows).unwrap();
                writer.close().unwrap();
            }
            Self::Arrow(compression) => {
                let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
                let schema = rows.schema();
                let mut writer = FileWriter::try_new_with_options(file, &schema, options).unwrap();
                for begin in (0..rows.num_rows()).step_by(block) {
                    let rows = rows.slice(begin, block.min(rows.num_rows() - begin));
                    writer.write(&rows).unwrap();
                }
                writer.finish().unwrap();
            }
        }
    }
}

/// Rows with these numbers, a text of each number, and a word of a dictionary.
fn rows(numbers: &[u32]) -> RecordBatch {
    let words = numbers.iter().map(|&number| WORDS[number as usize % WORDS.len()]);
    // Each file has the same dictionary, also a file without rows.
    let words = WORDS.into_iter().chain(words).collect::<DictionaryArray<Int32Type>>();
    let columns: [(_, ArrayRef); 3] = [
        ("number", Arc::new(UInt32Array::from(numbers.to_vec()))),
        ("text", Arc::new(StringArray::from_iter_values(numbers.iter().map(u32::to_string)))),
        ("word", Arc::new(words.slice(WORDS.len(), numbers.len()))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .unwrap()
}

/// The numbers of rows, whose texts and words are checked.
fn numbers_of(rows: Option<&RecordBatch>) -> Vec<u32> {
    let Some(found) = rows else { return Vec::new() };
    let numbers = found.column(0).as_primitive::<arrow_array::types::UInt32Type>().values();
    let texts = found.column(1).as_string::<i32>();
    let words = found.column(2).as_dictionary::<Int32Type>();
    let words = words.downcast_dict::<StringArray>().unwrap();
    for (&number, (text, word)) in numbers.iter().zip(texts.iter().zip(words)) {
        assert_eq!(text, Some(&*number.to_string()));
        assert_eq!(word, Some(WORDS[number as usize % WORDS.len()]));
    }
    numbers.to_vec()
}

/// What the readers of the tables of a folder know.
fn tables_of(
    folder: &Folder,
    kind: Kind,
    (on_error, batch): (OnError, usize),
    memory: &MemoryBudget,
) -> Tables {
    let (open_as, opening) = (kind.open_as(), Opening { batch, memory: memory.clone() });
    let first = open_as(File::open(&folder.paths[0]).unwrap(), &opening).unwrap();
    let schema = Arc::new(columns_of(&*first));
    let (read, named) = (Arc::clone(&schema), schema);
    let columns = Columns { read, named, are_chosen: false, conditions: Vec::new() };
    Tables { open_as, opening, columns, goes_on: on_error.goes_on() }
}

/// Copies that read these tables in pieces of this number of bytes.
fn copies_of(
    folder: &Folder,
    tables: Tables,
    (on_error, piece): (OnError, u64),
) -> impl FnMut() -> PieceSource<TableReader> {
    let batch = tables.opening.batch;
    let reading = Reading::whole(on_error, Decoding::usual(Invalid::of(on_error)), batch);
    let reading = reading.tables(tables.clone()).piece_bytes(piece);
    reading.copies_of_tables(folder.files(), BindContext::new(0), tables)
}

/// What copies read of the tables of a folder.
fn read(
    folder: &Folder,
    kind: Kind,
    (on_error, sizes): (OnError, Sizes),
    memory: &MemoryBudget,
) -> Result<Outcome, String> {
    let tables = tables_of(folder, kind, (on_error, sizes.batch), memory);
    drain(copies_of(folder, tables, (on_error, sizes.piece)), sizes)
}

/// A folder with tables of these numbers of rows, in blocks.
fn folder_of(kind: Kind, counts: &[(usize, usize)]) -> (Folder, Vec<u32>) {
    let folder = Folder::new(&vec![Vec::new(); counts.len()]);
    let mut all = Vec::new();
    for (path, &(count, block)) in folder.paths.iter().zip(counts) {
        let begin = u32::try_from(all.len()).unwrap();
        let numbers: Vec<_> = (begin..begin + u32::try_from(count).unwrap()).collect();
        kind.write(path, &rows(&numbers), block);
        all.extend(numbers);
    }
    (folder, all)
}

fn memory() -> MemoryBudget {
    MemoryBudget::new(1 << 30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn rows_are_those_that_were_written(
        kind in kinds(),
        counts in prop::collection::vec((0_usize..60, 1_usize..20), 1..4),
        piece in prop_oneof![Just(1_u64), 1_u64..4_000],
        on_error in prop_oneof![Just(OnError::Fail), Just(OnError::Skip)],
        sizes in sizes(),
    ) {
        let sizes = Sizes { piece, ..sizes };
        let (folder, expected) = folder_of(kind, &counts);
        let memory = memory();
        let found = read(&folder, kind, (on_error, sizes), &memory).unwrap();
        prop_assert_eq!(numbers_of(found.rows.as_ref()), expected);
        prop_assert_eq!(found.counters["files"], counts.len() as u64);
        prop_assert_eq!(memory.reserved(), 0);
        let alone = read(&folder, kind, (on_error, sizes.alone()), &memory).unwrap();
        prop_assert_eq!(found.bytes, alone.bytes);
    }

    /// A file is damaged at a place, or is cut off there.
    #[test]
    fn faults_are_those_of_one_reader(
        kind in kinds(),
        block in 1_usize..20,
        place in any::<prop::sample::Index>(),
        change in prop_oneof![Just(None), (1_u8..=255).prop_map(Some)],
        on_error in prop_oneof![Just(OnError::Fail), Just(OnError::Skip)],
        sizes in sizes(),
    ) {
        let sizes = Sizes { piece: 1, ..sizes };
        let (folder, _) = folder_of(kind, &[(10, 5), (60, block), (30, 4)]);
        let mut bytes = fs::read(&folder.paths[1]).unwrap();
        let place = place.index(bytes.len());
        match change {
            Some(change) => bytes[place] ^= change,
            None => bytes.truncate(place),
        }
        fs::write(&folder.paths[1], bytes).unwrap();
        let memory = memory();
        let outcome = |sizes| {
            let outcome = read(&folder, kind, (on_error, sizes), &memory);
            // Readers of later blocks may have read them before the fault was found, and may have
            // taken memory for them.
            let without_taken = |error: String| match error.split_once(" bytes more do not fit") {
                Some((fault, _)) => fault.to_owned(),
                None => error,
            };
            let outcome = outcome.map_err(without_taken);
            outcome.map(|outcome| Outcome { bytes: 0, ..outcome })
        };
        prop_assert_eq!(outcome(sizes), outcome(sizes.alone()));
        prop_assert_eq!(memory.reserved(), 0);
    }
}

/// A copy reserves memory for a block after the copies of all earlier blocks, and waits for the
/// memory that they give back. So the rows need no more memory than with one copy.
#[test]
fn blocks_wait_for_memory() {
    for kind in [Kind::Parquet(Compression::UNCOMPRESSED), Kind::Arrow(None)] {
        let (folder, expected) = folder_of(kind, &[(20_000, 2_000), (20_000, 2_000)]);
        let sizes = Sizes { copies: 1, piece: 1, batch: 500, block: 1, line_bytes_max: 1, seed: 5 };
        let enough = |copies, bytes| {
            let memory = MemoryBudget::new(bytes);
            let found = read(&folder, kind, (OnError::Fail, Sizes { copies, ..sizes }), &memory);
            assert_eq!(memory.reserved(), 0);
            found.map(|found| numbers_of(found.rows.as_ref()))
        };
        let least = (1..100).map(|step| step << 15).find(|&bytes| enough(1, bytes).is_ok());
        for copies in [2, 3, 5, 8] {
            let found = enough(copies, least.unwrap()).unwrap();
            assert!(found == expected, "{kind:?}, {copies} copies");
        }
        let error = enough(3, 1 << 14).map(|_| ()).unwrap_err();
        assert!(error.contains("no memory for its next part"), "{error}");
    }
}

/// A stopped copy sends the rows that it has decoded, and takes no further block.
#[test]
fn a_stop_sends_decoded_rows() {
    let kind = Kind::Parquet(Compression::UNCOMPRESSED);
    let (folder, _) = folder_of(kind, &[(1_000, 100)]);
    for on_error in [OnError::Fail, OnError::Skip] {
        let tables = tables_of(&folder, kind, (on_error, 30), &memory());
        let mut copy = copies_of(&folder, tables, (on_error, 1));
        let mut copies = [copy(), copy(), copy()];
        let mut sent = 0;
        let rows = |out: &mut Output| -> usize {
            out.drain_sent().map(|(_, rows)| rows.into_records().num_rows()).sum()
        };
        for index in 0..6 {
            let mut out = Output::new();
            copies[index % 3].next(&mut out).unwrap();
            sent += rows(&mut out);
        }
        for _ in 0..10 {
            for copy in &mut copies {
                let mut out = Output::new();
                copy.stop(&mut out).unwrap();
                sent += rows(&mut out);
            }
        }
        let mut out = Output::new();
        for copy in &mut copies {
            assert_eq!(copy.stop(&mut out).unwrap(), SourceFlow::Finished);
        }
        assert!((60..=180).contains(&sent), "{sent}");
    }
}

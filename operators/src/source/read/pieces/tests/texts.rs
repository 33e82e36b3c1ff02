//! Lines, sets, objects and logs.

use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::*;
use crate::source::read::json::jsonl::JsonRows;
use crate::source::read::log::{LogRows, Pattern};
use crate::source::read::text::plain::TextLines;
use crate::source::read::text::records::{Beginning, Joined};
use crate::source::read::text::sets::SetLines;
use crate::source::read::text::texts::{Texts as SeveralLines, Unit};

/// The lines of a file by definition, with numbers from 1.
fn split(file: &[u8]) -> Vec<(u64, &[u8])> {
    let file = file.strip_prefix("\u{feff}".as_bytes()).unwrap_or(file);
    let mut lines: Vec<_> = file.split(|&byte| byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let content = |line: &'_ [u8]| line.len() - usize::from(line.ends_with(b"\r"));
    (1..).zip(lines.into_iter().map(|line| &line[..content(line)])).collect()
}

fn columns(fields: &[(&str, DataType)]) -> SchemaRef {
    let field = |(name, kind): &(&str, DataType)| Field::new(*name, kind.clone(), true);
    Arc::new(Schema::new(fields.iter().map(field).collect::<Vec<_>>()))
}

/// Texts of lines with the names of their files and their numbers, and the message of the first
/// line that cannot be used.
type Texts = (Vec<(String, String, u64)>, Option<String>);

fn texts(contents: &[Vec<u8>], invalid: Invalid, limit: usize) -> Texts {
    let (mut rows, mut first) = (Vec::new(), None);
    for (index, file) in contents.iter().enumerate() {
        let path = format!("{index:03}.txt");
        for (number, line) in split(file) {
            let is_replaced = invalid == Invalid::Replace;
            match str::from_utf8(line) {
                _ if line.len() > limit => {
                    let said = "the line is longer than";
                    first.get_or_insert(format!(
                        "{path}:{number}: {said} {limit} bytes (`line_bytes_max`)"
                    ));
                }
                Err(error) if !is_replaced => {
                    let place = error.valid_up_to();
                    first.get_or_insert(format!(
                        "{path}:{number}: byte {place} of the line is not valid UTF-8"
                    ));
                }
                _ => {
                    rows.push((path.clone(), String::from_utf8_lossy(line).into_owned(), number));
                }
            }
        }
    }
    (rows, first)
}

fn found_texts(folder: &Folder, rows: Option<&RecordBatch>) -> Vec<(String, String, u64)> {
    let Some(rows) = rows else { return Vec::new() };
    let lines = rows.column(0).as_string::<i32>().iter().flatten();
    let paths = rows.column(1).as_string::<i32>().iter().flatten();
    let numbers = rows.column(2).as_primitive::<UInt64Type>().values();
    let rows = paths.zip(lines).zip(numbers);
    rows.map(|((path, line), &number)| (folder.short(path), line.into(), number)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The oracle cuts the files itself.
    #[test]
    fn lines_and_their_places_are_those_of_the_files(
        contents in files("[a-c ]{0,12}"),
        sizes in sizes(),
        is_fail in any::<bool>(),
        invalid in invalid(),
    ) {
        // Replaced bytes are no fault, and a line that is too long is one.
        let on_error = if is_fail { OnError::Fail } else { OnError::Skip };
        let invalid = match (on_error, invalid) {
            (_, Invalid::Replace) => Invalid::Replace,
            (on_error, _) => Invalid::of(on_error),
        };
        let reading =
            reading(on_error, invalid, sizes).lines(sizes.line_bytes_max, true).numbered();
        let names = ["path", "line_number"].map(str::to_owned);
        let folder = Folder::new(&contents);
        // Whether a file of carriage returns alone ends its lines with them is tested elsewhere.
        let (expected, first) = texts(&contents, invalid, sizes.line_bytes_max);
        prop_assume!(contents.iter().all(|file| file.contains(&b'\n') || !file.contains(&b'\r')));
        prop_assume!(sizes.line_bytes_max > 20);
        let found = lines_of(folder.files(), reading, TextLines::with_columns(&names), sizes);
        match first.filter(|_| is_fail) {
            Some(error) => prop_assert_eq!(folder.short(&found.unwrap_err()), error),
            None => {
                let found = found.unwrap();
                prop_assert_eq!(found_texts(&folder, found.rows.as_ref()), expected);
                prop_assert_eq!(found.counters["files"], contents.len() as u64);
            }
        }
    }

    #[test]
    fn lines_are_those_of_one_reader(
        contents in files("[a-c ]{0,12}"),
        sizes in sizes(),
        on_error in actions(),
        invalid in invalid(),
        is_numbered in any::<bool>(),
    ) {
        let new = || {
            let reading = reading(on_error, invalid, sizes).lines(sizes.line_bytes_max, true);
            if is_numbered { reading.numbered() } else { reading }
        };
        let names = ["path", "line_number"].map(str::to_owned);
        let names = if is_numbered { &names[..] } else { &names[..1] };
        check(&contents, new, || TextLines::with_columns(names), sizes)?.ok();
    }

    /// The oracle parses the sets itself.
    #[test]
    fn sets_and_their_ids_are_those_of_the_files(
        contents in files("([0-9]{1,3} ?){0,5}|1 x"),
        sizes in sizes(),
        on_error in actions(),
    ) {
        let new = || {
            let reading = reading(on_error, Invalid::of(on_error), sizes);
            reading.lines(sizes.line_bytes_max, true).with_line_ids()
        };
        let found = check(&contents, new, SetLines::new, sizes)?;
        // A file of carriage returns alone ends its lines with them, which is tested elsewhere.
        let has_returns = |file: &Vec<u8>| !file.contains(&b'\n') && file.contains(&b'\r');
        let is_checked = on_error != OnError::Fail && sizes.line_bytes_max > 100;
        if !is_checked || contents.iter().any(has_returns) {
            return Ok(());
        }
        let lines = contents.iter().flat_map(|file| split(file)).zip(0_u32..);
        let expected: Vec<(u32, Vec<u32>)> = lines
            .filter_map(|((_, line), id)| {
                let text = str::from_utf8(line).ok()?;
                let set: Result<std::collections::BTreeSet<u32>, _> =
                    text.split_whitespace().map(str::parse).collect();
                Some((id, set.ok()?.into_iter().collect()))
            })
            .collect();
        let rows = found.unwrap().rows;
        let found: Vec<(u32, Vec<u32>)> = rows.iter().flat_map(|rows| {
            let ids = rows.column(0).as_primitive::<UInt32Type>().values();
            let sets = rows.column(1).as_list::<i32>();
            let set = |set: Arc<dyn Array>| set.as_primitive::<UInt32Type>().values().to_vec();
            ids.iter().copied().zip(sets.iter().flatten().map(set)).collect::<Vec<_>>()
        }).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn objects_are_those_of_one_reader(
        contents in files(r#"\{"a":(1|-2|"x"|null),"b":\{"c":\["y"\]\}\}|\{\}|\{"a"|\[1\]"#),
        sizes in sizes(),
        on_error in actions(),
        invalid in invalid(),
    ) {
        let schema = columns(&[("a", DataType::Int64)]);
        let new = || reading(on_error, invalid, sizes).lines(sizes.line_bytes_max, true);
        check(&contents, new, || JsonRows::new(Arc::clone(&schema)).unwrap(), sizes)?.ok();
    }

    #[test]
    fn logs_are_those_of_one_reader(
        contents in files("[a-c]{1,3} [0-9]{1,3} .{0,4}|[a-c]{2}"),
        sizes in sizes(),
        on_error in actions(),
        invalid in invalid(),
    ) {
        let Pattern::Fixed(scanner) = Pattern::new("{who} {n:u32} {rest}").unwrap() else {
            panic!("a template has columns of its own")
        };
        let scanner = Arc::new(scanner);
        let new = || reading(on_error, invalid, sizes).lines(sizes.line_bytes_max, true);
        let schema = Arc::new(Schema::new(scanner.fields()));
        let rows = || LogRows::new(Arc::clone(&scanner), Arc::clone(&schema)).unwrap();
        check(&contents, new, rows, sizes)?.ok();
    }

    /// Each object has its number, so the oracle is a count.
    #[test]
    fn numbered_objects_come_in_their_order(
        counts in prop::collection::vec(0_usize..60, 1..5),
        sizes in sizes(),
    ) {
        let mut next = 0..;
        let contents: Vec<Vec<u8>> = counts
            .iter()
            .map(|&count| {
                let numbers = next.by_ref().take(count);
                numbers.flat_map(|n: i64| format!("{{\"a\":{n}}}\n").into_bytes()).collect()
            })
            .collect();
        let sizes = Sizes { line_bytes_max: 1 << 12, ..sizes };
        let schema = columns(&[("a", DataType::Int64)]);
        let new = || reading(OnError::Fail, Invalid::Fail, sizes).lines(1 << 12, true);
        let found = check(&contents, new, || JsonRows::new(Arc::clone(&schema)).unwrap(), sizes)?;
        let rows = found.unwrap().rows;
        let found = rows.iter().flat_map(|rows| rows.column(0).as_primitive::<Int64Type>().values().to_vec());
        let total = i64::try_from(counts.iter().sum::<usize>()).unwrap();
        prop_assert!(found.eq(0..total));
    }
}

/// A file that cannot be cut is read as one piece.
#[test]
fn files_that_cannot_be_cut_are_read() {
    let sizes =
        Sizes { copies: 3, piece: 4, batch: 3, block: 16, line_bytes_max: 1 << 12, seed: 1 };
    let utf16: Vec<u8> = "\u{feff}äb\ncd\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let zstd = zstd::encode_all(&b"ij\nkl\nmn\n"[..], 1).unwrap();
    let contents = [utf16, b"ef\rgh\r".to_vec(), zstd, b"op\nqr".to_vec()];
    let new = || {
        reading(OnError::Fail, Invalid::Fail, sizes).lines(sizes.line_bytes_max, true).numbered()
    };
    let names = ["path", "line_number"].map(str::to_owned);
    let outcome = check(&contents, new, || TextLines::with_columns(&names), sizes);
    let rows = outcome.unwrap().unwrap().rows.unwrap();
    let lines: Vec<_> = rows.column(0).as_string::<i32>().iter().flatten().collect();
    assert_eq!(lines, ["äb", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr"]);
    let numbers = rows.column(2).as_primitive::<UInt64Type>();
    assert_eq!(numbers.values()[..], [1, 2, 1, 2, 1, 2, 3, 1, 2]);
}

/// The first bad line in the order of the input ends the run, whichever copy meets it.
#[test]
fn the_first_error_of_the_input_is_reported() {
    let mut file: Vec<u8> = (0..2_000).flat_map(|line| format!("{line}\n").into_bytes()).collect();
    for bad in [3_000, 5_000, 8_000] {
        file[bad] = 0xff;
    }
    let line = 1 + file[..3_000].iter().filter(|&&byte| byte == b'\n').count();
    for seed in 0..20 {
        let sizes =
            Sizes { copies: 5, piece: 500, batch: 50, block: 64, line_bytes_max: 1 << 12, seed };
        let new = || reading(OnError::Fail, Invalid::Fail, sizes).lines(1 << 12, true);
        let found = check(&[file.clone()], new, TextLines::new, sizes).unwrap();
        let error = found.unwrap_err();
        assert!(error.starts_with(&format!("000.txt:{line}: ")), "{error}");
    }
}

/// A thousand small files share pieces.
#[test]
fn many_small_files_keep_their_order() {
    let contents: Vec<_> = (0..1_000).map(|file| format!("{file}\n").into_bytes()).collect();
    for copies in [2, 8] {
        let (batch, block, line_bytes_max) = (100, 64, 1 << 12);
        let sizes = Sizes { copies, piece: 1 << 20, batch, block, line_bytes_max, seed: 7 };
        let new = || reading(OnError::Fail, Invalid::Fail, sizes).lines(1 << 12, true);
        let rows = check(&contents, new, TextLines::new, sizes).unwrap().unwrap().rows.unwrap();
        let lines = rows.column(0).as_string::<i32>().iter().flatten();
        assert!(lines.eq((0..1_000).map(|file| file.to_string())));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Texts of several lines need whole files, which the copies share.
    #[test]
    fn texts_of_several_lines_are_those_of_one_reader(
        contents in files("[ab] ?[ab]?| "),
        sizes in sizes(),
        on_error in prop_oneof![Just(OnError::Fail), Just(OnError::Skip)],
    ) {
        let new = || reading(on_error, Invalid::of(on_error), sizes);
        for unit in [Unit::Paragraph, Unit::File] {
            check(&contents, new, || SeveralLines::new(unit, sizes.line_bytes_max), sizes)?.ok();
        }
        let joined = || {
            let beginning = Beginning::new("^a").unwrap();
            let lines = TextLines::with_columns(&["line_number".to_owned()]);
            Joined::new(lines, beginning, sizes.line_bytes_max)
        };
        check(&contents, new, joined, sizes)?.ok();
    }
}

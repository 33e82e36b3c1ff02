//! Records of CSV.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_schema::{DataType, Field, Schema};

use super::*;
use crate::source::read::csv::dialect::Dialect;
use crate::source::read::csv::labelled::{CsvColumns, LabelledRows};
use crate::source::read::csv::records::CsvLines;
use crate::source::read::csv::typed::TypedRows;

fn table(dialect: &Dialect, names: [&str; 2], sizes: Sizes) -> CsvLines<TypedRows> {
    let kinds = names.into_iter().zip([DataType::Int64, DataType::Utf8]);
    let fields = kinds.map(|(name, kind)| Field::new(name, kind, true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let rows = TypedRows::new(schema, vec!["NA".into()]).unwrap();
    CsvLines::new(rows, dialect.clone(), sizes.line_bytes_max)
}

/// Records with ids, of which the column `x` is read.
fn labelled(dialect: &Dialect, x: &str, sizes: Sizes) -> CsvLines<LabelledRows> {
    let columns = CsvColumns { texts: vec![x.to_owned()], vector: Vec::new(), dims: 0 };
    CsvLines::new(LabelledRows::new(columns), dialect.clone(), sizes.line_bytes_max)
}

/// A text as a field, with the line ends of the file.
fn field(text: &str, is_quoted: bool) -> String {
    let needs_quotes = text.contains(['"', '\n', '\r', ',']) || text.is_empty();
    if is_quoted || needs_quotes {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// The oracle is the list of values that the files are made of.
    #[test]
    fn records_are_those_that_were_written(
        texts in prop::collection::vec(
            prop::collection::vec(("[a\",\r\n]{0,9}", any::<bool>()), 0..25),
            1..4,
        ),
        end in prop_oneof![Just("\n"), Just("\r\n")],
        sizes in sizes(),
        is_rejecting in any::<bool>(),
    ) {
        let sizes = Sizes { line_bytes_max: 1 << 12, ..sizes };
        let (mut next, mut expected, mut contents) = (0_i64, Vec::new(), Vec::new());
        for file in texts {
            let mut content = format!("x,y{end}");
            for (text, is_quoted) in file {
                content += &format!("{next},{}{end}", field(&text, is_quoted));
                expected.push((next, text));
                next += 1;
            }
            contents.push(content.into_bytes());
        }
        let dialect = Dialect::default();
        let on_error = if is_rejecting { OnError::Reject } else { OnError::Fail };
        let new = || {
            let reading = reading(on_error, Invalid::of(on_error), sizes);
            reading.lines(sizes.line_bytes_max, true).records(dialect.clone())
        };
        let found = check(&contents, new, || table(&dialect, ["x", "y"], sizes), sizes)?;
        let rows = found.unwrap().rows;
        let found: Vec<(i64, String)> = rows.iter().flat_map(|rows| {
            let numbers = rows.column(0).as_primitive::<Int64Type>().values().to_vec();
            let texts = rows.column(1).as_string::<i32>();
            numbers.into_iter().zip(texts.iter().map(|text| text.unwrap().to_owned()))
        }).collect();
        prop_assert_eq!(found, expected.clone());

        // The number of a record is its id.
        let new = || {
            let reading = reading(on_error, Invalid::of(on_error), sizes);
            reading.lines(sizes.line_bytes_max, true).records_with_ids(dialect.clone())
        };
        let found = check(&contents, new, || labelled(&dialect, "y", sizes), sizes)?;
        let rows = found.unwrap().rows;
        let found = rows.iter().flat_map(|rows| {
            let ids = rows.column(0).as_primitive::<UInt32Type>().values().to_vec();
            let texts = rows.column(1).as_string::<i32>();
            ids.into_iter().zip(texts.iter().map(|text| text.unwrap().to_owned()))
        });
        let expected = expected.into_iter().map(|(id, text)| (u32::try_from(id).unwrap(), text));
        prop_assert!(found.eq(expected));
    }

    #[test]
    fn ids_are_those_of_one_reader(
        contents in files(r##"x,y|[12],[ab]{0,3}|"?[12]"?,"[a\n",]{0,9}"?|#"?[ab]{1,40}|[a",]{0,12}"##),
        has_header in any::<bool>(),
        begins_well in any::<bool>(),
        sizes in sizes(),
        on_error in actions(),
        invalid in invalid(),
    ) {
        let dialect = Dialect { comment: Some(b'#'), has_header, ..Dialect::default() };
        let x = if has_header { "x" } else { "c1" };
        let head: &[u8] = if begins_well { b"x,y\n" } else { b"" };
        let contents: Vec<_> = contents.into_iter().map(|file| [head, &file].concat()).collect();
        let new = || {
            let reading = reading(on_error, invalid, sizes);
            reading.lines(sizes.line_bytes_max, true).records_with_ids(dialect.clone())
        };
        check(&contents, new, || labelled(&dialect, x, sizes), sizes)?.ok();
    }

    #[test]
    fn records_are_those_of_one_reader(
        contents in files(r#"x,y|[12],[ab]{0,3}|"?[12]"?,"[a\n",]{0,9}"?|#"?[ab]|[a",]{0,12}"#),
        has_header in any::<bool>(),
        begins_well in any::<bool>(),
        sizes in sizes(),
        on_error in actions(),
        invalid in invalid(),
    ) {
        let dialect = Dialect { comment: Some(b'#'), has_header, ..Dialect::default() };
        let names = if has_header { ["x", "y"] } else { ["c1", "c2"] };
        let head: &[u8] = if begins_well { b"x,y\n" } else { b"" };
        let contents: Vec<_> = contents.into_iter().map(|file| [head, &file].concat()).collect();
        let new = || {
            let reading = reading(on_error, invalid, sizes);
            reading.lines(sizes.line_bytes_max, true).records(dialect.clone())
        };
        check(&contents, new, || table(&dialect, names, sizes), sizes)?.ok();
    }
}

/// A record of many lines lies in several ranges, and each of them knows that the quote is open.
#[test]
fn a_record_may_be_longer_than_a_range() {
    let text = "a,b\n\"\"\n\n".repeat(40);
    let content = format!("x,y\n1,\"{text}\"\n2,b\n3,\"{text}\"\n4,\"\"\n");
    let dialect = Dialect::default();
    for (copies, piece) in [(2, 1), (3, 7), (5, 64), (8, 1_000)] {
        let sizes =
            Sizes { copies, piece, batch: 10, block: 32, line_bytes_max: 1 << 12, seed: piece };
        let new = || {
            let reading = reading(OnError::Fail, Invalid::Fail, sizes);
            reading.lines(sizes.line_bytes_max, true).records(dialect.clone())
        };
        let file = content.clone().into_bytes();
        let rows = check(&[file], new, || table(&dialect, ["x", "y"], sizes), sizes);
        let rows = rows.unwrap().unwrap().rows.unwrap();
        let texts: Vec<_> = rows.column(1).as_string::<i32>().iter().map(Option::unwrap).collect();
        let text = text.replace("\"\"", "\"");
        assert_eq!(texts, [&text, "b", &text, ""]);
        assert_eq!(rows.column(0).as_primitive::<Int64Type>().values()[..], [1, 2, 3, 4]);
    }
}

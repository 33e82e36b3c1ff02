//! Texts in other encodings, with wrong bytes, and with other line ends.

use trommel_engine::memory::MemoryBudget;
use trommel_engine::operator::{BindContext, OperatorSpec as _};

use super::*;

fn file(content: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), content).unwrap();
    file
}

/// The lines that a specification reads, and its counters.
fn read(spec: Read) -> Result<(Vec<String>, Counters), OperatorError> {
    let mut source = bind_source(spec);
    let batches = drain_source(&mut *source)?;
    Ok((lines_of(&batches), source.counters()))
}

fn lines(file: &tempfile::NamedTempFile) -> Read {
    Read::new([file.path()], ReadFormat::Lines)
}

fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(to_bytes).collect()
}

/// The lines of a file with these line ends, read in all sizes.
#[track_caller]
fn check_lines(content: &[u8], expected: &[&str]) {
    for step in [1, 2, 3, 7, 1 << 12] {
        let sizes = Sizes { step, block: 4, ..ROOMY };
        let (found, _) = read_lines(&[content], sizes, OnError::Fail).unwrap();
        assert_eq!(found, expected, "{:?}", String::from_utf8_lossy(content));
    }
}

#[test]
fn lines_may_end_with_carriage_returns_alone() {
    check_lines(b"a\rb\r\rc", &["a", "b", "", "c"]);
    check_lines(b"a\rb\r", &["a", "b"]);
    // A newline in the first line decides how lines end.
    check_lines(b"10%\r20%\rdone\nb\rc\n", &["10%\r20%\rdone", "b\rc"]);
    check_lines(b"a\r\nb\r\n", &["a", "b"]);
    check_lines(b"a\r", &["a"]);
}

#[test]
fn a_long_file_of_carriage_returns_is_read_line_by_line() {
    let line = "x".repeat(99);
    let mut content = format!("{line}\r").repeat(20_000);
    // The file has both kinds of line ends after its first line.
    content.push_str("y\r\nz\n");
    let (found, counters) = read(lines(&file(content.as_bytes()))).unwrap();
    assert_eq!((found.len(), counter(&counters, "skipped")), (20_002, 0));
    assert_eq!(found[20_000..], ["y", "z"]);
    // The same file is read through small blocks and short lines.
    let sizes = Sizes { block: 64, line_bytes_max: 100, ..ROOMY };
    let (found, _) = read_lines(&[content.as_bytes()], sizes, OnError::Fail).unwrap();
    assert_eq!(found.len(), 20_002);
}

#[test]
fn utf16_is_read_by_its_mark_or_its_name() {
    let text = "one ñ\r\ntwo 😀\nਊ ਊ\n";
    let expected = ["one ñ", "two 😀", "ਊ ਊ"];
    for (to_bytes, name) in
        [(u16::to_le_bytes as fn(u16) -> [u8; 2], "utf-16le"), (u16::to_be_bytes, "UTF-16BE")]
    {
        let marked = file(&utf16(&format!("\u{feff}{text}"), to_bytes));
        assert_eq!(read(lines(&marked)).unwrap().0, expected);
        let unmarked = file(&utf16(text, to_bytes));
        assert_eq!(read(lines(&unmarked).encoding(name)).unwrap().0, expected);
    }
    // The file has many lines in several blocks.
    let long = "abcdefg\n".repeat(50_000);
    let marked = file(&utf16(&format!("\u{feff}{long}"), u16::to_be_bytes));
    let (found, _) = read(lines(&marked)).unwrap();
    assert!(found.len() == 50_000 && found.iter().all(|line| line == "abcdefg"));
}

#[test]
fn wide_encodings_without_a_mark_are_named() {
    let utf32 = |text: &str| text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    let contents: [(Vec<u8>, &str); 5] = [
        (utf16("plain text\n", u16::to_le_bytes), "UTF-16LE without a byte order mark"),
        (utf16("plain text\n", u16::to_be_bytes), "UTF-16BE without a byte order mark"),
        (utf32("plain text\n"), "is UTF-32LE, which is not supported"),
        (utf32("\u{feff}plain text\n"), "is UTF-32, which is not supported"),
        (b"\0\0\xfe\xff\0\0\0a".to_vec(), "is UTF-32, which is not supported"),
    ];
    for (content, said) in contents {
        let wide = file(&content);
        let error = read(lines(&wide)).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
        let (found, counters) = read(lines(&wide).on_error(OnError::Skip)).unwrap();
        assert_eq!((found.len(), counter(&counters, "files_skipped")), (0, 1));
    }
}

#[test]
fn wrong_bytes_fail_are_left_out_or_replaced() {
    let latin = file(b"caf\xe9 x\nok x\n\xff\n");
    let error = read(lines(&latin)).unwrap_err().to_string();
    assert!(error.ends_with(":1: byte 3 of the line is not valid UTF-8"), "{error}");
    let (found, counters) = read(lines(&latin).invalid(Invalid::Skip)).unwrap();
    assert_eq!((found, counter(&counters, "skipped")), (vec!["ok x".to_owned()], 2));
    let (found, counters) = read(lines(&latin).invalid(Invalid::Replace)).unwrap();
    assert_eq!(found, ["caf\u{fffd} x", "ok x", "\u{fffd}"]);
    assert_eq!((counter(&counters, "skipped"), counter(&counters, "replaced")), (0, 2));
    let (found, counters) = read(lines(&latin).encoding("latin-1")).unwrap();
    assert_eq!(found, ["café x", "ok x", "ÿ"]);
    assert_eq!(counter(&counters, "replaced"), 0);
    // These bytes of windows-1252 are valid UTF-8, too.
    let chance = file(b"\xc3\xa9\n");
    assert_eq!(read(lines(&chance).encoding("windows-1252")).unwrap().0, ["Ã©"]);
    let japanese = file(b"\x93\xfa\x96{\n\x80\n");
    let error = read(lines(&japanese).encoding("shift_jis").invalid(Invalid::Fail));
    assert!(error.is_ok(), "byte 80 is a control character in that encoding");
    assert_eq!(read(lines(&japanese).encoding("shift_jis")).unwrap().0[0], "日本");
}

#[test]
fn wrong_utf16_fails_is_left_out_or_replaced() {
    let broken = file(b"\xff\xfea\0\n\0\0\xd8b\0\n\0");
    let error = read(lines(&broken)).unwrap_err().to_string();
    assert!(error.ends_with("has bytes that are no text in UTF-16LE"), "{error}");
    let (found, _) = read(lines(&broken).invalid(Invalid::Replace)).unwrap();
    assert_eq!(found, ["a", "\u{fffd}b"]);
    let (_, counters) = read(lines(&broken).on_error(OnError::Skip)).unwrap();
    assert_eq!(counter(&counters, "files_skipped"), 1);
}

#[test]
fn fields_of_csv_have_an_encoding_and_keep_their_line_ends() {
    let rows = |content: &[u8], change: fn(Read) -> Read| {
        let file = file(content);
        let spec = Read::new([file.path()], ReadFormat::Csv).columns(["a", "b"]);
        let batches = drain_source(&mut *bind_source(change(spec))).unwrap();
        [texts_of(&batches, "a"), texts_of(&batches, "b")].concat()
    };
    let same = |spec: Read| spec;
    assert_eq!(rows(b"a,b\r\n\"x\r\ny\",1\r\nz,2\r\n", same), ["x\r\ny", "z", "1", "2"]);
    assert_eq!(rows(b"a,b\n\"x\ny\r\n\r\n\",1\n", same), ["x\ny\r\n\r\n", "1"]);
    assert_eq!(rows(b"a,b\r1,2\r\"3\r\",4\r", same), ["1", "3\r", "2", "4"]);
    let latin = b"a,b\ncaf\xe9,1\n";
    assert_eq!(rows(latin, |spec| spec.encoding("cp1252")), ["café", "1"]);
    assert_eq!(rows(latin, |spec| spec.invalid(Invalid::Replace)), ["caf\u{fffd}", "1"]);
    let wide = utf16("\u{feff}a,b\r\né,1\r\n", u16::to_le_bytes);
    assert_eq!(rows(&wide, same), ["é", "1"]);
}

#[test]
fn lines_have_places_on_request() {
    let (a, b) = (file(b"1\n\xff\n3\n"), file(b"4\n"));
    let names = [a.path(), b.path()].map(text);
    let spec = Read::new([a.path(), b.path()], ReadFormat::Lines)
        .columns(["line_number", "path"])
        .on_error(OnError::Skip);
    let batches = drain_source(&mut *bind_source(spec)).unwrap();
    assert_eq!(texts_of(&batches, "path"), [0, 0, 1].map(|index: usize| names[index].clone()));
    let numbers = batches[0].column_by_name("line_number").unwrap();
    assert_eq!(numbers.as_primitive::<UInt64Type>().values()[..], [1, 3, 1]);
    let error = bind(lines(&a).columns(["number"]), &[]).unwrap_err();
    assert_eq!(error.parameter, Some("columns"));
}

#[test]
fn long_lines_and_texts_are_asked_for_before_they_are_made() {
    let long = file("x".repeat(8 << 20).as_bytes());
    // The tokens take twice the bytes of their line.
    let set = file("1 ".repeat(4 << 20).as_bytes());
    for (format, file, bytes) in [
        (ReadFormat::Lines, &long, 4 << 20),
        (ReadFormat::Files, &long, 40 << 20),
        (ReadFormat::Sets, &set, 40 << 20),
    ] {
        for (memory, is_enough) in [(bytes, false), (100 << 20, true)] {
            let spec = Read::new([file.path()], format).line_bytes_max(1 << 30);
            let context = BindContext::new(0).memory(MemoryBudget::new(memory));
            let bound = Box::new(spec).bind(&[], context).unwrap();
            let Body::Source(mut source) = bound.parts.into_iter().next().unwrap().body else {
                panic!("a source")
            };
            let outcome = drain_source(&mut *source);
            assert_eq!(outcome.is_ok(), is_enough, "{format:?} {memory}");
            if let Err(error) = outcome {
                assert!(error.to_string().contains(":1: no memory for a long line"), "{error}");
            }
        }
    }
}

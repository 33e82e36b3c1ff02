//! Files that are damaged, missing, or of an unexpected kind.

use super::*;

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Reads one stream of this name, about one byte per read, with pauses.
fn read_named(
    name: &'static str,
    bytes: &[u8],
    on_error: OnError,
) -> Result<(Vec<String>, Counters), OperatorError> {
    let reader: Box<dyn io::Read + Send> = Box::new(Trickle::new(bytes, 1));
    let inputs = Inputs::of_readers([(name, reader)], on_error);
    let lines = LineBuffer::new(Isa::selected().unwrap(), 64, 1 << 16);
    let mut source = LineSource::new(inputs, TextLines::new(), 100, lines);
    let lines = lines_of(&drain_source(&mut source)?);
    Ok((lines, source.counters()))
}

#[test]
fn decoders_keep_their_state_while_a_pipe_is_empty() {
    let plain: Vec<u8> = (0..500).flat_map(|i| format!("line {i}\n").into_bytes()).collect();
    let expected = lines_of_text(&plain);
    let (head, tail) = plain.split_at(1234);
    let mut named = flate2::GzBuilder::new()
        .filename("a name")
        .extra(vec![1, 2, 3])
        .comment("a comment")
        .write(Vec::new(), flate2::Compression::best());
    named.write_all(head).unwrap();
    let members = [named.finish().unwrap(), gzip(b""), gzip(tail)].concat();
    let frames = [zstd(head), zstd(b""), zstd(tail)].concat();
    // Recognised by name, and by the first bytes.
    for (name, bytes) in
        [("a.gz", &members), ("a", &members), ("a.zst", &frames), ("a", &frames), ("a", &plain)]
    {
        let (lines, _) = read_named(name, bytes, OnError::Fail).unwrap();
        assert_eq!(lines, expected, "{name}");
    }
}

#[test]
fn zeros_fill_up_a_gzip_file_and_anything_else_is_damage() {
    let good = gzip(b"a\nb\n");
    for zeros in [1, 7, 512, 200_000] {
        let padded = [good.clone(), vec![0; zeros]].concat();
        assert_eq!(read_named("a.gz", &padded, OnError::Fail).unwrap().0, ["a", "b"]);
    }
    for garbage in [&b"garbage"[..], b"\0\0x", b"\0\x1f\x8b", b"\x1f\x8b", b"\x1fx"] {
        let damaged = [&good, garbage].concat();
        let error = read_named("a.gz", &damaged, OnError::Fail).unwrap_err().to_string();
        assert!(error.starts_with("cannot read a.gz: "), "{error}");
        let (lines, counters) = read_named("a.gz", &damaged, OnError::Skip).unwrap();
        assert_eq!((lines.len(), counter(&counters, "files_skipped")), (2, 1), "{garbage:?}");
    }
}

#[test]
fn rows_before_the_damage_stay() {
    let folder = tempfile::tempdir().unwrap();
    let plain: Vec<u8> = (0..50_000).flat_map(|i| format!("line {i}\n").into_bytes()).collect();
    let expected = lines_of_text(&plain);
    for (name, archive) in [("cut.gz", gzip(&plain)), ("cut.zst", zstd(&plain))] {
        let cut = folder.path().join(name);
        fs::write(&cut, &archive[..archive.len() - 5]).unwrap();
        let error = drain_source(&mut *bind_source(Read::new([text(&cut)], ReadFormat::Lines)));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot read {}: ", cut.display())), "{error}");

        let good = folder.path().join("good");
        fs::write(&good, "the next file\n").unwrap();
        let paths = [text(&cut), text(&good)];
        let mut source = bind_source(Read::new(paths, ReadFormat::Lines).on_error(OnError::Skip));
        let lines = lines_of(&drain_source(&mut *source).unwrap());
        let (last, before) = lines.split_last().unwrap();
        assert_eq!(last, "the next file");
        assert!(!before.is_empty() && expected.starts_with(before), "{name}");
        let counters = source.counters();
        assert_eq!(counter(&counters, "files_skipped"), 1);
        assert_eq!((counter(&counters, "files"), counter(&counters, "skipped")), (2, 0));
    }
}

#[test]
fn a_text_and_an_item_that_break_off_are_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let plain: Vec<u8> = (0..50_000_u32).flat_map(u32::to_le_bytes).collect();
    let archive = zstd(&plain);
    let cut = folder.path().join("cut.zst");
    fs::write(&cut, &archive[..archive.len() - 5]).unwrap();
    let items = folder.path().join("items");
    fs::write(&items, 7_u32.to_le_bytes()).unwrap();
    let spec = Read::new([text(&cut), text(&items)], ReadFormat::U32le).on_error(OnError::Skip);
    let batches = drain_source(&mut *bind_source(spec)).unwrap();
    let read: Vec<u32> = batches
        .iter()
        .flat_map(|b| b.column(0).as_primitive::<UInt32Type>().values().to_vec())
        .collect();
    let (last, before) = read.split_last().unwrap();
    assert_eq!(*last, 7);
    assert!(before.iter().copied().eq(0..u32::try_from(before.len()).unwrap()));

    let text_cut = folder.path().join("text.gz");
    let archive = gzip(b"one\n\ntwo\nand more\n");
    fs::write(&text_cut, &archive[..archive.len() - 8]).unwrap();
    for (format, rows) in [(ReadFormat::Paragraphs, 1), (ReadFormat::Files, 0)] {
        let spec = Read::new([text(&text_cut)], format).on_error(OnError::Skip);
        let batches = drain_source(&mut *bind_source(spec)).unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
    }
}

#[test]
fn a_name_that_does_not_fit_the_content_is_told() {
    for (name, content, said) in [
        ("a.gz", &b"plain text\n"[..], "its name says gzip, but it holds no gzip data"),
        ("a.gz", b"x\n", "its name says gzip, but it holds no gzip data"),
        ("a.gz", &zstd(b"x\n")[..], "its name says gzip, but it holds zstd data"),
        ("a.zst", &gzip(b"x\n")[..], "its name says zstd, but it holds gzip data"),
        ("a.gz", b"", "unexpected end of file"),
        ("a", b"\xfd7zXZ\0rest", "xz is not supported; decompress it: `xz -dc FILE | trommel …`"),
        (
            "a.xz",
            b"\xfd7zXZ\0rest",
            "xz is not supported; decompress it: `xz -dc FILE | trommel …`",
        ),
        (
            "a",
            b"BZh61AY&SYrest",
            "bzip2 is not supported; decompress it: `bzip2 -dc FILE | trommel …`",
        ),
    ] {
        check_error(
            read_named(name, content, OnError::Fail),
            &format!("cannot read {name}: {said}"),
        );
        let (lines, counters) = read_named(name, content, OnError::Skip).unwrap();
        assert_eq!((lines.len(), counter(&counters, "files_skipped")), (0, 1));
    }
    assert_eq!(read_named("a", b"BZh is text", OnError::Fail).unwrap().0, ["BZh is text"]);
}

#[test]
fn windows_of_two_gigabytes_are_accepted() {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(30).unwrap();
    encoder.write_all(b"a\nb\n").unwrap();
    let long = encoder.finish().unwrap();
    assert_eq!(read_named("a.zst", &long, OnError::Fail).unwrap().0, ["a", "b"]);
}

#[test]
fn marks_are_no_part_of_the_first_line() {
    let files: [&[u8]; 2] = [b"\xef\xbb\xbf12345\nb\n", b"\xef\xbb\xbf"];
    for step in 1..9 {
        for block in 1..9 {
            let sizes = Sizes { step, block, line_bytes_max: 5, batch: 3 };
            let (lines, _) = read_lines(&files, sizes, OnError::Fail).unwrap();
            assert_eq!(lines, ["12345", "b"], "{sizes:?}");
            for mark in [&b"\xff\xfeh\0i\0\n\0"[..], b"\xfe\xff\0h\0i\0\n"] {
                let (lines, _) = read_lines(&[mark, b"good"], sizes, OnError::Fail).unwrap();
                assert_eq!(lines, ["hi", "good"], "{sizes:?}");
            }
        }
    }
    let (lines, counters) = read_lines(&[b"\xef\xbb"], ROOMY, OnError::Skip).unwrap();
    assert_eq!((lines.len(), skipped(&counters)), (0, 1));
}

#[test]
fn frames_before_the_first_of_data_belong_to_zstd() {
    let data = zstd::encode_all(&b"a\nb\n"[..], 1).unwrap();
    for first in [b'\x50', b'\x5f'] {
        let packed = [&[first, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4], &data[..]].concat();
        assert_eq!(read_named("a", &packed, OnError::Fail).unwrap().0, ["a", "b"]);
    }
}

#[test]
fn integers_that_look_compressed_are_integers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    fs::write(&path, b"\x1f\x8b\x08\x00\x28\xb5\x2f\xfd").unwrap();
    let batches = drain_source(&mut *bind_source(Read::new([text(&path)], ReadFormat::U32le)));
    assert_eq!(batches.unwrap()[0].num_rows(), 2);
}

#[test]
fn a_file_that_is_cut_while_it_is_read_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shrinking");
    for on_error in [OnError::Fail, OnError::Skip] {
        fs::write(&path, b"0123456\n".repeat(100_000)).unwrap();
        let mut source =
            bind_source(Read::new([text(&path)], ReadFormat::Lines).on_error(on_error));
        let mut out = Output::new();
        source.next(&mut out).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_len(1000).unwrap();
        let end = drain_source(&mut *source);
        if on_error == OnError::Skip {
            end.unwrap();
            assert_eq!(counter(&source.counters(), "files_skipped"), 1);
            continue;
        }
        let error = end.unwrap_err().to_string();
        let start = format!("{} was truncated while it was read: 800000 bytes", path.display());
        assert!(error.starts_with(&start), "{error}");
    }
}

#[test]
fn what_cannot_be_opened_is_left_out_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    fs::write(file("a.txt"), "a\n").unwrap();
    std::os::unix::fs::symlink("/nonexistent", file("b.txt")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(file("c.txt")).unwrap();
    fs::write(file("d.txt"), "d\n").unwrap();
    fs::write(file("e.txt"), "e\n").unwrap();
    let pattern = text(&file("*.txt"));
    let missing = text(&file("missing"));
    let spec = Read::new([pattern.clone(), missing.clone()], ReadFormat::Lines);
    let mut source = bind_source(spec.on_error(OnError::Skip));
    fs::remove_file(file("d.txt")).unwrap();
    assert_eq!(lines_of(&drain_source(&mut *source).unwrap()), ["a", "e"]);
    let counters = source.counters();
    assert_eq!((counter(&counters, "files"), counter(&counters, "files_skipped")), (2, 4));

    let refused = bind(Read::new([pattern], ReadFormat::Lines), &[]).unwrap_err().to_string();
    assert!(refused.starts_with(&format!("cannot open {}: ", file("b.txt").display())));
    let error =
        drain_source(&mut *bind_source(Read::new([text(&file("c.txt"))], ReadFormat::Lines)));
    assert!(error.unwrap_err().to_string().contains("it is a socket"));
}

#[test]
fn many_files_that_are_empty_or_left_out_take_several_calls() {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..500 {
        fs::write(folder.path().join(format!("{i:03}")), "").unwrap();
    }
    for format in [ReadFormat::U32le, ReadFormat::Lines] {
        let pattern = text(&folder.path().join("*"));
        let mut source = bind_source(Read::new([pattern], format).on_error(OnError::Skip));
        let mut calls = 1;
        while source.next(&mut Output::new()).unwrap() != SourceFlow::Finished {
            calls += 1;
        }
        assert!(calls > 4, "{calls}");
        assert_eq!(counter(&source.counters(), "files"), 500);
    }
}

//! Stops, pipes, and calls that must not wait.

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

/// Stops a source and takes all of its remaining output in a bounded number of calls.
fn stop(source: &mut dyn Source, batch: usize) -> Vec<RecordBatch> {
    let (mut out, mut batches) = (Output::new(), Vec::new());
    loop {
        let flow = source.stop(&mut out).unwrap();
        let sent: Vec<_> = out.drain_sent().map(|(_, sent)| sent.into_records()).collect();
        assert!(sent.iter().map(RecordBatch::num_rows).sum::<usize>() <= batch);
        batches.extend(sent);
        match flow {
            SourceFlow::HaveOutput => {}
            SourceFlow::Finished => return batches,
            other => panic!("a source that stops waits for nothing, but said {other:?}"),
        }
    }
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// Whether a source waits for its pipe, which has sent no bytes or some bytes.
fn is_wait(flow: SourceFlow) -> bool {
    matches!(flow, SourceFlow::AwaitReadable(_))
}

fn fifo(folder: &tempfile::TempDir, name: &str) -> String {
    let path = text(&folder.path().join(name));
    mknodat(CWD, path.as_str(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

/// `stop` sends the items that one call took from a pipe. Unread items stay in the pipe, and no
/// item is lost between the two.
#[test]
fn a_stop_sends_what_was_taken_and_takes_nothing() {
    // Format, bytes an item, an item that is not complete.
    for (format, width, rest) in [
        (ReadFormat::Lines, 7, "thr"),
        (ReadFormat::Sets, 7, "12 3"),
        (ReadFormat::U32le, 4, "12"),
        (ReadFormat::U64le, 8, "12345"),
    ] {
        let (reader, mut writer) = io::pipe().unwrap();
        let items: Vec<u8> = match width {
            7 => (0..8500).flat_map(|i| format!("{i:06}\n").into_bytes()).collect(),
            _ => (0..8500 * width).map(|i| u8::try_from(i % 251).unwrap()).collect(),
        };
        let sent = items.len() / width;
        writer
            .write_all(
                &[&items, rest.as_bytes()].concat()[..(items.len() + rest.len()).min(60_000)],
            )
            .unwrap();
        let whole = sent.min(60_000 / width);
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        let mut source = bind_source(Read::new([path], format).batch(100));
        let mut out = Output::new();
        source.next(&mut out).unwrap();
        let before: Vec<_> = out.drain_sent().map(|(_, sent)| sent.into_records()).collect();
        let left = usize::try_from(rustix::io::ioctl_fionread(&reader).unwrap()).unwrap();
        let after = stop(&mut *source, 100);
        let still = usize::try_from(rustix::io::ioctl_fionread(&reader).unwrap()).unwrap();
        assert_eq!(left, still, "{format:?}: a stop takes nothing");
        let unfinished = counter(&source.counters(), "unfinished_bytes");
        let taken = rows(&before) + rows(&after);
        let given = (items.len() + rest.len()).min(60_000);
        assert_eq!(taken * width + unfinished + left, given, "{format:?}");
        assert!(unfinished < width && taken <= whole);
    }
}

#[test]
fn compressed_bytes_that_were_read_are_decoded_by_a_stop() {
    let plain: Vec<u8> = (0..300_000).flat_map(|i| format!("{i:06}\n").into_bytes()).collect();
    let mut whole_frame = zstd::encode_all(&plain[..], 1).unwrap();
    whole_frame.extend_from_slice(&zstd::encode_all(&b"not to the end"[..], 1).unwrap());
    let archives =
        [("a.gz", [gzip(&plain), gzip(b"not to the end")].concat()), ("a.zst", whole_frame)];
    for (name, archive) in archives {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        // After a few reads the buffer of the decompressor holds all bytes.
        let archive = &archive[..archive.len().min(120_000)];
        fs::write(&path, archive).unwrap();
        let mut source = bind_source(Read::new([text(&path)], ReadFormat::Lines).batch(100));
        let mut out = Output::new();
        while rows(&[]) == 0 && source.progress().bytes < archive.len() as u64 {
            source.next(&mut out).unwrap();
        }
        let before = out.drain_sent().map(|(_, sent)| sent.items()).sum::<usize>();
        let after = lines_of(&stop(&mut *source, 100));
        let unfinished = counter(&source.counters(), "unfinished_bytes");
        let mut decoded = Vec::new();
        let reader: &mut dyn io::Read = match name {
            "a.gz" => &mut flate2::read::MultiGzDecoder::new(archive),
            _ => &mut zstd::stream::read::Decoder::new(archive).unwrap(),
        };
        // The archive is cut off here, which gives an error.
        let _ = reader.read_to_end(&mut decoded);
        assert!(before < 1000 && after.len() > 10_000, "{name}: {before} and {}", after.len());
        assert_eq!((before + after.len()) * 7 + unfinished, decoded.len(), "{name}");
    }
}

#[test]
fn a_text_that_is_open_at_a_stop_is_unfinished() {
    for (format, sent, unfinished) in [(ReadFormat::Paragraphs, 1, 7), (ReadFormat::Files, 0, 11)] {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"one\n\ntwo\nthr").unwrap();
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        let mut source = bind_source(Read::new([path], format));
        let mut out = Output::new();
        source.next(&mut out).unwrap();
        assert_eq!(source.next(&mut out).unwrap(), WAIT);
        let before = out.drain_sent().map(|(_, sent)| sent.items()).sum::<usize>();
        assert_eq!(before + rows(&stop(&mut *source, 100)), sent);
        let counted = counter(&source.counters(), "unfinished_bytes");
        assert!(counted >= unfinished - 1 && counted <= unfinished + 1, "{counted}");
    }
}

#[test]
fn a_fifo_is_waited_for_before_its_writer_has_come() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["plain", "packed.gz", "items"] {
        let path = fifo(&folder, name);
        let format = if name == "items" { ReadFormat::U32le } else { ReadFormat::Lines };
        let mut source = bind_source(Read::new([path.clone()], format));
        let mut out = Output::new();
        for _ in 0..3 {
            assert!(is_wait(source.next(&mut out).unwrap()), "{name}");
            assert!(source.descriptor().is_some());
        }
        let mut writer = fs::File::options().write(true).open(&path).unwrap();
        assert!(is_wait(source.next(&mut out).unwrap()), "{name}");
        match name {
            "packed.gz" => writer.write_all(&gzip(b"one\ntwo\n")).unwrap(),
            _ => writer.write_all(b"one\ntwo\n").unwrap(),
        }
        assert_eq!(source.next(&mut out).unwrap(), SourceFlow::HaveOutput, "{name}");
        assert!(is_wait(source.next(&mut out).unwrap()), "{name}");
        drop(writer);
        assert_eq!(drain_source(&mut *source).unwrap().len(), 0);
        assert_eq!(out.drain_sent().map(|(_, sent)| sent.items()).sum::<usize>(), 2, "{name}");
    }
}

#[test]
fn a_fifo_whose_writer_leaves_without_a_word_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = fifo(&folder, "silent");
    let mut source = bind_source(Read::new([path.clone()], ReadFormat::Lines));
    assert!(is_wait(source.next(&mut Output::new()).unwrap()));
    drop(fs::File::options().write(true).open(&path).unwrap());
    assert_eq!(drain_source(&mut *source).unwrap().len(), 0);
}

#[test]
fn a_stop_ends_a_fifo_without_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["plain", "packed.zst"] {
        let mut source = bind_source(Read::new([fifo(&folder, name)], ReadFormat::Lines));
        assert!(is_wait(source.next(&mut Output::new()).unwrap()));
        assert_eq!(rows(&stop(&mut *source, 100)), 0);
    }
}

#[test]
fn devices_need_no_waiting() {
    let mut source = bind_source(Read::new(["/dev/null"], ReadFormat::Lines));
    assert_eq!(source.next(&mut Output::new()).unwrap(), SourceFlow::Finished);
    let mut source = bind_source(Read::new(["/dev/zero"], ReadFormat::U32le));
    let mut out = Output::new();
    assert_eq!(source.next(&mut out).unwrap(), SourceFlow::HaveOutput);
    assert_eq!(out.drain_sent().map(|(_, sent)| sent.items()).sum::<usize>(), 16_384);
}

#[test]
fn an_item_of_a_slow_pipe_costs_no_batch() {
    let (reader, mut writer) = io::pipe().unwrap();
    let path = format!("/dev/fd/{}", reader.as_raw_fd());
    let mut source = bind_source(Read::new([path], ReadFormat::U64le).batch(1 << 20));
    let mut out = Output::new();
    for item in 0..10_u64 {
        writer.write_all(&item.to_le_bytes()).unwrap();
        source.next(&mut out).unwrap();
        let (_, sent) = out.drain_sent().next().unwrap();
        let column = sent.into_records();
        let column = column.column(0);
        assert_eq!(column.as_primitive::<UInt64Type>().values()[..], [item]);
        assert!(column.get_array_memory_size() < 1000, "{}", column.get_array_memory_size());
    }
}

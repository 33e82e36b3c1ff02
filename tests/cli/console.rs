//! Standard streams: closed, full, shared with other programs, or a terminal that must not be
//! controlled by names.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::support::{Ended, Files, reading, shell, trommel};

/// A folder with a file of three lines and a pipeline that writes them to `out`.
fn lines(out: &str) -> Files {
    let files = Files::new();
    files.write("in", "1\n2\n3\n");
    let pipeline = reading("in", "lines");
    let stage = "\"operator\": \"write\",";
    let with = format!("{stage} \"with\": {{ \"path\": \"{out}\" }},");
    files.write("pipeline", pipeline.replace(stage, &with));
    files
}

const ROWS: &str = "{\"line\":\"1\"}\n{\"line\":\"2\"}\n{\"line\":\"3\"}\n";

#[test]
fn a_path_of_a_descriptor_is_written_between_what_other_programs_write() {
    for (out, to) in [("/dev/stdout", "> all"), ("/dev/fd/3", "3> all"), ("-", ">> all")] {
        let files = lines(out);
        let descriptor = if out.ends_with('3') { ">&3" } else { "" };
        let echo = |word| format!("echo {word} {descriptor}");
        let line = format!("{{ {}; trommel run -q pipeline; {}; }} {to}", echo("a"), echo("b"));
        shell(&files, &line).ok();
        assert_eq!(files.read("all"), format!("a\n{ROWS}b\n"), "{out}");
    }
}

/// The numbers after those of the caller are those of the process itself: its sockets and events.
#[test]
fn a_descriptor_that_the_caller_has_not_opened_is_refused() {
    for number in 3..12 {
        let files = lines(&format!("/dev/fd/{number}"));
        let close = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; trommel";
        let said = shell(&files, &format!("{close} run -q pipeline")).refused(2);
        assert!(said.contains("not open") || said.contains("for reading only"), "{said}");
        let said = shell(&files, &format!("{close} top -q in --save /dev/fd/{number}")).refused(2);
        assert!(said.contains("not open") || said.contains("for reading only"), "{said}");
    }
}

#[test]
fn a_standard_stream_that_is_closed_is_an_error() {
    let files = lines("-");
    let closed = "cannot write standard output: it is closed";
    for line in
        ["run -q pipeline", "top in", "schema", "operators read", "devices", "check pipeline"]
    {
        let ended = shell(&files, &format!("trommel {line} >&-"));
        assert_eq!(ended.status, 1, "{line}");
        assert!(ended.stderr.contains(closed), "{line}: {}", ended.stderr);
    }
    let input = shell(&files, "trommel top <&-");
    assert_eq!(input.status, 1);
    assert!(input.stderr.contains("standard input is closed"), "{}", input.stderr);
    // Not closed, but empty or thrown away.
    shell(&files, "trommel run -q pipeline > /dev/null").ok();
    let empty = shell(&files, "trommel top < /dev/null");
    assert_eq!((empty.status, empty.stderr.as_str()), (0, "there is nothing to count\n"));
}

#[test]
fn a_standard_error_that_is_full_or_closed_fails_no_run() {
    let files = lines("-");
    for to in ["2> /dev/full", "2>&-"] {
        let ended = shell(&files, &format!("trommel top none in {to}"));
        assert_eq!((ended.status, ended.stdout.lines().count()), (1, 5), "{to}");
    }
}

#[test]
fn a_limit_of_the_size_of_files_is_an_error_that_leaves_nothing() {
    let files = lines("out");
    let line = |number: u32| format!("line {number}\n");
    files.write("in", (0..100_000).map(line).collect::<String>());
    let limited =
        |options: &str| shell(&files, &format!("ulimit -f 8; trommel run -q pipeline {options}"));
    let said = limited("").refused(1);
    assert!(said.contains("cannot write out: File too large"), "{said}");
    assert_eq!(fs::read_dir(files.path("")).unwrap().count(), 2, "the input and the pipeline");
    let said = limited("--set stages.out.with.append=true").refused(1);
    assert!(said.ends_with("the 0 rows written before are kept\n"), "{said}");
    assert_eq!(files.read("out"), "", "no half of a row");
}

/// A mount needs rights that a sandbox may not have.
#[test]
fn a_file_that_is_mounted_is_written_in_its_place() {
    let files = lines("mounted");
    files.write("outside", "a text that is longer than the rows that come ".repeat(9));
    files.write("mounted", "");
    let inside = |line: &str| {
        let mounted = format!("mount --bind outside mounted && {{ {line}; }}");
        shell(&files, &format!("unshare -rm /bin/sh -c '{mounted}' || {mounted}; umount mounted"))
    };
    if !shell(&files, "unshare -rm mount --bind outside mounted").stderr.is_empty() {
        println!("skipped: this process may not mount files");
        return;
    }
    let inode = fs::metadata(files.path("outside")).unwrap().ino();
    assert_eq!(inside("trommel run -q pipeline").stdout, "");
    assert_eq!(files.read("outside"), ROWS);
    assert_eq!(fs::metadata(files.path("outside")).unwrap().ino(), inode);
    inside("trommel top -q in --save mounted");
    assert!(files.read_bytes("outside").starts_with(b"trommel"));
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    let files = Files::new();
    for line in ["--help", "top --help", "--version", "schema"] {
        let ended = shell(&files, &format!("trommel {line} > /dev/full"));
        assert_eq!(ended.status, 1, "{line}");
        assert!(ended.stderr.contains("No space left on device"), "{line}: {}", ended.stderr);
    }
}

#[track_caller]
fn check_shown(ended: &Ended) {
    for text in [&ended.stdout, &ended.stderr] {
        let acts = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{200b}');
        assert!(!text.contains(acts), "{text:?}");
    }
    let is_escaped = ended.stderr.contains(r"\u{1b}") || ended.stderr.contains(r"\x1b");
    assert!(is_escaped, "{}", ended.stderr);
}

#[test]
fn names_do_not_act_on_a_terminal() {
    let files = Files::new();
    let name = "x\u{1b}]0;owned\u{7}\u{1b}[31m\u{9b}2J\u{202e}\u{200b}\r";
    let path = files.write(name, "a\n");
    let damaged = files.write(&format!("{name}.gz"), "no gzip");
    let pipeline = format!(
        "{{ \"stages\": [ {{ \"id\": \"a\", \"operator\": \"reed{}\" }} ] }}",
        name.replace(['\u{7}', '\u{1b}', '\r'], "").replace("]0", "\u{7f}]0") + "\u{1b}"
    );
    let pipeline = files.write("pipeline", pipeline);
    for arguments in [
        &["run", &path][..],
        &["check", &path],
        &["check", &pipeline],
        &[name],
        &["top", &damaged, "--by", "line"],
        &["top", &path, "--load", &path],
        &["run", "configs/quickstart.json", "--set", name],
        &["run", "configs/quickstart.json", "--listen", ":0", "--token-file", name],
        &["operators", name],
    ] {
        check_shown(&trommel(arguments).end());
    }
}

//! `top` compared with naive counts.

use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::{Ended, Files, trommel};

/// Lines of a fixed, skewed stream: `GET  /page/N Agent-M`.
fn log(lines: usize) -> String {
    let mut state = 7_u64;
    let mut text = String::new();
    for _ in 0..lines {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let draw = state >> 33;
        let rank = (1 << (draw % 8)) + (draw >> 8) % (1 << (draw % 8));
        text.push_str(&format!("GET  /page/{rank} Agent-{}\n", rank % 5));
    }
    text
}

/// Naive count of every item.
fn count<'a>(items: impl Iterator<Item = &'a str>) -> HashMap<&'a str, u64> {
    let mut counts = HashMap::new();
    for item in items {
        *counts.entry(item).or_insert(0) += 1;
    }
    counts
}

/// Rows of the table: item, count, error; ranks must be consecutive.
fn rows(table: &str) -> Vec<(String, u64, u64)> {
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().expect("a header").split_whitespace().collect();
    assert_eq!(header, ["rank", "item", "count", "error"]);
    assert!(lines.next().expect("a line").chars().all(|c| "─ ".contains(c)));
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let rows = lines.enumerate().map(|(index, line)| {
        let (rank, rest) = line.trim_start().split_once(' ').expect("a rank");
        assert_eq!(rank.parse(), Ok(index + 1));
        let (rest, error) = rest.rsplit_once(' ').expect("an error");
        let (item, count) = rest.trim_end().rsplit_once(' ').expect("a count");
        (item.trim().to_owned(), number(count), number(error))
    });
    rows.collect()
}

/// Checks an exact table of the `n` most frequent items.
#[track_caller]
fn check_exact(ended: Ended, n: usize, counts: &HashMap<&str, u64>) {
    let rows = rows(&ended.ok());
    let mut expected: Vec<u64> = counts.values().copied().collect();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    expected.truncate(n);
    assert_eq!(rows.iter().map(|row| row.1).collect::<Vec<_>>(), expected);
    for (item, count, error) in rows {
        assert_eq!((counts.get(item.as_str()), error), (Some(&count), 0), "{item}");
    }
}

#[test]
fn lines_of_standard_input_are_counted() {
    let text = log(1500);
    let counts = count(text.lines());
    check_exact(trommel(["top"]).input(text.as_str()).end(), 20, &counts);
    check_exact(trommel(["top", "-n", "3", "-"]).input(text.as_str()).end(), 3, &counts);
}

#[test]
fn rows_are_printed_as_json_or_csv_for_programs() {
    let text = "b\na \"x\", y\nb\n";
    let top = |options: &[&str]| trommel(["top"].iter().chain(options)).input(text).end().ok();
    let json = concat!(
        r#"{"rank":1,"item":"b","count":2,"error":0}"#,
        "\n",
        r#"{"rank":2,"item":"a \"x\", y","count":1,"error":0}"#,
        "\n"
    );
    assert_eq!(top(&["--json"]), json);
    assert_eq!(top(&["--csv", "-n", "1"]), "rank,item,count,error\n1,b,2,0\n");
    let files = Files::new();
    let state = files.path("state");
    top(&["--save", &state]);
    let csv = "rank,item,count,error\n1,b,4,0\n2,\"a \"\"x\"\", y\",2,0\n";
    assert_eq!(top(&["--csv", "--load", &state]), csv);
    let said = trommel(["top", "--json", "--csv"]).end().refused(2);
    assert!(said.contains("cannot be used with"), "{said}");
}

#[test]
fn files_are_counted_together_and_decompressed() {
    let files = Files::new();
    let text = log(40_000);
    let (first, second) =
        text.split_at(text.len() / 2 + text[text.len() / 2..].find('\n').unwrap() + 1);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(second.as_bytes()).unwrap();
    let paths = [files.write("a.log", first), files.write("b.log.gz", gzip.finish().unwrap())];
    let ended = trommel(["top", "-n", "50", &paths[0], &paths[1]]).end();
    check_exact(ended, 50, &count(text.lines()));
}

#[test]
fn words_are_counted_in_lower_case() {
    let text = "The cat, the dog;\nTHE end. Cat!\n";
    let ended = trommel(["top", "--by", "words"]).input(text).end();
    check_exact(ended, 20, &count("the cat the dog the end cat".split(' ')));
}

#[test]
fn a_field_is_counted_where_there_is_one() {
    let text = "a b c\n  d\te  f\nno\n\nx b\n";
    let ended = trommel(["top", "--by", "field=2"]).input(text).end();
    check_exact(ended, 20, &count("b e b".split(' ')));
    let files = Files::new();
    let log = log(20_000);
    let path = files.write("log", &log);
    let ended = trommel(["top", "--by", "field=3", "-n", "9", &path]).end();
    check_exact(ended, 9, &count(log.lines().map(|line| line.rsplit(' ').next().unwrap())));
}

#[test]
fn the_shell_pipeline_it_replaces_counts_the_same() {
    let files = Files::new();
    let path = files.write("log", log(30_000));
    let script = format!("LC_ALL=C sort '{path}' | uniq -c | sort -rn | head -n 15");
    let shell = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).output();
    let Some(shell) = shell.ok().filter(|shell| shell.status.success()) else {
        println!("skipped: there is no shell with sort, uniq and head");
        return;
    };
    let shell = String::from_utf8(shell.stdout).unwrap();
    let theirs: Vec<u64> =
        shell.lines().map(|l| l.split_whitespace().next().unwrap().parse().unwrap()).collect();
    assert_eq!(theirs.len(), 15);
    let ours = rows(&trommel(["top", "-n", "15", &path]).end().ok());
    assert_eq!(ours.iter().map(|row| row.1).collect::<Vec<_>>(), theirs);
}

#[test]
fn few_counters_bound_the_counts_and_say_so() {
    let text = log(2000);
    let counts = count(text.lines());
    let ended = trommel(["top", "-k", "20", "-n", "10"]).input(text.as_str()).end();
    assert_eq!(ended.status, 0);
    let rows = rows(&ended.stdout);
    assert_eq!(rows.len(), 10);
    let mut largest = 0;
    for (item, count, error) in rows {
        let truth = counts[item.as_str()];
        assert!((count - error..=count).contains(&truth), "{item}: {count} - {error}, is {truth}");
        largest = largest.max(error);
    }
    assert_eq!(
        ended.stderr,
        format!(
            "counts are upper bounds, at most {largest} too high; more counters (-k) make them precise\n"
        )
    );
    assert!(largest > 0 && largest <= 2000 / 20);
}

#[test]
fn counts_are_saved_and_loaded() {
    let files = Files::new();
    let (first, second) = (log(900), log(300));
    let state = files.path("state");
    let saved = trommel(["top", "--save", &state]).input(first.as_str()).end();
    check_exact(saved, 20, &count(first.lines()));
    let both = first.clone() + &second;
    for _ in 0..2 {
        let loaded = trommel(["top", "--load", &state]).input(second.as_str()).end();
        check_exact(loaded, 20, &count(both.lines()));
    }
    let other = trommel(["top", "--load", &state, "-k", "77"]).input("a").end().refused(2);
    assert!(other.contains("77 counters and one with 10000: the numbers must be equal"), "{other}");
    let text = files.write("text", "not a state at all, but long enough for one");
    let text = trommel(["top", "--load", &text]).input("a").end().refused(2);
    assert!(text.contains("invalid snapshot: it begins with"), "{text}");
    let missing = trommel(["top", "--load", &files.path("none")]).input("a").end().refused(2);
    assert!(missing.contains("No such file"), "{missing}");
    let folder = trommel(["top", "--save", "no/such/state"]).input("a").end().refused(2);
    assert!(folder.ends_with("there is no folder no/such\n"), "{folder}");
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_counted() {
    let input = *b"caf\xe9 x\nok x\nok x\n";
    let ended = trommel(["top", "--by", "field=2"]).input(input).end();
    assert_eq!((ended.status, rows(&ended.stdout)), (0, vec![("x".to_owned(), 3, 0)]));
    let said = "read with U+FFFD in place of bytes that are not UTF-8: 1 line; \
                --encoding names another encoding\n";
    assert_eq!(ended.stderr, said);
    let named = trommel(["top", "--by", "words", "--encoding", "latin1"]).input(input).end().ok();
    assert!(rows(&named).contains(&("café".to_owned(), 1, 0)), "{named}");
    let skipped = trommel(["top", "--by", "field=2", "--invalid", "skip"]).input(input).end();
    assert_eq!((skipped.status, rows(&skipped.stdout)), (1, vec![("x".to_owned(), 2, 0)]));
    let said = "left out, no text or longer than 1,048,576 bytes (--line-max): 1 line; \
                the counts and their bounds are those of the others\n";
    assert!(skipped.stderr.ends_with(said), "{}", skipped.stderr);
    let failed = trommel(["top", "--invalid", "fail"]).input(input).end().refused(1);
    assert!(failed.contains(":1: byte 3 of the line is not valid UTF-8"), "{failed}");
    let unknown = trommel(["top", "--encoding", "utf-7"]).input(input).end().refused(2);
    assert!(unknown.contains("a label of the Encoding Standard"), "{unknown}");
}

#[test]
fn a_line_longer_than_the_limit_is_left_out() {
    let files = Files::new();
    let mut text = "x".repeat(3 << 20);
    text.push_str("\nshort\n");
    let path = files.write("long", text);
    let ended = trommel(["top", &path]).end();
    assert_eq!((ended.status, rows(&ended.stdout)), (1, vec![("short".to_owned(), 1, 0)]));
    assert!(ended.stderr.contains("(--line-max): 1 line;"), "{}", ended.stderr);
    let whole = trommel(["top", "--by", "words", "--line-max", "4000000", &path]).end().ok();
    assert_eq!(whole.lines().count(), 4);
}

#[test]
fn files_whose_names_are_no_text_are_counted() {
    use std::os::unix::ffi::OsStrExt as _;
    let files = Files::new();
    let name = std::ffi::OsStr::from_bytes(b"odd\xff.log");
    let path = std::path::Path::new(&files.path("")).join(name);
    std::fs::write(&path, "a\na\n").expect("a temporary file");
    let table = trommel(["top".as_ref(), path.as_os_str()]).end().ok();
    assert_eq!(rows(&table), [("a".to_owned(), 2, 0)]);
    std::fs::remove_file(&path).expect("a temporary file");
    let missing = trommel(["top".as_ref(), path.as_os_str()]).end().refused(1);
    assert!(missing.contains("odd\\xff.log"), "{missing}");
}

#[test]
fn an_empty_input_says_that_it_is_empty() {
    for arguments in [&["top"][..], &["top", "--by", "field=3"]] {
        let ended = trommel(arguments).input("").end();
        assert_eq!((ended.status, ended.stdout.as_str()), (0, ""));
        assert_eq!(ended.stderr, "there is nothing to count\n");
    }
}

#[test]
fn wrong_arguments_and_files_are_refused() {
    let missing = trommel(["top", "no/such/file"]).end().refused(1);
    assert_eq!(
        missing,
        " WARN left out: cannot open no/such/file: No such file or directory (os error 2)\n"
    );
    let closed = crate::support::shell(&Files::new(), "trommel top <&-").refused(1);
    assert_eq!(closed, " WARN left out: cannot open standard input: standard input is closed\n");
    let folder = trommel(["top", "configs"]).end().refused(2);
    assert_eq!(folder, "error: configs is a directory; `configs/*` names the files in it\n");
    for arguments in [["-n", "0"], ["-k", "0"], ["-k", "67108865"], ["--by", "field=0"]] {
        let said = trommel(["top"].into_iter().chain(arguments)).end().refused(2);
        assert!(said.starts_with("error: invalid value") && said.contains("expected"), "{said}");
    }
}

#[test]
fn a_state_says_what_was_counted_and_begins_on_the_first_day() {
    let files = Files::new();
    let state = files.path("state");
    let day =
        || trommel(["top", "-q", "--load", &state, "--save", &state]).input("a b\na b\n").end();
    for days in 1..=3 {
        let counted = rows(&day().ok());
        assert_eq!(counted, [("a b".to_owned(), 2 * days, 0)]);
    }
    for by in ["words", "field=1"] {
        let other = trommel(["top", "--load", &state, "--by", by]).input("a b\n").end().refused(2);
        let of = if by == "words" { "words" } else { "field 1 of each line" };
        assert!(other.contains(&format!("the counts of lines, not of {of}")), "{other}");
    }
}

#[test]
fn the_state_of_a_run_that_was_stopped_is_told_when_it_is_loaded() {
    let files = Files::new();
    let (pipe, state) = (files.fifo("pipe"), files.path("state"));
    let live = trommel(["top", "-q", "--save", &state, &pipe]).start();
    let writer = std::fs::File::options().write(true).open(&pipe).unwrap();
    live.wait_for_signals();
    live.signal(rustix::process::Signal::INT);
    assert_eq!(live.end().status, 130);
    drop(writer);
    let loaded = trommel(["top", "-q", "--load", &state]).input("a\n").end();
    assert!(loaded.stderr.contains("stopped before the end of its input"), "{}", loaded.stderr);
    assert_eq!(rows(&loaded.stdout), [("a".to_owned(), 1, 0)]);
}

#[test]
fn columns_of_tables_are_counted_by_expressions() {
    let folder = Files::new();
    let lines: String = (0..1000)
        .map(|n| format!("{{\"host\": \"Host{}\", \"status\": {}}}\n", n % 7, 200 + n % 3 * 150))
        .collect();
    folder.write("access.jsonl", &lines);
    let path = folder.path("access.jsonl");
    let found =
        trommel(["top", "--by", "lower(host)", "--where", "status >= 350", "--json", &path]);
    let found = found.end().ok();
    let mut expected = HashMap::new();
    for n in (0..1000).filter(|n| 200 + n % 3 * 150 >= 350) {
        *expected.entry(format!("host{}", n % 7)).or_insert(0_u64) += 1;
    }
    let rows: Vec<serde_json::Value> =
        found.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), 7);
    for row in rows {
        assert_eq!(row["count"], expected[row["item"].as_str().expect("a text")]);
    }
    // Numbers stay numbers, and lines are a table of one column.
    let found = trommel(["top", "--by", "status", "-n", "1", "--json", &path]).end().ok();
    assert_eq!(found, "{\"rank\":1,\"item\":200,\"count\":334,\"error\":0}\n");
    let found = trommel(["top", "--by", "length(line)", "--csv"]).input("ab\ncd\nefg\n").end().ok();
    assert_eq!(found, "rank,item,count,error\n1,2,2,0\n2,3,1,0\n");
}

#[test]
fn rows_without_a_value_are_said_and_fail_the_command() {
    let ended = trommel(["top", "--by", "cast(line as int)", "--csv"]).input("1\nx\n1\n").end();
    assert_eq!((ended.status, &ended.stdout[..]), (1, "rank,item,count,error\n1,1,2,0\n"));
    let said = ended.stderr;
    assert!(said.contains("left out, --by or --where has no value for them: 1 row"), "{said}");
    let said = trommel(["top", "--by", "hsot"]).input("1\n").end().refused(2);
    assert!(said.contains("the input has no column `hsot`; it has `line` (Utf8)"), "{said}");
}

#[test]
fn tables_of_parquet_and_arrow_are_counted() {
    let folder = Files::new();
    let source = folder.write("rows.jsonl", "{\"v\": 7}\n{\"v\": -1}\n{\"v\": 7}\n");
    for format in ["parquet", "arrow"] {
        let path = folder.path(&format!("rows.{format}"));
        let pipeline = format!(
            r#"{{ "stages": [
            {{ "id": "rows", "operator": "read", "with": {{ "paths": ["{source}"], "format": "jsonl" }} }},
            {{ "id": "file", "operator": "write", "inputs": ["rows"],
               "with": {{ "path": "{path}", "format": "{format}" }} }} ] }}"#
        );
        trommel(["run", "-q", "-"]).input(pipeline).end().ok();
        let found = trommel(["top", "--by", "v", "--csv", &path]).end().ok();
        assert_eq!(found, "rank,item,count,error\n1,7,2,0\n2,-1,1,0\n");
    }
}

#[test]
fn a_line_that_is_nested_deeply_is_left_out() {
    let folder = Files::new();
    let deep = format!("{{\"v\": {}1{}}}\n", "[".repeat(20_000), "]".repeat(20_000));
    let path = folder.write("deep.jsonl", format!("{{\"v\": 1}}\n{deep}{{\"v\": 1}}\n"));
    let ended = trommel(["top", "--by", "v", "--csv", &path]).end();
    assert_eq!((ended.status, &ended.stdout[..]), (1, "rank,item,count,error\n1,1,2,0\n"));
}

#[test]
fn columns_of_logs_and_of_tabs_are_counted() {
    let folder = Files::new();
    let line = |path: &str, status: u16| {
        format!(
            "1.2.3.4 - - [01/Mar/2026:12:00:00 +0000] \"GET {path} HTTP/1.1\" {status} 7 \"-\" \"x\"\n"
        )
    };
    let log = [line("/a", 500), line("/b", 200), line("/a", 503), line("/c", 404)].concat();
    let log = folder.write("access.log", log + "no request\n");
    let top = |more: &[&str], path: &str| {
        let arguments = ["top", "--csv", "--by"].iter().chain(more).chain([&path]);
        trommel(arguments).end()
    };
    let failed = ["path", "--where", "status >= 500", "--pattern", "combined"];
    for format in [&[][..], &["--format", "log"]] {
        let ended = top(&[&failed[..], format].concat(), &log);
        assert_eq!(ended.status, 1, "{}", ended.stderr);
        let said =
            "access.log:5: the line does not follow the pattern: there is no ` ` after `ident`";
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        let said = "left out, no row of the table, no text or longer than 1,048,576 bytes";
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        assert_eq!(ended.stdout, "rank,item,count,error\n1,/a,2,0\n");
    }
    let ended = top(&["path", "--format", "log"], &log);
    assert_eq!(ended.status, 2);
    assert!(ended.stderr.contains("`log` needs the pattern"), "{}", ended.stderr);
    for name in ["rows.tsv", "rows.ndjson"] {
        let text = match name {
            "rows.tsv" => "a\tb\nx,y\t1\nx,y\t2\n",
            _ => "{\"a\":\"x,y\"}\n{\"a\":\"x,y\"}\n",
        };
        let path = folder.write(name, text);
        assert_eq!(top(&["a"], &path).ok(), "rank,item,count,error\n1,\"x,y\",2,0\n", "{name}");
    }
}

//! `top` of several columns, of tables on standard input, and of several states.

use crate::support::{Files, trommel};

const ROWS: &str = "{\"host\":\"a\",\"status\":200}\n{\"host\":\"a\",\"status\":404}\n\
                    {\"host\":\"b\",\"status\":200}\n{\"host\":\"a\",\"status\":404}\n";

#[test]
fn several_columns_are_counted_together() {
    let folder = Files::new();
    let rows = folder.write("rows.jsonl", ROWS);
    let top = |by: &[&str]| trommel(["top", "--csv", &rows].iter().chain(by)).end();
    let found = top(&["--by", "host", "--by", "status // 100 as class"]).ok();
    let expected = "rank,host,class,count,error\n1,a,4,2,0\n2,a,2,1,0\n3,b,2,1,0\n";
    assert_eq!(found, expected);
    let said = top(&["--by", "host", "--by", "words"]).refused(2);
    assert!(said.contains("words beside another --by"), "{said}");
    let said = top(&["--by", "lower(hots)"]).refused(2);
    assert!(said.contains("did you mean `host`") && !said.contains(" as item"), "{said}");
}

#[test]
fn a_table_on_standard_input_needs_a_schema() {
    let folder = Files::new();
    let schema = r#"{"host": "text", "status": "u16"}"#;
    let file = folder.write("schema.json", schema);
    let expected = "rank,item,count,error\n1,a,3,0\n2,b,1,0\n";
    for schema in [schema, &file] {
        let by = ["top", "--csv", "--by", "host", "--format", "jsonl", "--schema", schema];
        assert_eq!(trommel(by).input(ROWS).end().ok(), expected);
    }
    let top = ["top", "--by", "host", "--format", "jsonl"];
    let said = trommel(top).input(ROWS).end().refused(2);
    assert!(said.contains("--schema '{\"host\": \"text\"}'"), "{said}");
    for wrong in ["{\"host\": 1}", "{", "missing.json"] {
        let said = trommel(top.into_iter().chain(["--schema", wrong])).end().refused(2);
        assert!(said.contains("--schema"), "{said}");
    }
}

#[test]
fn states_are_added_up() {
    let folder = Files::new();
    let [one, two, sum] = ["one", "two", "sum"].map(|name| folder.path(name));
    let save = |lines: &str, state: &str, more: &[&str]| {
        let arguments = ["top", "-q", "--save", state].into_iter().chain(more.iter().copied());
        trommel(arguments).input(lines).end().ok()
    };
    save("a\nb\na\n", &one, &[]);
    save("b\nc\nb\n", &two, &[]);
    let expected = "rank,item,count,error\n1,b,3,0\n2,a,2,0\n3,c,1,0\n";
    let both = ["top", "--csv", "--load", &one, "--load", &two];
    assert_eq!(trommel(both.into_iter().chain(["--save", &sum])).end().ok(), expected);
    // With a file, its lines are added, too.
    let more = trommel(both.into_iter().chain(["-"])).input("c\nc\nc\n").end().ok();
    assert_eq!(more, "rank,item,count,error\n1,c,4,0\n2,b,3,0\n3,a,2,0\n");
    let lines = folder.write("lines", "");
    let saved = trommel(["top", "--csv", "--load", &sum, &lines]).end().ok();
    assert_eq!(saved, expected);
    save("b c\n", &two, &["--by", "words"]);
    let said = trommel(both).end().refused(2);
    assert!(said.contains("two: the state has the counts of words, not of lines"), "{said}");
    save("b\n", &two, &["-k", "7"]);
    let said = trommel(both).end().refused(2);
    assert!(said.contains("two: ") && said.contains('7'), "{said}");
}

#[test]
fn states_of_items_of_every_type_are_added_up() {
    let folder = Files::new();
    let [one, two] = ["one", "two"].map(|name| folder.path(name));
    let schema = "{\"n\": \"i64\", \"t\": \"timestamp\", \"s\": \"text\", \"b\": \"bool\"}";
    let first = "{\"n\":-5,\"t\":\"2026-01-02T03:04:05Z\",\"s\":\"x\",\"b\":true}\n";
    let rows = [first.repeat(3), format!("{first}{}", first.replace("-5", "7").replace('x', "y"))];
    for (by, row) in [
        (&["n"][..], "-5"),
        (&["(n + 9)::u32"], "4"),
        (&["n::i16"], "-5"),
        (&["s"], "x"),
        (&["b"], "true"),
        (&["t"], "2026-01-02T03:04:05"),
        (&["t::date"], "2026-01-02"),
        (&["n::double / 2"], "-2.5"),
        (&["n", "s"], "-5,x"),
        (&["n::i8 as n", "t", "b as \"b, )\"\"x\""], "-5,2026-01-02T03:04:05"),
    ] {
        let by: Vec<&str> = by.iter().flat_map(|by| ["--by", by]).collect();
        for (file, rows) in [&one, &two].into_iter().zip(&rows) {
            let options = ["top", "-q", "--format", "jsonl", "--schema", schema, "--save", file];
            trommel(options.into_iter().chain(by.iter().copied())).input(rows.as_str()).end().ok();
        }
        let sum = trommel(["top", "--csv", "--load", &one, "--load", &two]).end().ok();
        let first = sum.lines().nth(1).expect("a row");
        let count = if by == ["--by", "b"] || by == ["--by", "t"] || by == ["--by", "t::date"] {
            5
        } else {
            4
        };
        assert!(first.starts_with(&format!("1,{row}")), "{by:?}: {sum}");
        assert!(first.ends_with(&format!(",{count},0")), "{by:?}: {sum}");
        let both = ["top", "--csv", "--load", &one, "--load", &two];
        assert_eq!(trommel(both.into_iter().chain(by.iter().copied())).end().ok(), sum);
        let other = trommel(both.into_iter().chain(["--by", "words"])).end().refused(2);
        assert!(other.contains("not of words"), "{other}");
    }
}

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use proptest::prelude::*;
use trommel_engine::graph::Graph;
use trommel_engine::operator::OperatorError;
use trommel_engine::runtime::RunOptions;
use unicode_segmentation::UnicodeSegmentation;

use super::*;
use crate::shared::parameters::BATCH_BYTES;
use crate::testing::{bind, bind_operator, run_operator};
use crate::{Collect, Memory};

fn texts_schema() -> SchemaRef {
    let line = Field::new("line", DataType::Utf8, true);
    Arc::new(Schema::new(vec![Field::new("n", DataType::UInt32, false), line]))
}

fn texts(lines: &[Option<&str>]) -> RecordBatch {
    let n = UInt32Array::from_iter_values(0..u32::try_from(lines.len()).unwrap());
    let columns: Vec<ArrayRef> = vec![Arc::new(n), Arc::new(StringArray::from(lines.to_vec()))];
    RecordBatch::try_new(texts_schema(), columns).unwrap()
}

fn items(spec: Tokenize, inputs: Vec<RecordBatch>) -> (Vec<String>, Vec<usize>) {
    let mut operator = bind_operator(spec, &texts_schema());
    let batches = run_operator(&mut *operator, inputs).unwrap();
    let items = batches.iter().flat_map(|b| b.column(0).as_string::<i32>().iter().flatten());
    (items.map(str::to_owned).collect(), batches.iter().map(RecordBatch::num_rows).collect())
}

fn sets(spec: Tokenize, inputs: Vec<RecordBatch>) -> Result<Vec<(u32, Vec<u32>)>, OperatorError> {
    let mut operator = bind_operator(spec, &texts_schema());
    let batches = run_operator(&mut *operator, inputs)?;
    let mut rows = Vec::new();
    for batch in &batches {
        let ids = batch.column(0).as_primitive::<UInt32Type>().values();
        let sets = batch.column(1).as_list::<i32>();
        for (id, set) in ids.iter().zip(sets.iter().flatten()) {
            rows.push((*id, set.as_primitive::<UInt32Type>().values().to_vec()));
        }
    }
    Ok(rows)
}

#[test]
fn output_batches_are_bounded_although_one_text_explodes() {
    let text = "word ".repeat(1000);
    let inputs = || vec![texts(&[Some("a b"), None, Some(""), Some(&text), Some("z")])];
    for batch in [1, 2, 3, 999, 1000, 1003, 5000] {
        let (tokens, sizes) = items(Tokenize::words().column("line").batch(batch), inputs());
        assert_eq!(tokens.len(), 1003);
        assert_eq!(
            (&tokens[..3], &tokens[1002..]),
            (&["a", "b", "word"].map(String::from)[..], &["z".to_owned()][..])
        );
        assert!(sizes.iter().rev().skip(1).all(|&size| size == batch), "{batch}: {sizes:?}");
    }
}

#[test]
fn output_batches_are_bounded_in_bytes() {
    let text = "x".repeat(100_000);
    let (tokens, sizes) = items(Tokenize::qgrams(255).batch(1 << 20), vec![texts(&[Some(&text)])]);
    assert_eq!(tokens.len(), 100_000 - 254);
    assert!(sizes.iter().all(|&size| size * 255 <= BATCH_BYTES + 255), "{sizes:?}");
}

#[test]
fn a_field_of_each_text_is_a_token() {
    let inputs = vec![texts(&[Some("a;b c"), None, Some(""), Some("d;e;f"), Some("g")])];
    let (tokens, _) = items(Tokenize::field(2).delimiter(';').batch(1), inputs.clone());
    assert_eq!(tokens, ["b c", "e"]);
    let (tokens, _) = items(Tokenize::field(1), inputs.clone());
    assert_eq!(tokens, ["a;b", "d;e;f", "g"]);
    let spec: Tokenize =
        serde_json::from_str(r#"{"by": {"field": 3}, "delimiter": ";", "quotes": true}"#).unwrap();
    assert_eq!(items(spec, inputs).0, ["f"]);
    let refused = |spec: Tokenize| bind(spec, &[texts(&[]).schema()]).unwrap_err().parameter;
    assert_eq!(refused(Tokenize::field(0)), Some("by"));
    assert_eq!(refused(Tokenize::words().delimiter(',')), Some("delimiter"));
    assert_eq!(refused(Tokenize::words().quotes()), Some("quotes"));
}

/// Nearly all q-grams of the text are distinct, and each q-gram is a text of its own.
#[test]
fn a_set_that_is_too_large_is_an_error() {
    use trommel_engine::placement::Placement;
    let text: String = (0..60_000_u32).map(|number| format!("{number:x}")).collect();
    let text_sets = || Tokenize::qgrams(255).into_text_sets();
    // A million tokens, two of which are distinct.
    let repeated = "ab".repeat(1 << 19);
    let sets = || Tokenize::qgrams(1).into_sets();
    for (spec, text, placement, memory, is_enough) in [
        (text_sets(), &text, Placement::Fused, 20 << 20, false),
        (text_sets(), &text, Placement::Auto, 20 << 20, false),
        (text_sets(), &text, Placement::Fused, 1 << 30, true),
        (sets(), &repeated, Placement::Fused, 3 << 20, false),
        (sets(), &repeated, Placement::Auto, 3 << 20, false),
        (sets(), &repeated, Placement::Fused, 40 << 20, true),
    ] {
        let mut graph = Graph::new();
        let batch = texts(&[Some(text)]);
        let lines = graph.add("lines", Memory::new(batch.schema(), [batch]));
        let sets = graph.add_after(lines, "sets", spec);
        let (sink, rows) = Collect::new();
        graph.add_after(sets, "rows", sink);
        graph.placement(placement).memory_max(memory);
        match graph.build().unwrap().run(RunOptions::new()) {
            Ok(_) => assert!(is_enough && rows.rows() == 1),
            Err(error) => {
                let said = error.to_string();
                assert!(
                    !is_enough && said.contains("no memory for the set of a long text"),
                    "{said}"
                );
            }
        }
    }
}

#[test]
fn sets_number_tokens_by_first_occurrence() {
    let inputs = vec![texts(&[Some("b a b"), None]), texts(&[Some(""), Some("c a")])];
    let rows = sets(Tokenize::whitespace().into_sets(), inputs).unwrap();
    assert_eq!(rows, [(0, vec![0, 1]), (1, vec![]), (2, vec![]), (3, vec![1, 2])]);
}

#[test]
fn sets_agree_with_a_naive_dictionary_for_any_batch() {
    let lines: Vec<String> =
        (0..500_u32).map(|i| format!("{} {} {}", i % 17, i % 5, (i * i) % 101)).collect();
    let mut numbers = HashMap::new();
    let expected: Vec<(u32, Vec<u32>)> = (0..)
        .zip(&lines)
        .map(|(id, line)| {
            let set: BTreeSet<u32> = line
                .split(' ')
                .map(|token| {
                    let next = u32::try_from(numbers.len()).unwrap();
                    *numbers.entry(token.to_owned()).or_insert(next)
                })
                .collect();
            (id, set.into_iter().collect())
        })
        .collect();
    let lines: Vec<Option<&str>> = lines.iter().map(|line| Some(line.as_str())).collect();
    for batch in [1, 7, 499, 500, 501] {
        let inputs = lines.chunks(123).map(texts).collect();
        let spec = Tokenize::whitespace().into_sets().batch(batch);
        assert_eq!(sets(spec, inputs).unwrap(), expected);
    }
}

/// Sets of words, by the general rules of the crate: the last letter prevents its shortcut.
fn naive_sets(rows: &[Option<String>]) -> Vec<(u32, Vec<u32>)> {
    let mut numbers = HashMap::new();
    let mut set = |text: &str| -> BTreeSet<u32> {
        let text = format!("{text} é");
        let mut words: Vec<String> = text.unicode_words().map(str::to_lowercase).collect();
        words.pop();
        let number = |word| {
            let next = u32::try_from(numbers.len()).unwrap();
            *numbers.entry(word).or_insert(next)
        };
        words.into_iter().map(number).collect()
    };
    let sets = rows.iter().map(|row| set(row.as_deref().unwrap_or_default()));
    (0..).zip(sets).map(|(id, set)| (id, set.into_iter().collect())).collect()
}

proptest! {
    #[test]
    fn sets_of_words_are_those_of_each_row(
        rows in proptest::collection::vec(
            proptest::option::weighted(0.98, "[ab .,']{0,40}|[éЖ中a ]{0,30}|[a-zA-Z ]{0,90}|[a-c]{14,18}"),
            0..60,
        ),
        batch in 1_usize..70,
        chunk in 1_usize..70,
    ) {
        let lines: Vec<Option<&str>> = rows.iter().map(Option::as_deref).collect();
        let inputs = lines.chunks(chunk).map(texts).collect();
        let found = sets(Tokenize::words().into_sets().batch(batch), inputs).unwrap();
        prop_assert_eq!(found, naive_sets(&rows));
    }
}

#[test]
fn text_sets_carry_the_texts_of_their_tokens() {
    let long = "x".repeat(BATCH_BYTES / 2);
    let lines = ["b a b", "", "c a", "Ä a", &long, &long, "b c"];
    let expected = [vec!["b", "a"], vec![], vec!["c", "a"], vec!["Ä", "a"]];
    for batch in [1, 2, 100] {
        let spec = Tokenize::whitespace().into_text_sets().carry(["n"]).batch(batch);
        let mut operator = bind_operator(spec, &texts_schema());
        let inputs = lines.map(|line| texts(&[Some(line)]));
        let batches = run_operator(&mut *operator, inputs).unwrap();
        let mut found: Vec<Vec<String>> = Vec::new();
        for records in &batches {
            assert_eq!(records.schema().field(2).name(), "n");
            let sets = records.column(1).as_list::<i32>();
            for row in 0..records.num_rows() {
                let set = sets.value(row);
                let set = set.as_dictionary::<UInt32Type>();
                let words = set.downcast_dict::<StringArray>().unwrap();
                found.push(words.into_iter().flatten().map(str::to_owned).collect());
            }
        }
        found
            .iter_mut()
            .take(4)
            .for_each(|set| set.sort_by_key(|word| (word == "a", word.clone())));
        assert_eq!(
            found[..4],
            expected.clone().map(|set| set.into_iter().map(str::to_owned).collect::<Vec<_>>())
        );
        assert_eq!(found[4..6], [vec![long.clone()], vec![long.clone()]]);
        assert_eq!(found[6].len(), 2);
    }
}

#[test]
fn columns_go_along_with_the_sets_of_their_rows() {
    let lines: Vec<String> = (0..100).map(|i| format!("{i} {}", i % 7)).collect();
    let lines: Vec<Option<&str>> = lines.iter().map(|line| Some(line.as_str())).collect();
    for batch in [1, 7, 100] {
        let spec = Tokenize::whitespace().into_sets().carry(["line", "n"]).batch(batch);
        let mut operator = bind_operator(spec, &texts_schema());
        let inputs: Vec<RecordBatch> = lines.chunks(33).map(texts).collect();
        let batches = run_operator(&mut *operator, inputs).unwrap();
        let names = |b: &RecordBatch| {
            b.schema().fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>()
        };
        let mut id = 0;
        for records in &batches {
            assert_eq!(names(records), ["id", "set", "line", "n"]);
            for row in 0..records.num_rows() {
                let number =
                    |column: usize| records.column(column).as_primitive::<UInt32Type>().value(row);
                assert_eq!((number(0), number(3)), (id, id % 33));
                let line = records.column(2).as_string::<i32>().value(row);
                assert_eq!(Some(line), lines[id as usize]);
                id += 1;
            }
        }
        assert_eq!(id, 100);
    }
    let refused = |spec: Tokenize| {
        let error = bind(spec, &[texts_schema()]).unwrap_err();
        (error.parameter.unwrap(), error.to_string())
    };
    let sets = || Tokenize::words().into_sets();
    assert_eq!(refused(Tokenize::words().carry(["n"])).0, "carry");
    assert!(refused(sets().carry(["n", "n"])).1.contains("twice"));
    assert!(refused(sets().carry(["nn"])).1.contains("nn"));
}

#[test]
fn a_full_dictionary_forgets_or_fails() {
    let spec = Tokenize::words().into_sets().dictionary_max(2);
    let endless = (0..1000).map(|i| texts(&[Some(&format!("a b{i}"))])).collect();
    let found = sets(spec.clone(), endless).unwrap();
    // `a` is used all the time and keeps its number; the others are all different.
    assert!(found.iter().all(|(_, set)| set.len() == 2 && set[0] == 0));
    let others: std::collections::HashSet<u32> = found.iter().map(|(_, set)| set[1]).collect();
    assert_eq!(others.len(), 1000);
    let spec = spec.dictionary_full(DictionaryFull::Fail);
    assert!(sets(spec.clone(), vec![texts(&[Some("a b a b")])]).is_ok());
    let error = sets(spec, vec![texts(&[Some("a b"), Some("c")])]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the texts have more than 2 distinct tokens (`dictionary_max`), \
         or more than 268435456 bytes of them (`dictionary_bytes_max`)"
    );
}

#[test]
fn mistakes_are_refused_when_it_is_bound() {
    let two: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("a", DataType::Utf8, false),
        Field::new("b", DataType::Utf8, false),
    ]));
    let message = |spec: Tokenize, schema: &SchemaRef| {
        let error = bind(spec, &[SchemaRef::clone(schema)]).unwrap_err();
        (error.parameter.unwrap(), error.to_string())
    };
    let (parameter, text) = message(Tokenize::words(), &two);
    assert_eq!(parameter, "column");
    assert!(text.contains("`a` (Utf8), `b` (Utf8)"), "{text}");
    assert_eq!(message(Tokenize::words().column("c"), &two).0, "column");
    assert_eq!(message(Tokenize::words().column("n"), &texts_schema()).0, "column");
    assert_eq!(message(Tokenize::qgrams(0), &texts_schema()).0, "q");
    assert_eq!(message(Tokenize::qgrams(256), &texts_schema()).0, "q");
    let without_q: Tokenize = serde_json::from_str(r#"{"by": "qgrams"}"#).unwrap();
    assert_eq!(message(without_q, &texts_schema()).0, "q");
    let with_q: Tokenize = serde_json::from_str(r#"{"by": "words", "q": 3}"#).unwrap();
    assert_eq!(message(with_q, &texts_schema()).0, "q");
}

/// The rows that this number of workers with `spec` makes of `inputs`, and the number of workers.
fn with_workers(
    spec: Tokenize,
    inputs: &[RecordBatch],
    workers: usize,
) -> (Vec<RecordBatch>, usize) {
    let mut graph = Graph::new();
    let texts = graph.add("texts", Memory::new(texts_schema(), inputs.to_vec()));
    let tokens = graph.add_after(texts, "tokens", spec);
    graph.workers(tokens, workers);
    let (sink, rows) = Collect::new();
    graph.add_after(tokens, "rows", sink);
    let metrics = graph.build().unwrap().run(RunOptions::new()).unwrap();
    (rows.batches(), metrics.stage("tokens").unwrap().workers())
}

/// Rows as text, whatever their batches.
fn printed(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default();
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter();
        let columns: Vec<_> =
            columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|")
        }));
    }
    rows
}

fn all_forms(spec: &Tokenize) -> [Tokenize; 3] {
    let spec = || spec.clone();
    [spec(), spec().into_sets().carry(["n"]), spec().into_text_sets().carry(["line"])]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn rows_do_not_depend_on_the_number_of_workers(
        rows in proptest::collection::vec(
            proptest::option::weighted(0.9, "[ab .,']{0,40}|[éЖ中a ]{0,30}|[a-c]{14,18}|([a-z]{1,4} ){100}"),
            0..120,
        ),
        batch in 1_usize..70,
        chunk in 1_usize..130,
    ) {
        let lines: Vec<Option<&str>> = rows.iter().map(Option::as_deref).collect();
        let inputs: Vec<RecordBatch> = lines.chunks(chunk).map(texts).collect();
        for by in [Tokenize::words(), Tokenize::whitespace(), Tokenize::qgrams(3)] {
            for spec in all_forms(&by.column("line").batch(batch)) {
                let (expected, one) = with_workers(spec.clone(), &inputs, 1);
                prop_assert_eq!(one, 1);
                for workers in [2, 3, 8] {
                    let (found, used) = with_workers(spec.clone(), &inputs, workers);
                    prop_assert_eq!(used, workers);
                    prop_assert_eq!(printed(&found), printed(&expected));
                }
            }
        }
    }
}

#[test]
fn pieces_that_no_worker_had_room_for_are_cut_later() {
    // Q-grams of the second text have more bytes than the pieces of a part may have.
    let long: String = (0..30_000_u32).map(|i| char::from(b'a' + (i * i % 23) as u8)).collect();
    let inputs = [texts(&[Some("x"), Some(&long), Some("y z")]), texts(&[Some(&long), None])];
    for spec in all_forms(&Tokenize::qgrams(255).column("line").batch(1000)) {
        let [(expected, _), (found, _)] =
            [1, 2].map(|workers| with_workers(spec.clone(), &inputs, workers));
        let sizes: Vec<usize> = found.iter().map(RecordBatch::num_rows).collect();
        assert!(sizes.iter().all(|&size| size <= 1000), "{sizes:?}");
        assert_eq!(printed(&found), printed(&expected));
    }
}

#[test]
fn forgetting_does_not_depend_on_the_number_of_workers() {
    let lines: Vec<String> = (0..3000_u32)
        .map(|i| format!("{} {} {}", i % 7, i.wrapping_mul(0x9E37_79B9) % 300, i / 20))
        .collect();
    let lines: Vec<Option<&str>> = lines.iter().map(|line| Some(line.as_str())).collect();
    for (chunk, batch) in [(1, 100), (100, 7), (3000, 3000)] {
        let inputs: Vec<RecordBatch> = lines.chunks(chunk).map(texts).collect();
        let spec = Tokenize::whitespace().into_sets().dictionary_max(40).batch(batch);
        let runs = [1, 3].map(|workers| printed(&with_workers(spec.clone(), &inputs, workers).0));
        assert_eq!(runs[0], runs[1]);
        assert_ne!(runs[0], printed(&with_workers(spec.dictionary_max(1000), &inputs, 3).0));
    }
}

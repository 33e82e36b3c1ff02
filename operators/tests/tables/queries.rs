//! `conjunctive_query` against a search by hand.

use arrow_array::RecordBatch;
use trommel_operators::ConjunctiveQuery;

use crate::forms::{self, Given, given, meant};
use crate::{Random, device, on_stand_in, run, shown, table};

/// The documents with all terms of each query; a query without terms has none.
fn by_hand(documents: &[Given], queries: &[Given]) -> Vec<String> {
    let documents = meant(documents);
    let answer = |query: &Option<std::collections::BTreeSet<u8>>| {
        let query = query.clone().unwrap_or_default();
        let found = documents.iter().enumerate().filter(|(_, document)| {
            !query.is_empty() && document.as_ref().is_some_and(|terms| query.is_subset(terms))
        });
        let found: Vec<String> = found.map(|(number, _)| number.to_string()).collect();
        format!("[{}]", found.join(", "))
    };
    meant(queries).iter().map(answer).collect()
}

fn answers(rows: &[RecordBatch]) -> Vec<String> {
    let queries = shown(rows, "query").into_iter().map(|query| query.parse::<usize>().unwrap());
    let mut answers: Vec<_> = queries.zip(shown(rows, "documents")).collect();
    answers.sort_unstable();
    answers.into_iter().map(|(_, documents)| documents).collect()
}

#[test]
fn documents_of_terms_of_all_types_are_found() {
    for (number, kind) in forms::item_types().into_iter().enumerate() {
        let mut random = Random(300 + number as u64);
        let documents = given(&mut random, 100);
        let mut queries = given(&mut random, 40);
        queries.iter_mut().flatten().for_each(|query| query.truncate(3));
        for layout in 0..4 {
            let tables = [&documents, &queries]
                .map(|given| table([("terms", forms::sets(given, &kind, layout))]));
            for cores in [&[0][..], &[0, 1, 0]] {
                let spec = ConjunctiveQuery::new().set("terms").device(device());
                let rows = run(&[&tables[0], &tables[1]], 9, spec, cores).unwrap();
                assert_eq!(answers(&rows), by_hand(&documents, &queries), "{kind} {layout}");
            }
        }
    }
}

#[test]
fn a_device_finds_documents_of_terms_of_all_types() {
    on_stand_in("queries::documents_of_terms_of_all_types_are_found");
}

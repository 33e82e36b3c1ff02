//! Several operators, each with a part of the documents.

use super::*;

#[test]
fn answers_of_parts_add_up_to_the_answers_over_all_documents() {
    let (documents, queries) = (corpus(400), questions(40));
    let expected = by_hand(&documents, &queries);
    for cuts in [&[0, 400][..], &[0, 200, 400], &[0, 0, 1, 130, 399, 400]] {
        let mut lists = vec![Vec::new(); queries.len()];
        let mut counts = vec![0; queries.len()];
        for cut in cuts.windows(2) {
            let part = &documents[cut[0]..cut[1]];
            let (rows, ended) = run(Some(part), &queries, spec(), RUN);
            ended.unwrap();
            let before = u32::try_from(cut[0]).unwrap();
            for (list, found) in lists.iter_mut().zip(documents_of(&rows, queries.len())) {
                list.extend(found.iter().map(|document| before + document));
            }
            let spec = spec().output(QueryOutput::Count);
            let (rows, ended) = run(Some(part), &queries, spec, RUN);
            ended.unwrap();
            let found = counts_of(&rows, queries.len());
            counts.iter_mut().zip(found).for_each(|(sum, count)| *sum += count);
        }
        assert_eq!(lists, expected, "{cuts:?}");
        assert_eq!(counts, expected.iter().map(Vec::len).collect::<Vec<_>>(), "{cuts:?}");
    }
}

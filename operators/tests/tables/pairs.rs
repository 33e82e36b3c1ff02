//! `frequent_pairs` against counting by hand.

use std::collections::BTreeMap;

use trommel_operators::FrequentPairs;
use trommel_operators::frequent_pairs::{PairWindow, Support};

use crate::forms::{self, Given, given, meant};
use crate::{Random, device, on_stand_in, run, shown, table};

/// Pairs of tokens with their support in some transactions, those of 4 and more.
fn by_hand(transactions: &[Given]) -> Vec<([u8; 2], u32)> {
    let mut supports = BTreeMap::new();
    for set in meant(transactions).into_iter().flatten() {
        for &left in &set {
            set.range(left + 1..).for_each(|&right| {
                *supports.entry([left, right]).or_insert(0) += 1;
            });
        }
    }
    supports.into_iter().filter(|(_, support)| *support >= 4).collect()
}

#[test]
fn pairs_of_items_of_all_types_are_counted() {
    for (number, kind) in forms::item_types().into_iter().enumerate() {
        let given = given(&mut Random(70 + number as u64), 120);
        for layout in 0..4 {
            let input = table([("tags", forms::sets(&given, &kind, layout))]);
            // The order of the tokens is that of their numbers; texts are ordered as such.
            let named = |tokens: [u8; 2]| {
                let mut items = tokens.map(|token| forms::item(token, &kind));
                if kind.is_string() || items[0].starts_with('i') {
                    items.sort_unstable();
                }
                items
            };
            let expected = |part: &[Given]| -> Vec<(String, String, String)> {
                let row = |(tokens, support): ([u8; 2], u32)| {
                    let [left, right] = named(tokens);
                    (left, right, support.to_string())
                };
                let mut rows: Vec<_> = by_hand(part).into_iter().map(row).collect();
                rows.sort_unstable();
                rows
            };
            let spec = || FrequentPairs::new(Support::Count(4)).set("tags").device(device());
            let found = |rows: &[_]| -> Vec<(String, String, String)> {
                let (right, support) = (shown(rows, "right"), shown(rows, "support"));
                let rows = shown(rows, "left").into_iter().zip(right).zip(support);
                let mut rows: Vec<_> = rows.map(|((a, b), c)| (a, b, c)).collect();
                rows.sort_unstable();
                rows
            };
            for cores in [&[0][..], &[0, 1, 0]] {
                let rows = run(&[&input], 13, spec(), cores).unwrap();
                assert_eq!(found(&rows), expected(&given), "{kind} {layout}");
            }
            let rows =
                run(&[&input], 13, spec().window(PairWindow::transactions(30)), &[]).unwrap();
            // Nulls are no transactions.
            let kept: Vec<Given> = given.iter().filter(|set| set.is_some()).cloned().collect();
            let mut windows: Vec<_> = kept.chunks(30).flat_map(expected).collect();
            windows.sort_unstable();
            assert_eq!(found(&rows), windows, "{kind} {layout}");
        }
    }
}

#[test]
fn a_device_counts_pairs_of_all_types() {
    on_stand_in("pairs::pairs_of_items_of_all_types_are_counted");
}

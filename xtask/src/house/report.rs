//! The measurements as tables.

use std::fmt::Write as _;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use super::{Code, House, Prose, Sums};

/// A row of a table: its name, and the number of a column as text.
type Row<N> = (&'static str, fn(&N) -> String);

const CODE: [Row<Code>; 18] = [
    ("files", |code| code.files.len().to_string()),
    ("lines", |code| code.lines().to_string()),
    ("function median / p90 / p99 / max", |code| spread(&code.functions, &[50, 90, 99, 100])),
    ("file median / p90 / max", |code| spread(&code.files, &[50, 90, 100])),
    ("doc lines a code line", |code| share(code.doc_lines, code.code_lines, 1.0)),
    ("`//` lines a code line", |code| share(code.comment_lines, code.code_lines, 1.0)),
    ("unsafe blocks / SAFETY", |code| pair(code.unsafe_blocks, code.safety_comments)),
    ("`#[allow]` / `expect(lint)`", |code| pair(code.allows, code.expects)),
    ("marks of later work", |code| code.later.to_string()),
    ("`.unwrap()` / `.expect(\"why\")`", |code| pair(code.unwraps, code.expect_calls)),
    ("`.clone()` per 1,000 lines", |code| share(code.clones, code.lines(), 1e3)),
    ("`pub` items per 1,000 lines", |code| share(code.pub_items, code.lines(), 1e3)),
    ("`pub` items", |code| code.pub_items.to_string()),
    ("asserts per 100 fn", |code| share(code.asserts, code.functions.len(), 1e2)),
    ("`# Examples`", |code| code.examples.to_string()),
    ("`# Errors`", |code| code.errors.to_string()),
    ("`# Panics`", |code| code.panics.to_string()),
    ("code lines", |code| code.code_lines.to_string()),
];

const PROSE: [Row<Prose>; 9] = [
    ("words", |prose| prose.words.to_string()),
    ("words a sentence", |prose| share(prose.words, prose.sentences, 1.0)),
    ("sentences that begin with \"What\", per 1,000", |prose| {
        share(prose.what_sentences, prose.sentences, 1e3)
    }),
    ("\"what\" as a noun, per 10,000 words", |prose| share(prose.what_clauses, prose.words, 1e4)),
    ("\"so many / so much\"", |prose| share(prose.so_many, prose.words, 1e4)),
    ("\"those that / of\"", |prose| share(prose.those, prose.words, 1e4)),
    ("\"whoever\", \"whatever\"", |prose| share(prose.whoever, prose.words, 1e4)),
    ("\"behind\"", |prose| share(prose.behind, prose.words, 1e4)),
    ("sentences", |prose| prose.sentences.to_string()),
];

/// Both tables, and the circles of modules by name.
pub(super) fn tables(house: &House, by_crate: bool) -> String {
    let mut columns = vec![("all".to_owned(), house.sums(|_| true))];
    if by_crate {
        let crates = house.crates();
        columns.extend(
            crates.map(|name| (name.to_owned(), house.sums(|file| file.crate_name == name))),
        );
    }
    let mut code = table("code, tests left out", &columns, &CODE, |sums| &sums.code);
    let circles = house.circles();
    let mut counts = vec!["circles of modules".to_owned(), circles.len().to_string()];
    counts.extend(columns[1..].iter().map(|(name, _)| {
        circles.iter().filter(|circle| circle.crate_name == *name).count().to_string()
    }));
    code.add_row(counts);
    let prose = table("prose of comments", &columns, &PROSE, |sums| &sums.prose);
    let mut text = format!("{code}\n\n{prose}\n");
    for circle in circles {
        let _ = write!(text, "\ncircle in {}: {}", circle.crate_name, circle.modules.join(", "));
    }
    text
}

fn table<N>(
    title: &str,
    columns: &[(String, Sums)],
    rows: &[Row<N>],
    numbers: fn(&Sums) -> &N,
) -> Table {
    let mut table = Table::new();
    let titles = columns.iter().map(|(name, _)| name.as_str());
    table.load_style(ASCII_MARKDOWN).set_header([title].into_iter().chain(titles));
    for (name, number) in rows {
        let cells = columns.iter().map(|(_, sums)| number(numbers(sums)));
        table.add_row([(*name).to_owned()].into_iter().chain(cells));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn pair(left: usize, right: usize) -> String {
    format!("{left} / {right}")
}

/// `part` of `whole`, times `scale`; with more digits the smaller it is.
fn share(part: usize, whole: usize, scale: f64) -> String {
    let share = super::share(part, whole) * scale;
    let digits = if share < 0.1 { 3 } else { usize::from(share < 1.0) + 1 };
    format!("{share:.digits$}")
}

/// The numbers that these percentages of `numbers` do not exceed.
fn spread(numbers: &[usize], percentages: &[usize]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let at = |percentage: &usize| {
        let index = (sorted.len() * percentage).div_ceil(100).saturating_sub(1);
        sorted.get(index).map_or("-".to_owned(), ToString::to_string)
    };
    percentages.iter().map(at).collect::<Vec<_>>().join(" / ")
}

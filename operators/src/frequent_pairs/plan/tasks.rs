//! Tasks: parts of the triangle of pairs, each in one layout.

use std::ops::Range;

use trommel_kernels::cuda::supports::Tile;
use trommel_kernels::supports::COLUMNS;

use super::cost;
use super::form::ColumnForm;
use crate::frequent_pairs::data::pair_rows::PairRows;
use crate::frequent_pairs::data::vertical::VerticalData;
use crate::frequent_pairs::parameters::options::Layout;

/// Number of parts of each kernel's share of the work that is left. A task is at most one such
/// part, so tasks become smaller, and all kernels end at about the same time (Hummel, Schonberg,
/// Flynn, *Factoring: A Method for Scheduling Parallel Loops*, CACM 1992, with parts of two
/// rounds).
const SHARE_PARTS: f64 = 2.0;

/// Number of parts of each kernel's share of all work. A task is at least about one such part.
const TASKS_PER_KERNEL: f64 = 8.0;

/// A task: rows, and the columns that come before these rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Task {
    pub(crate) form: ColumnForm,
    pub(crate) columns: Range<u32>,
    pub(crate) rows: Range<u32>,
    /// Tiles that are left after the rows, if the task is for a device.
    pub(crate) tiles: Vec<Tile>,
    /// Modelled nanoseconds of a core.
    pub(crate) cpu_ns: f64,
}

/// The rows of tasks: items, for pairs, or pairs, for triples.
pub(crate) trait TaskRows {
    /// Number of items, the columns.
    fn columns(&self) -> u32;
    /// Number of rows.
    fn len(&self) -> u32;
    /// The first row that comes after the item `column`; all later rows come after that item, too.
    fn first_row(&self, column: u32) -> u32;
    /// The work of the rows before `row`, in any unit.
    fn work(&self, row: u32) -> u64;
    /// Modelled nanoseconds of a core.
    fn cpu_ns(&self, form: ColumnForm, columns: &Range<u32>, rows: &Range<u32>) -> f64;
}

/// The tasks for all `rows`. With several `kernels`, the tasks are divided into parts of at least
/// `task_ns_min`.
pub(crate) fn tasks(
    rows: &impl TaskRows,
    layout: Layout,
    kernels: usize,
    task_ns_min: f64,
) -> Vec<Task> {
    let items = rows.columns();
    if items < 2 {
        return Vec::new();
    }
    let (dense, form) = match layout {
        Layout::Auto => (dense_items(rows), ColumnForm::Sliced),
        Layout::Batmap => (items, ColumnForm::Batmap),
        Layout::Bitmap => (items, ColumnForm::Bitmap),
        Layout::Lists => (items, ColumnForm::Lists),
        Layout::Sliced | Layout::Tensor => (items, ColumnForm::Sliced),
        Layout::Sparse => (0, ColumnForm::Sparse),
        Layout::Triangle => (0, ColumnForm::Triangle),
    };
    // Costs are modelled, not timed, so equal runs divide their tasks alike.
    let task = |form, columns: Range<u32>| {
        let of_columns = rows.first_row(columns.start)..rows.len();
        let cpu_ns = rows.cpu_ns(form, &columns, &of_columns);
        Task { form, columns, rows: of_columns, tiles: Vec::new(), cpu_ns }
    };
    let mut tasks: Vec<Task> = blocks(dense).map(|columns| task(form, columns)).collect();
    // The last item is the first item of no pair.
    if dense + 1 < items {
        let form = if form == ColumnForm::Triangle { form } else { ColumnForm::Sparse };
        tasks.push(task(form, dense..items));
    }
    tasks.retain(|task| !task.rows.is_empty());
    if kernels == 1 {
        return tasks;
    }
    let kernels = kernels as f64;
    let mut left: f64 = tasks.iter().map(|task| task.cpu_ns).sum();
    let least = (left / (TASKS_PER_KERNEL * kernels)).max(task_ns_min);
    let mut divided = Vec::new();
    for mut task in tasks {
        loop {
            let part = task.take_part(rows, (left / (SHARE_PARTS * kernels)).max(least));
            left = (left - part.cpu_ns).max(0.0);
            divided.push(part);
            if task.rows.is_empty() {
                break;
            }
        }
    }
    divided
}

/// The blocks of columns of the first `items` items.
fn blocks(items: u32) -> impl Iterator<Item = Range<u32>> {
    let end = move |begin: u32| {
        let left = (items - begin) as usize;
        items - u32::try_from(left.saturating_sub(COLUMNS)).expect("fewer than items")
    };
    (0..items).step_by(COLUMNS).map(move |begin| begin..end(begin))
}

/// The first items whose blocks of columns cost less in the layout `sliced` than in `sparse`: the
/// number of items at which the sum of both costs is least.
fn dense_items(rows: &impl TaskRows) -> u32 {
    let items = rows.columns();
    let after = |column: u32| rows.first_row(column)..rows.len();
    let mut sliced = 0.0;
    let mut best = (rows.cpu_ns(ColumnForm::Sparse, &(0..items), &after(0)), 0);
    for columns in blocks(items) {
        let end = columns.end;
        sliced += rows.cpu_ns(ColumnForm::Sliced, &columns, &after(columns.start));
        let sparse = match end < items {
            true => rows.cpu_ns(ColumnForm::Sparse, &(end..items), &after(end)),
            false => 0.0,
        };
        if sliced + sparse < best.0 {
            best = (sliced + sparse, end);
        }
    }
    best.1
}

impl Task {
    /// Takes the first rows, with a cost of about `cpu_ns` on a core; takes all rows if few rows
    /// would be left.
    fn take_part(&mut self, rows: &impl TaskRows, cpu_ns: f64) -> Self {
        let whole = self.rows.clone();
        let mut end = whole.end;
        // Each part makes the bits of the columns again; that work is at most half of the work of
        // the part.
        let columns = rows.cpu_ns(self.form, &self.columns, &(end..end));
        let (all, part) = (self.cpu_ns - columns, columns.max(cpu_ns - columns));
        if all > 1.5 * part {
            let before = rows.work(whole.start);
            let enough = (rows.work(whole.end) - before) as f64 * part / all;
            end = first_reaching(whole.clone(), |row| (rows.work(row) - before) as f64 >= enough);
            end = end.max(whole.start + 1);
        }
        let of_rows = |own: Range<u32>| {
            let columns = self.columns.clone();
            let cpu_ns = rows.cpu_ns(self.form, &columns, &own);
            Self { rows: own, cpu_ns, columns, tiles: Vec::new(), form: self.form }
        };
        let (part, rest) = (of_rows(whole.start..end), of_rows(end..whole.end));
        *self = rest;
        part
    }
}

impl TaskRows for VerticalData {
    fn columns(&self) -> u32 {
        self.len()
    }

    fn len(&self) -> u32 {
        self.len()
    }

    fn first_row(&self, column: u32) -> u32 {
        column + 1
    }

    fn work(&self, row: u32) -> u64 {
        self.total(0..row) + u64::from(row)
    }

    fn cpu_ns(&self, form: ColumnForm, columns: &Range<u32>, rows: &Range<u32>) -> f64 {
        match form {
            ColumnForm::Sliced => cost::sliced(self, columns, rows),
            ColumnForm::Batmap | ColumnForm::Bitmap | ColumnForm::Lists => {
                cost::bitmap(self, columns, rows)
            }
            ColumnForm::Sparse | ColumnForm::Triangle => cost::sparse(self, columns.start, rows),
        }
    }
}

impl TaskRows for PairRows {
    fn columns(&self) -> u32 {
        self.data().len()
    }

    fn len(&self) -> u32 {
        self.len()
    }

    fn first_row(&self, column: u32) -> u32 {
        self.first_pair(column + 1)
    }

    fn work(&self, row: u32) -> u64 {
        self.totals(row)[0] + u64::from(row)
    }

    fn cpu_ns(&self, form: ColumnForm, columns: &Range<u32>, rows: &Range<u32>) -> f64 {
        match form {
            ColumnForm::Sparse | ColumnForm::Triangle => {
                cost::sparse_triples(self, columns.start, rows)
            }
            _ => cost::sliced_triples(self, columns, rows),
        }
    }
}

/// The first row of `rows` for which `reaches` is true, or the end. `reaches` is true for all later
/// rows, too.
fn first_reaching(rows: Range<u32>, reaches: impl Fn(u32) -> bool) -> u32 {
    let Range { start: mut low, end: mut high } = rows;
    while low < high {
        let middle = low + (high - low) / 2;
        if reaches(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Items whose rows all take one unit of work, after `columns` units for each block of
    /// columns in the layout `sliced`.
    struct Even {
        items: u32,
        columns: u64,
    }

    impl TaskRows for Even {
        fn columns(&self) -> u32 {
            self.items
        }

        fn len(&self) -> u32 {
            self.items
        }

        fn first_row(&self, column: u32) -> u32 {
            column + 1
        }

        fn work(&self, row: u32) -> u64 {
            u64::from(row)
        }

        fn cpu_ns(&self, form: ColumnForm, _: &Range<u32>, rows: &Range<u32>) -> f64 {
            let columns = if form == ColumnForm::Sliced { self.columns } else { 0 };
            columns as f64 + rows.len() as f64
        }
    }

    proptest! {
        #[test]
        fn tasks_have_all_rows_once(
            items in 2..6_000_u32,
            columns in 0..4_000_u64,
            kernels in 1..20_usize,
            sliced: bool,
        ) {
            let rows = Even { items, columns };
            let layout = if sliced { Layout::Sliced } else { Layout::Sparse };
            let alone = tasks(&rows, layout, 1, 0.0);
            let divided = tasks(&rows, layout, kernels, 0.0);
            let mut parts = divided.iter();
            for whole in &alone {
                let mut begin = whole.rows.start;
                while begin < whole.rows.end {
                    let part = parts.next().unwrap();
                    prop_assert_eq!((&part.columns, part.form), (&whole.columns, whole.form));
                    prop_assert_eq!(part.rows.start, begin);
                    prop_assert!(part.rows.end > begin);
                    begin = part.rows.end;
                }
                prop_assert_eq!(begin, whole.rows.end);
            }
            prop_assert_eq!(parts.next(), None);
            let [before, after] = [&alone, &divided]
                .map(|tasks| tasks.iter().map(|task| task.cpu_ns).sum::<f64>());
            prop_assert!(after <= 2.0 * before, "{after} in place of {before}");
        }
    }

    #[test]
    fn tasks_are_small_at_the_end() {
        let rows = Even { items: 1_001, columns: 0 };
        let lens = |kernels| -> Vec<usize> {
            let tasks = tasks(&rows, Layout::Sparse, kernels, 0.0);
            tasks.iter().map(|task| task.rows.len()).collect()
        };
        assert_eq!(lens(1), [1_000]);
        assert_eq!(lens(2), [250, 188, 141, 106, 79, 63, 63, 63, 47]);
    }
}

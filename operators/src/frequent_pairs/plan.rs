//! Tasks: parts of the triangle of pairs, each in one layout.

use std::ops::Range;

use trommel_kernels::cuda::supports::Tile;
use trommel_kernels::supports::COLUMNS;

use super::cost;
use super::form::Form;
use super::options::Layout;
use super::pair_rows::PairRows;
use super::vertical::VerticalData;

/// Tasks for each kernel, so that all of them end at about the same time.
const TASKS_PER_KERNEL: u64 = 8;

/// Maximum number of parts of a task: each of them makes the bits of its columns again.
const PARTS_MAX: u64 = 64;

/// Rows and the columns before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) form: Form,
    pub(super) columns: Range<u32>,
    pub(super) rows: Range<u32>,
    /// Tiles that are left after the rows, of a task for a device.
    pub(super) tiles: Vec<Tile>,
    /// Of a CPU, in hundredths of a nanosecond.
    pub(super) cost: u64,
}

/// The rows of tasks: items, for pairs, or pairs, for triples.
pub(super) trait TaskRows {
    /// Number of items, the columns.
    fn columns(&self) -> u32;
    /// Number of rows.
    fn len(&self) -> u32;
    /// The first row that has the item `column` before it; all rows after it have, too.
    fn first_row(&self, column: u32) -> u32;
    /// The work of the rows before `row`, in any unit.
    fn work(&self, row: u32) -> u64;
    /// Modelled cost, in hundredths of a nanosecond.
    fn cost(&self, form: Form, columns: &Range<u32>, rows: &Range<u32>) -> u64;
}

/// The tasks for all `rows`. With several `kernels`, they are divided into parts of at least
/// `task_ns_min`.
pub(super) fn tasks(
    rows: &impl TaskRows,
    layout: Layout,
    kernels: usize,
    task_ns_min: u64,
) -> Vec<Task> {
    let items = rows.columns();
    if items < 2 {
        return Vec::new();
    }
    let (dense, form) = match layout {
        Layout::Auto => (dense_items(rows), Form::Sliced),
        Layout::Batmap => (items, Form::Batmap),
        Layout::Bitmap => (items, Form::Bitmap),
        Layout::Lists => (items, Form::Lists),
        Layout::Sliced | Layout::Tensor => (items, Form::Sliced),
        Layout::Sparse => (0, Form::Sparse),
        Layout::Triangle => (0, Form::Triangle),
    };
    // Modelled, not timed: equal runs divide their tasks alike.
    let task = |form, columns: Range<u32>| {
        let of_columns = rows.first_row(columns.start)..rows.len();
        let cost = rows.cost(form, &columns, &of_columns);
        Task { form, columns, rows: of_columns, tiles: Vec::new(), cost }
    };
    let mut tasks: Vec<Task> = blocks(dense).map(|columns| task(form, columns)).collect();
    if dense + 1 < items {
        let form = if form == Form::Triangle { form } else { Form::Sparse };
        tasks.push(task(form, dense..items));
    }
    tasks.retain(|task| !task.rows.is_empty());
    let total: u64 = tasks.iter().map(|task| task.cost).sum();
    let share = if kernels > 1 {
        (total / (TASKS_PER_KERNEL * kernels as u64)).max(100 * task_ns_min)
    } else {
        u64::MAX
    };
    tasks.into_iter().flat_map(|task| task.divided(rows, share)).collect()
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
/// number of items for which both together cost least.
fn dense_items(rows: &impl TaskRows) -> u32 {
    let items = rows.columns();
    let after = |column: u32| rows.first_row(column)..rows.len();
    let mut sliced = 0;
    let mut best = (rows.cost(Form::Sparse, &(0..items), &after(0)), 0);
    for columns in blocks(items) {
        let end = columns.end;
        sliced += rows.cost(Form::Sliced, &columns, &after(columns.start));
        let sparse = match end < items {
            true => rows.cost(Form::Sparse, &(end..items), &after(end)),
            false => 0,
        };
        best = best.min((sliced + sparse, end));
    }
    best.1
}

impl Task {
    /// The task in parts of about the cost `share`, by rows.
    fn divided(self, rows: &impl TaskRows, share: u64) -> impl Iterator<Item = Self> {
        let parts = (self.cost / share).clamp(1, PARTS_MAX);
        let first = rows.work(self.rows.start);
        let total = rows.work(self.rows.end) - first;
        let mut begin = self.rows.start;
        (1..=parts).map_while(move |part| {
            let rest = begin..self.rows.end;
            let enough = first + total * part / parts;
            let end = first_reaching(rest.clone(), |row| rows.work(row) >= enough);
            let own = begin..end.max(begin + 1).min(rest.end);
            begin = own.end;
            (!own.is_empty()).then(|| {
                let cost = rows.cost(self.form, &self.columns, &own);
                let columns = self.columns.clone();
                Self { rows: own, cost, columns, tiles: Vec::new(), form: self.form }
            })
        })
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

    fn cost(&self, form: Form, columns: &Range<u32>, rows: &Range<u32>) -> u64 {
        match form {
            Form::Sliced => cost::sliced(self, columns, rows),
            Form::Batmap | Form::Bitmap | Form::Lists => cost::bitmap(self, columns, rows),
            Form::Sparse | Form::Triangle => cost::sparse(self, columns.start, rows),
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

    fn cost(&self, form: Form, columns: &Range<u32>, rows: &Range<u32>) -> u64 {
        match form {
            Form::Sparse | Form::Triangle => cost::sparse_triples(self, columns.start, rows),
            _ => cost::sliced_triples(self, columns, rows),
        }
    }
}

/// The first row of `rows` for which `reaches` is true, or the end; it is true from some row on.
fn first_reaching(rows: Range<u32>, reaches: impl Fn(u32) -> bool) -> u32 {
    let Range { start: mut low, end: mut high } = rows;
    while low < high {
        let middle = low + (high - low) / 2;
        if reaches(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

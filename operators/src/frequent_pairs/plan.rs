//! Tasks: parts of the triangle of pairs, each in one layout.

use std::ops::Range;

use trommel_kernels::cuda::supports::Tile;
use trommel_kernels::supports::COLUMNS;

use super::cost;
use super::options::Layout;
use super::vertical::VerticalData;

/// Tasks for each kernel, so that all of them end at about the same time.
const TASKS_PER_KERNEL: u64 = 8;

/// Maximum number of parts of a task: each of them makes the bits of its columns again.
const PARTS_MAX: u64 = 64;

/// Form of the data of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Batmap,
    Bitmap,
    Lists,
    Sliced,
    Sparse,
    Triangle,
}

/// Pairs of rows and the columns before them.
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

/// The tasks for all pairs of `data`. With several `kernels`, they are divided into parts of at
/// least `task_ns_min`.
pub(super) fn tasks(
    data: &VerticalData,
    layout: Layout,
    kernels: usize,
    task_ns_min: u64,
) -> Vec<Task> {
    if data.len() < 2 {
        return Vec::new();
    }
    let (dense, form) = match layout {
        Layout::Auto => (dense_items(data), Form::Sliced),
        Layout::Batmap => (data.len(), Form::Batmap),
        Layout::Bitmap => (data.len(), Form::Bitmap),
        Layout::Lists => (data.len(), Form::Lists),
        Layout::Sliced | Layout::Tensor => (data.len(), Form::Sliced),
        Layout::Sparse => (0, Form::Sparse),
        Layout::Triangle => (0, Form::Triangle),
    };
    let mut tasks = Vec::new();
    for columns in blocks(dense) {
        // The first row that has a column of the block before it, and all after it.
        let rows = columns.start + 1..data.len();
        tasks.push(Task { form, columns, rows, tiles: Vec::new(), cost: 0 });
    }
    if dense + 1 < data.len() {
        let form = if form == Form::Triangle { form } else { Form::Sparse };
        let (columns, rows) = (dense..data.len(), dense + 1..data.len());
        tasks.push(Task { form, columns, rows, tiles: Vec::new(), cost: 0 });
    }
    // Modelled, not timed: equal runs divide and place their tasks alike.
    tasks.iter_mut().for_each(|task| task.cost = task.modelled(data));
    let total: u64 = tasks.iter().map(|task| task.cost).sum();
    let share = if kernels > 1 {
        (total / (TASKS_PER_KERNEL * kernels as u64)).max(100 * task_ns_min)
    } else {
        u64::MAX
    };
    tasks.into_iter().flat_map(|task| task.divided(data, share)).collect()
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
fn dense_items(data: &VerticalData) -> u32 {
    let rows = |begin: u32| begin + 1..data.len();
    let mut sliced = 0;
    let mut best = (cost::sparse(data, 0, &rows(0)), 0);
    for columns in blocks(data.len()) {
        let end = columns.end;
        sliced += cost::sliced(data, &columns, &rows(columns.start));
        let both = sliced + if end < data.len() { cost::sparse(data, end, &rows(end)) } else { 0 };
        best = best.min((both, end));
    }
    best.1
}

impl Task {
    fn modelled(&self, data: &VerticalData) -> u64 {
        let Self { columns, rows, .. } = self;
        match self.form {
            Form::Sliced => cost::sliced(data, columns, rows),
            Form::Batmap | Form::Bitmap | Form::Lists => cost::bitmap(data, columns, rows),
            Form::Sparse | Form::Triangle => cost::sparse(data, columns.start, rows),
        }
    }

    /// The task in parts of about the cost `share`, by rows.
    fn divided(self, data: &VerticalData, share: u64) -> impl Iterator<Item = Self> {
        let parts = (self.cost / share).clamp(1, PARTS_MAX);
        // The work of rows is that of their transactions.
        let first = self.rows.start;
        let work = move |row: u32| data.total(first..row) + u64::from(row - first);
        let total = work(self.rows.end);
        let mut begin = first;
        (1..=parts).map_while(move |part| {
            let rest = begin..self.rows.end;
            let end = first_reaching(rest.clone(), |row| work(row) >= total * part / parts);
            let rows = begin..end.max(begin + 1).min(rest.end);
            begin = rows.end;
            let task = Self { rows, columns: self.columns.clone(), tiles: Vec::new(), ..self };
            (!task.rows.is_empty()).then(|| Self { cost: task.modelled(data), ..task })
        })
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

//! Tasks of tiles, for a device. A CPU can answer them, too, when the device is lost.

use std::cmp::Reverse;
use std::ops::Range;

use trommel_kernels::cuda::supports::Tile;
use trommel_kernels::supports::COLUMNS;

use super::cost;
use super::device_form::DeviceForm;
use super::tasks::Task;
use crate::frequent_pairs::data::vertical::VerticalData;
use crate::frequent_pairs::parameters::tuning::Tuning;
use crate::wave::whole;

/// Modelled nanoseconds of a task on a device. Several tasks are in flight while collect makes rows
/// of the pairs of earlier tasks.
const TASK_NS: f64 = 2e6;

/// Tiles that keep all multiprocessors of a large device busy.
const TILES_MIN: usize = 512;

/// The tasks of all tiles of `data` on a device. On a CPU, these tasks cost together as much as the
/// tasks `on_cpu`.
pub(crate) fn tile_tasks(
    data: &VerticalData,
    form: DeviceForm,
    on_cpu: &[Task],
    tuning: Tuning,
) -> impl Iterator<Item = Task> + Send + use<> {
    let cpu_ns: f64 = on_cpu.iter().map(|task| task.cpu_ns).sum();
    let all = form.tile_count(data.len()).max(1) as f64;
    let in_time = whole(all * TASK_NS / cost::on_device(data, form));
    let len = in_time.max(TILES_MIN).min(tuning.task_tiles);
    let mut left = form.tiles(data.len());
    std::iter::from_fn(move || {
        let tiles: Vec<Tile> = left.by_ref().take(len).collect();
        let cpu_ns = cpu_ns * tiles.len() as f64 / all;
        let task = Task { form: form.on_cpu(), columns: 0..0, rows: 0..0, cpu_ns, tiles };
        (!task.tiles.is_empty()).then_some(task)
    })
}

impl Task {
    /// Whether the task is for a device.
    pub(crate) fn is_for_device(&self) -> bool {
        !self.tiles.is_empty()
    }

    /// Whether the task has neither rows nor tiles left.
    pub(crate) fn is_done(&self) -> bool {
        self.rows.is_empty() && self.tiles.is_empty()
    }

    /// Moves some tiles of the task to the columns and rows of the task, if the rows are done;
    /// returns whether there are rows. The data has `items` items.
    pub(crate) fn has_rows(&mut self, items: u32) -> bool {
        if !self.rows.is_empty() || self.tiles.is_empty() {
            return !self.rows.is_empty();
        }
        // Both methods sort in reverse order, so the first tile is at the end of the vector.
        let [columns, rows] = DeviceForm::of_task(self.form).tile();
        let Some((left, right)) = (match rows {
            1 => self.take_strips(),
            _ => self.take_tiles(u32::try_from(COLUMNS).expect("512") / columns),
        }) else {
            return false;
        };
        let item = |tile: u32, side: u32| tile.saturating_mul(side).min(items);
        self.columns = item(left.start, columns)..item(left.end, columns);
        self.rows = item(right.start, rows)..item(right.end, rows);
        true
    }

    /// Takes tiles of the same rows whose columns are in one block of `in_block` tiles. The blocks
    /// follow one after the other, so the columns of a block are made once. Returns the range of
    /// tiles of the columns and the range of tiles of the rows.
    fn take_tiles(&mut self, in_block: u32) -> Option<(Range<u32>, Range<u32>)> {
        let key = |tile: &Tile| Reverse((tile.left / in_block, tile.right, tile.left));
        self.tiles.sort_unstable_by_key(key);
        let Tile { left: first, right } = self.tiles.pop()?;
        let mut last = first;
        let goes_on = |last: u32| {
            move |tile: &mut Tile| {
                let is_next = (tile.left, tile.right) == (last + 1, right);
                is_next && tile.left / in_block == first / in_block
            }
        };
        while let Some(tile) = self.tiles.pop_if(goes_on(last)) {
            last = tile.left;
        }
        // A row has only the columns before that row, so on the diagonal the columns can extend to
        // the end of the block: the next tasks then find the same columns.
        let end = if last == right { (first / in_block + 1) * in_block } else { last + 1 };
        Some((first..end, right..right + 1))
    }

    /// Takes tiles of one row each: the tiles have the same columns, and their rows follow each
    /// other.
    fn take_strips(&mut self) -> Option<(Range<u32>, Range<u32>)> {
        self.tiles.sort_unstable_by_key(|tile| Reverse((tile.left, tile.right)));
        let Tile { left, right: first } = self.tiles.pop()?;
        let mut end = first + 1;
        while self.tiles.pop_if(|tile| (tile.left, tile.right) == (left, end)).is_some() {
            end += 1;
        }
        Some((left..left + 1, first..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of the rows of a task with the columns before them, of `items` items.
    fn pairs(tiles: Vec<Tile>, form: DeviceForm, items: u32) -> Vec<(u32, u32)> {
        let mut task = Task { form: form.on_cpu(), columns: 0..0, rows: 0..0, cpu_ns: 0.0, tiles };
        let mut pairs = Vec::new();
        while task.has_rows(items) {
            assert!(form == DeviceForm::Sparse || task.columns.len() <= COLUMNS);
            assert!(!task.rows.is_empty());
            for row in std::mem::take(&mut task.rows) {
                let columns = task.columns.start..task.columns.end.min(row);
                pairs.extend(columns.map(|column| (column, row)));
            }
        }
        assert!(task.is_done());
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn a_cpu_counts_each_pair_of_the_tiles_once() {
        for form in [DeviceForm::Tensor, DeviceForm::Batmap, DeviceForm::Sparse] {
            let [_, rows] = form.tile();
            for items in [1, 2, 63, 64, 65, 127, 128, 129, 513, 1200] {
                let expected: Vec<(u32, u32)> =
                    (0..items).flat_map(|left| (left + 1..items).map(move |r| (left, r))).collect();
                assert_eq!(pairs(form.tiles(items).collect(), form, items), expected);
            }
            // Some tiles, in any order.
            let items = 6 * rows.max(40) - 3;
            let mut some: Vec<Tile> = form.tiles(items).step_by(3).collect();
            some.reverse();
            let [width, height] = form.tile();
            let mut expected: Vec<(u32, u32)> = Vec::new();
            for Tile { left, right } in some.clone() {
                for row in right * height..((right + 1) * height).min(items) {
                    let columns = left * width..((left + 1) * width).min(row);
                    expected.extend(columns.map(|column| (column, row)));
                }
            }
            expected.sort_unstable();
            assert_eq!(pairs(some, form, items), expected);
        }
    }

    #[test]
    fn strips_of_several_blocks_of_columns_are_counted_once() {
        let items = 12_003;
        let last = |tile: &Tile| tile.right > 11_998;
        let strips: Vec<Tile> = DeviceForm::Sparse.tiles(items).filter(last).collect();
        let expected: usize = (11_999..items).map(|row| row as usize).sum();
        assert_eq!(pairs(strips, DeviceForm::Sparse, items).len(), expected);
    }
}

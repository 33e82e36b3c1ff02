//! Tasks of tiles, for a device. A CPU can answer them, too, when the device is lost.

use std::cmp::Reverse;

use trommel_kernels::cuda::supports::{MAP_TILE, TILE, Tile, tiles};
use trommel_kernels::supports::COLUMNS;

use super::cost;
use super::device_form::DeviceForm;
use super::plan::{Form, Task};
use super::tuning::Tuning;
use super::vertical::VerticalData;

/// Modelled time of a task on a device, in hundredths of a nanosecond: 2 ms. Several are in flight
/// while rows are made of the pairs of others.
const TASK_COST: u128 = 200_000_000;

/// Tiles that keep all multiprocessors of a large device busy.
const TILES_MIN: u128 = 512;

impl Form {
    /// Items of a side of a tile.
    fn side(self) -> u32 {
        if self == Self::Batmap { MAP_TILE } else { TILE }
    }
}

/// Form in which a CPU answers tasks for a device.
fn form_on_cpu(form: DeviceForm) -> Form {
    match form {
        DeviceForm::Batmap => Form::Batmap,
        DeviceForm::Bitmap => Form::Bitmap,
        DeviceForm::Tensor => Form::Sliced,
    }
}

/// The tasks of all tiles of `data` on a device. On a CPU, their costs are those of the tasks
/// `on_cpu`.
pub(super) fn tile_tasks(
    data: &VerticalData,
    form: DeviceForm,
    on_cpu: &[Task],
    tuning: Tuning,
) -> impl Iterator<Item = Task> + Send + use<> {
    let cpu_cost: u64 = on_cpu.iter().map(|task| task.cost).sum();
    let sides = u64::from(data.len().div_ceil(form.side()));
    let all = (sides * (sides + 1) / 2).max(1);
    let in_time = u128::from(all) * TASK_COST / u128::from(cost::on_device(data, form).max(1));
    let len = usize::try_from(in_time.max(TILES_MIN)).unwrap_or(usize::MAX).min(tuning.task_tiles);
    let form_on_cpu = form_on_cpu(form);
    let mut left = tiles(data.len(), form.side());
    std::iter::from_fn(move || {
        let tiles: Vec<Tile> = left.by_ref().take(len).collect();
        let share = u128::from(cpu_cost) * tiles.len() as u128 / u128::from(all);
        let cost = u64::try_from(share).unwrap_or(u64::MAX);
        let task = Task { form: form_on_cpu, columns: 0..0, rows: 0..0, cost, tiles };
        (!task.tiles.is_empty()).then_some(task)
    })
}

impl Task {
    /// Whether it is for a device.
    pub(super) fn is_for_device(&self) -> bool {
        !self.tiles.is_empty()
    }

    /// Whether nothing of it is left.
    pub(super) fn is_done(&self) -> bool {
        self.rows.is_empty() && self.tiles.is_empty()
    }

    /// Moves some tiles of the task to its columns and rows, if these are done; returns whether
    /// there are rows. `items` are those of the data.
    pub(super) fn has_rows(&mut self, items: u32) -> bool {
        if !self.rows.is_empty() {
            return true;
        }
        let side = self.form.side();
        // Tiles of the same rows whose columns are one block, the blocks one after the other: the
        // columns of a block are made once. The first tiles are at the end.
        let in_block = u32::try_from(COLUMNS).expect("512") / side;
        let key = |tile: &Tile| Reverse((tile.left / in_block, tile.right, tile.left));
        self.tiles.sort_unstable_by_key(key);
        let Some(Tile { left: first, right }) = self.tiles.pop() else { return false };
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
        // A row has only the columns before it: on the diagonal, the block may be whole.
        let end = if last == right { (first / in_block + 1) * in_block } else { last + 1 };
        let item = |tile: u32| tile.saturating_mul(side).min(items);
        self.columns = item(first)..item(end);
        self.rows = item(right)..item(right + 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of the rows of a task with the columns before them, of `items` items.
    fn pairs(tiles: Vec<Tile>, form: Form, items: u32) -> Vec<(u32, u32)> {
        let mut task = Task { form, columns: 0..0, rows: 0..0, cost: 0, tiles };
        let mut pairs = Vec::new();
        while task.has_rows(items) {
            assert!(task.columns.len() <= COLUMNS && !task.rows.is_empty());
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
        for form in [Form::Sliced, Form::Batmap] {
            let side = form.side();
            for items in [1, 2, side - 1, side, side + 1, 513, 1200] {
                let expected: Vec<(u32, u32)> =
                    (0..items).flat_map(|left| (left + 1..items).map(move |r| (left, r))).collect();
                assert_eq!(pairs(tiles(items, side).collect(), form, items), expected);
            }
            // Some tiles, in any order.
            let tile = |left, right| Tile { left, right };
            let some = vec![tile(2, 5), tile(0, 5), tile(5, 5), tile(3, 5), tile(1, 1)];
            let items = 6 * side - 3;
            let mut expected: Vec<(u32, u32)> = Vec::new();
            for Tile { left, right } in some.clone() {
                for row in right * side..((right + 1) * side).min(items) {
                    let columns = left * side..((left + 1) * side).min(row);
                    expected.extend(columns.map(|column| (column, row)));
                }
            }
            expected.sort_unstable();
            assert_eq!(pairs(some, form, items), expected);
        }
    }
}

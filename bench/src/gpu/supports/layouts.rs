//! Layouts other than rows of bits: batmaps, which the processor makes, and transactions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trommel_kernels::batmap::{BatMaps, Permutations};
use trommel_kernels::cuda::supports::{
    BLOCKS_MAX, DeviceMaps, MAP_TILE, MapJob, MapPairs, PairLimits, RowJob, RowPairLimits,
    RowPairs, SparseRows, Strip, Tile, strip_width, strips, tiles,
};
use trommel_kernels::cuda::{DeviceError, Kernels, Lane, Memory, Primitive, Slot};
use trommel_kernels::supports::Pair;

use super::matrix::{Answer, Matrix, Workload};
use crate::runner::turns::{Run, Turns};
use crate::runner::{Runs, isa};

/// The time of a kernel, and a sentence about it.
pub(super) struct Measured {
    pub(super) kernel: Duration,
    pub(super) about: String,
}

/// The median time of the kernel of a job, whose slot comes back.
pub(super) fn kernel<P: Primitive>(
    runs: Runs,
    slot: &mut Option<Slot<P>>,
    mut round: impl FnMut(Slot<P>) -> Result<Slot<P>, DeviceError>,
) -> Duration {
    let mut turns = Turns::<()>::new(runs);
    turns.add("kernel", || {
        let landed = round(slot.take().expect("the round before has given it back"));
        let landed = slot.insert(landed.expect("the device works"));
        Run { time: landed.times().kernel, answer: (), rest: () }
    });
    turns.run()[0].median()
}

/// Measures batmaps, which the processor makes and which lie on the device.
pub(super) fn by_batmaps(
    memory: &Arc<Memory>,
    workload: &Workload,
    runs: Runs,
) -> Result<Measured, DeviceError> {
    let Matrix { items, transactions, least, .. } = workload.matrix;
    let begin = Instant::now();
    let permutations = Permutations::new(transactions, 0x5EED);
    let maps = Arc::new(BatMaps::new(isa(), permutations, workload.lists()));
    let made = begin.elapsed();
    let begin = Instant::now();
    let on_device = DeviceMaps::upload(memory, &maps)?;
    let sent = begin.elapsed();
    let tiles: Vec<Tile> = tiles(items, MAP_TILE).collect();
    let kernels = Kernels::load(memory.device())?;
    let lane = Arc::new(Lane::new(memory.device())?);
    let pairs = usize::try_from(workload.answer.pairs).expect("they fit the memory");
    // Pairs that failed insertions could complete need room, too.
    let limits = PairLimits { tiles: tiles.len(), pairs: 2 * pairs + (1 << 20) };
    let mut slot = Some(Slot::<MapPairs>::new(memory, limits)?);
    let job = MapJob { tiles: &tiles, maps: &on_device, least, blocks_max: BLOCKS_MAX };
    let kernel = kernel(runs, &mut slot, |slot| slot.submit(&lane, &kernels, &job)?.collect());
    let slot = slot.expect("the last round has given it back");
    let found: Vec<Pair> = slot.pairs().collect();
    let mut answer = Answer::default();
    answer.add(&found);
    assert!(slot.unfinished().is_empty(), "there is room for all pairs");
    assert_eq!(answer, workload.answer, "wrong pairs by batmaps");
    let about = format!(
        "batmaps: kernel {:.3} ms, {:.1} TB/s of maps; {:.0} MB, made in {made:.2?} on one core, \
         sent in {sent:.2?}",
        1e3 * kernel.as_secs_f64(),
        compared_bytes(&maps, &tiles) / kernel.as_secs_f64() / 1e12,
        megabytes(maps.bytes())
    );
    Ok(Measured { kernel, about })
}

/// Bytes of maps that the pairs of all tiles compare: both maps in the widest range of the tile.
fn compared_bytes(maps: &BatMaps<2>, tiles: &[Tile]) -> f64 {
    let items = u32::try_from(maps.len()).expect("items are numbered by 32 bits");
    let widest: Vec<usize> = (0..items)
        .step_by(MAP_TILE as usize)
        .map(|begin| {
            let end = items.min(begin + MAP_TILE);
            (begin..end).map(|map| maps.range(map)).max().unwrap_or(0)
        })
        .collect();
    let of = |tile: &Tile| widest[tile.left as usize].max(widest[tile.right as usize]);
    let ranges: usize = tiles.iter().map(of).sum();
    6e6 * f64::from(MAP_TILE * MAP_TILE) * megabytes(ranges)
}

/// Measures counters over transactions, which lie on the device.
pub(super) fn by_counters(
    memory: &Arc<Memory>,
    workload: &Workload,
    runs: Runs,
) -> Result<Measured, DeviceError> {
    let Matrix { items, transactions, least, .. } = workload.matrix;
    let begin = Instant::now();
    let rows = SparseRows::upload(memory, workload.lists(), transactions)?;
    let sent = begin.elapsed();
    let width = strip_width(memory.device().properties()).min(items.max(1));
    let strips: Vec<Strip> = strips(items, width).collect();
    let pairs = usize::try_from(workload.answer.pairs).expect("they fit the memory");
    let limits = RowPairLimits { strips: strips.len(), width, pairs: pairs.max(width as usize) };
    let mut slot = Some(Slot::<RowPairs>::new(memory, limits)?);
    let kernels = Kernels::load(memory.device())?;
    let lane = Arc::new(Lane::new(memory.device())?);
    let job = RowJob { strips: &strips, rows: &rows, least };
    let kernel = kernel(runs, &mut slot, |slot| slot.submit(&lane, &kernels, &job)?.collect());
    let slot = slot.expect("the last round has given it back");
    let mut answer = Answer::default();
    answer.add(slot.pairs());
    assert!(slot.unfinished().is_empty(), "there is room for all pairs");
    assert_eq!(answer, workload.answer, "wrong pairs by counters");
    let about = format!(
        "counters: kernel {:.3} ms, {:.2} T additions/s; transactions cut and sent in {sent:.2?}",
        1e3 * kernel.as_secs_f64(),
        workload.additions() / kernel.as_secs_f64() / 1e12
    );
    Ok(Measured { kernel, about })
}

fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

//! Blocks of vectors in the memory of a device.
//!
//! A block is sent when a job first needs it, and stays until its store is wanted for another one
//! and no job in flight uses it. With a store more than a job needs, the next block is sent while
//! the device works.

use std::ops::Range;
use std::sync::Arc;

use trommel_kernels::cuda::vectors::{DeviceVectors, VectorJoin, VectorLimits};
use trommel_kernels::cuda::{Device, DeviceError, Kernels, Memory};

use super::built::Sides;
use super::job::DeviceJob;
use super::join::rows_of;

/// Rows in a store: of the left side, then of the right one.
pub(super) type StoredRows = [Range<usize>; 2];

/// The stores that a job needs, the left one first.
pub(super) fn stores_of(job: &DeviceJob) -> Vec<StoredRows> {
    let [left, right] = job.rows.clone();
    if job.is_within() {
        return vec![[left, 0..0]];
    }
    if job.is_across() {
        return vec![[left, right]];
    }
    // Both sides of one input are in stores of the same kind.
    let right = if job.sides.right.is_none() { [right, 0..0] } else { [0..0, right] };
    vec![[left, 0..0], right]
}

/// A block of vectors on the device.
#[derive(Debug)]
struct Store {
    rows: StoredRows,
    vectors: Arc<DeviceVectors>,
}

impl Store {
    /// Whether no job uses it.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.vectors) == 1
    }
}

/// The stores of a device, the one that was used last at the end.
#[derive(Debug)]
pub(super) struct Stores {
    memory: Arc<Memory>,
    limits: VectorLimits,
    most: usize,
    epsilon: f64,
    stores: Vec<Store>,
}

impl Stores {
    /// Up to `most` stores, which are made when they are needed.
    pub(super) fn new(device: &Device, limits: VectorLimits, most: usize, epsilon: f64) -> Self {
        let memory = Memory::new(device, limits.bytes().saturating_mul(most), 0);
        Self { memory, limits, most, epsilon, stores: Vec::new() }
    }

    /// Whether there is a store for each of `wanted` that is not there, beside those in use.
    pub(super) fn have_room(&self, wanted: &[StoredRows]) -> bool {
        let is_wanted = |store: &&Store| wanted.contains(&store.rows);
        let missing = wanted.len() - self.stores.iter().filter(is_wanted).count();
        let idle = self.stores.iter().filter(|store| store.is_idle() && !is_wanted(store)).count();
        missing <= idle + self.most - self.stores.len()
    }

    /// The vectors of `wanted`, for which there is [room](Self::have_room), and the bytes that
    /// were sent.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn hold(
        &mut self,
        kernels: &Kernels<VectorJoin>,
        sides: &Sides,
        wanted: &[StoredRows],
    ) -> Result<(Vec<Arc<DeviceVectors>>, u64), DeviceError> {
        // Held before any is sent, so that none of them gives way to another one.
        let mut held: Vec<_> = wanted.iter().map(|rows| self.find(rows)).collect();
        let mut sent = 0;
        for (held, rows) in held.iter_mut().zip(wanted) {
            if held.is_none() {
                let parts = values(sides, rows);
                sent += parts.iter().map(|part| size_of_val(*part) as u64).sum::<u64>();
                *held = Some(self.send(kernels, rows, &parts)?);
            }
        }
        Ok((held.into_iter().flatten().collect(), sent))
    }

    fn find(&mut self, rows: &StoredRows) -> Option<Arc<DeviceVectors>> {
        let place = self.stores.iter().position(|store| store.rows == *rows)?;
        self.stores[place..].rotate_left(1);
        self.stores.last().map(|store| Arc::clone(&store.vectors))
    }

    /// Sends vectors into a new store, or into the one whose use is the longest ago.
    fn send(
        &mut self,
        kernels: &Kernels<VectorJoin>,
        rows: &StoredRows,
        parts: &[&[f32]; 2],
    ) -> Result<Arc<DeviceVectors>, DeviceError> {
        // The first is the one that was not used for longest.
        let idle = self.stores.iter().position(Store::is_idle);
        let mut vectors = match idle.filter(|_| self.stores.len() == self.most) {
            Some(place) => self.stores.remove(place).vectors,
            None => Arc::new(DeviceVectors::with_room(&self.memory, self.limits)?),
        };
        let own = Arc::get_mut(&mut vectors).expect("no job uses an idle store");
        own.load_parts(kernels, parts, 0, self.epsilon)?;
        self.stores.push(Store { rows: rows.clone(), vectors: Arc::clone(&vectors) });
        Ok(vectors)
    }
}

/// The coordinates of both parts of a store.
fn values<'a>(sides: &'a Sides, [left, right]: &StoredRows) -> [&'a [f32]; 2] {
    let right = rows_of(sides.right(), right.clone()).values();
    [rows_of(&sides.left, left.clone()).values(), right]
}

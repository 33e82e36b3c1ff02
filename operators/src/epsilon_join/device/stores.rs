//! Blocks of vectors in the memory of a device.
//!
//! A block is sent when a job first needs it, and stays until another block needs the store and no
//! job in flight uses the block. If there is one store more than a job needs, the next block is
//! sent while the device works.

use std::ops::Range;
use std::sync::Arc;

use trommel_kernels::cuda::vectors::{DeviceVectors, VectorJoin, VectorLimits};
use trommel_kernels::cuda::{Device, DeviceError, Kernels, Memory};

use crate::epsilon_join::answer::join::rows_of;
use crate::epsilon_join::data::built::Sides;
use crate::epsilon_join::plan::job::DeviceJob;
use crate::wave::{Resident, Wanted};

/// Rows in a store: rows of the left side, then rows of the right side.
pub(crate) type StoredRows = [Range<usize>; 2];

/// The stores that a job needs, the left store first.
pub(crate) fn stores_of(job: &DeviceJob) -> Vec<StoredRows> {
    let [left, right] = job.rows.clone();
    if job.is_within() {
        return vec![[left, 0..0]];
    }
    if job.is_across() {
        return vec![[left, right]];
    }
    // If there is one input, both stores have rows of the left side, so that a store can serve as
    // either side.
    let right = if job.sides.right.is_none() { [right, 0..0] } else { [0..0, right] };
    vec![[left, 0..0], right]
}

/// The stores of a device.
#[derive(Debug)]
pub(crate) struct Stores {
    memory: Arc<Memory>,
    limits: VectorLimits,
    epsilon: f64,
    /// The stores by their rows; a store counts as 1 byte.
    stores: Resident<StoredRows, DeviceVectors>,
}

impl Stores {
    /// Up to `most` stores. A store is made when it is first needed.
    pub(crate) fn new(device: &Device, limits: VectorLimits, most: usize, epsilon: f64) -> Self {
        let memory = Memory::new(device, limits.bytes().saturating_mul(most), 0);
        Self { memory, limits, epsilon, stores: Resident::new(most) }
    }

    /// Whether each missing block of `wanted` has a store that no job in flight uses.
    pub(crate) fn have_room(&self, wanted: &[StoredRows]) -> bool {
        self.stores.has_room(&as_wanted(wanted))
    }

    /// The vectors of `wanted`, for which there is [room](Self::have_room), and the bytes that
    /// were sent.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn hold(
        &mut self,
        kernels: &Kernels<VectorJoin>,
        sides: &Sides,
        wanted: &[StoredRows],
    ) -> Result<(Vec<Arc<DeviceVectors>>, u64), DeviceError> {
        let Self { memory, limits, epsilon, stores } = self;
        stores.hold(as_wanted(wanted), |rows, used| {
            let mut vectors = match used {
                Some(vectors) => vectors,
                None => DeviceVectors::with_room(memory, *limits)?,
            };
            let parts = values(sides, rows);
            vectors.load_parts(kernels, &parts, 0, *epsilon)?;
            let bytes = parts.iter().map(|part| size_of_val(*part) as u64).sum();
            Ok((Arc::new(vectors), bytes))
        })
    }
}

fn as_wanted(rows: &[StoredRows]) -> Vec<Wanted<StoredRows>> {
    rows.iter().map(|rows| Wanted { key: rows.clone(), bytes: 1 }).collect()
}

/// The coordinates of both parts of a store.
fn values<'a>(sides: &'a Sides, [left, right]: &StoredRows) -> [&'a [f32]; 2] {
    let right = rows_of(sides.right(), right.clone()).values();
    [rows_of(&sides.left, left.clone()).values(), right]
}

//! The share of a summary in the memory of the pipeline.
//!
//! The counters are allocated at once and reserved when the operator is bound. The text of items
//! changes with the items, so the text is measured. The next measurement follows when the new text
//! since then has a quarter of the size of the summary, or some megabytes: a summary cannot grow by
//! more than the new text. So a measurement, which visits all counters, costs little in comparison
//! with the items between two measurements.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use thiserror::Error;
use trommel_engine::memory::{MemoryBudget, MemoryFull, Reservation};

/// Minimum bytes of text between two measurements, if the pipeline has enough memory.
const STEP_BYTES: usize = 16 << 20;

/// The monitored items do not fit into the memory of the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the monitored items need too much memory: {0}; \
     lower `counters` or `item_bytes_max`, or raise `memory_max`"
)]
pub(crate) struct StateFull(#[from] MemoryFull);

/// The memory of one summary.
#[derive(Debug)]
pub(crate) struct StateMemory {
    reservation: Reservation,
    /// Bytes of text that have arrived since the last measurement.
    unmeasured: usize,
    /// Bytes of text after which the next measurement follows.
    step: usize,
}

impl StateMemory {
    /// Reserves the counters of a summary.
    pub(crate) fn new(budget: &MemoryBudget, counters_bytes: usize) -> Result<Self, StateFull> {
        let step = STEP_BYTES.min(budget.limit() / 16);
        Ok(Self { reservation: budget.reserve(counters_bytes)?, unmeasured: 0, step })
    }

    /// Notes the bytes of the state.
    pub(crate) fn holds(&mut self, bytes: usize) -> Result<(), StateFull> {
        Ok(self.reservation.resize(bytes.max(self.reservation.bytes()))?)
    }

    /// Notes that `items` were counted; `state_bytes` measures the summary.
    pub(crate) fn counted(
        &mut self,
        items: &dyn Array,
        state_bytes: impl FnOnce() -> usize,
    ) -> Result<(), StateFull> {
        let Some(texts) = items.as_string_opt::<i32>() else { return Ok(()) };
        let offsets = texts.value_offsets();
        self.unmeasured += offsets[offsets.len() - 1].abs_diff(offsets[0]) as usize;
        if self.unmeasured < self.step {
            return Ok(());
        }
        let bytes = state_bytes();
        self.reservation.resize(bytes.max(self.reservation.bytes()))?;
        self.step = self.step.max(bytes / 4);
        self.unmeasured = 0;
        Ok(())
    }
}

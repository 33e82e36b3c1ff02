//! Answers of unknown number in a buffer of fixed room.
//!
//! A kernel appends its matches to a buffer that may be too small for all matches. A unit of work
//! whose match finds no room appends its remaining work to the list of unfinished units; this list
//! returns with the matches, and the caller asks again with these units. The answers are exact even
//! with room for a single match, and need neither an estimate of the number of matches nor a kernel
//! that counts first.
//!
//! ```text
//!  matches      | m0 m1 m2 .. |       room: fixed; the lanes of a warp reserve their places with
//!                                     one atomic addition
//!  unfinished   | u0 u1 .. |          at most one a unit, so there is always room
//!  counters     | matches | unfinished | cut | the primitive's own .. |
//! ```
//!
//! The device's half is `kernels/cuda/output.cuh`.

use std::sync::Arc;

use super::driver::{DeviceError, DevicePointer, Memory};
use super::flights::{CopyOut, Landing, LaunchStep};
use super::mirrored::MirroredBuffer;
use crate::memory::Plain;

/// The first counter: all matches, including matches that found no room.
const MATCHES: usize = 0;
/// The second counter: unfinished units.
const UNFINISHED: usize = 1;
/// The third counter: 0, or 1 more than the number of matches before the first unit whose matches
/// did not fit, if units reserve places for all their matches.
const CUT: usize = 2;
/// The first counter of the primitive's own.
const OWN: usize = 3;

/// The size of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutputLimits {
    /// Room for matches, at least 1: without room no unit would ever be finished.
    pub(super) matches: usize,
    /// Units of work, each of which may be left unfinished.
    pub(super) units: usize,
    /// Counters of the primitive's own.
    pub(super) counters: usize,
}

impl OutputLimits {
    /// The bytes of an output on the device, and as many of pinned memory.
    pub(super) fn bytes<M, U>(self) -> usize {
        let Self { matches, units, counters } = self;
        let units = units.max(1) * size_of::<U>();
        matches * size_of::<M>() + units + (OWN + counters) * size_of::<u64>()
    }
}

/// Matches of type `M`, of units of work of type `U`.
#[derive(Debug)]
pub(super) struct BoundedOutput<M: Plain, U: Plain> {
    matches: MirroredBuffer<M>,
    unfinished: MirroredBuffer<U>,
    counters: MirroredBuffer<u64>,
}

/// An output as an argument of kernels: `Output` of `output.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct OutputArgument<M, U> {
    matches: DevicePointer<M>,
    unfinished: DevicePointer<U>,
    counters: DevicePointer<u64>,
    room: u64,
}

/// The extent of an answer in an output.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    matches: usize,
    unfinished: usize,
}

impl<M: Plain, U: Plain> BoundedOutput<M, U> {
    pub(super) fn new(memory: &Arc<Memory>, limits: OutputLimits) -> Result<Self, DeviceError> {
        let OutputLimits { matches, units, counters } = limits;
        assert!(matches > 0, "room for {matches} matches; at least 1 is needed");
        Ok(Self {
            matches: MirroredBuffer::new(memory, matches)?,
            unfinished: MirroredBuffer::new(memory, units.max(1))?,
            counters: MirroredBuffer::new(memory, OWN + counters)?,
        })
    }

    pub(super) fn argument(&self) -> OutputArgument<M, U> {
        OutputArgument {
            matches: self.matches.pointer(),
            unfinished: self.unfinished.pointer(),
            counters: self.counters.pointer(),
            room: self.matches.len() as u64,
        }
    }

    /// Queues a fill of the counters with zeros: kernels count from zero.
    pub(super) fn clear(&self, step: &LaunchStep<'_>) -> Result<(), DeviceError> {
        step.clear(&self.counters)
    }

    /// Queues the copy of the counters, for a kernel that only counts.
    pub(super) fn fetch_counters(&self, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        step.fetch(&self.counters, self.counters.len())
    }

    /// Queues the copies of the counters and of the whole room for matches: the number of matches
    /// is unknown before, and a wait for it would cost more than the bytes do.
    pub(super) fn fetch(&self, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        self.fetch_counters(step)?;
        step.fetch(&self.matches, self.matches.len())
    }

    /// Fetches the unfinished units; returns the extent of the answer.
    pub(super) fn land(&self, landing: &mut Landing<'_>) -> Result<Written, DeviceError> {
        let written = self.written();
        landing.fetch(&self.unfinished, written.unfinished)?;
        Ok(written)
    }

    /// Fetches the matches that found room and the unfinished units, after a copy of the counters
    /// alone. This method serves rooms that are far larger than most answers.
    pub(super) fn land_matches(&self, landing: &mut Landing<'_>) -> Result<Written, DeviceError> {
        landing.fetch(&self.matches, self.written().matches)?;
        self.land(landing)
    }

    /// Fetches the unfinished units of a kernel that only counts, after a copy of the counters.
    pub(super) fn land_units(&self, landing: &mut Landing<'_>) -> Result<Written, DeviceError> {
        Ok(Written { matches: 0, ..self.land(landing)? })
    }

    /// The extent of the answer, by the counters.
    fn written(&self) -> Written {
        let room = self.matches.len();
        // The counter of matches exceeds the room when matches found no room.
        let all = usize::try_from(self.count()).map_or(room, |matches| matches.min(room));
        // Places from the cut on are counted, but not written: their units found no room.
        let cut = self.counters.host()[CUT].checked_sub(1);
        let cut = cut.map_or(room, |cut| usize::try_from(cut).map_or(room, |cut| cut.min(room)));
        let matches = all.min(cut);
        let unfinished = usize::try_from(self.counters.host()[UNFINISHED]);
        let unfinished = unfinished.expect("a unit is left unfinished at most once");
        Written { matches, unfinished }
    }

    /// The number of all matches of the units that are finished or were only counted. Valid after
    /// the landing.
    pub(super) fn count(&self) -> u64 {
        self.counters.host()[MATCHES]
    }

    /// A counter of the primitive's own. Valid after the landing.
    pub(super) fn own_counter(&self, index: usize) -> u64 {
        self.counters.host()[OWN + index]
    }

    /// The matches that found room.
    pub(super) fn matches(&self, written: Written) -> &[M] {
        &self.matches.host()[..written.matches]
    }

    /// The remaining work of the units whose matches did not find room.
    pub(super) fn unfinished(&self, written: Written) -> &[U] {
        &self.unfinished.host()[..written.unfinished]
    }
}

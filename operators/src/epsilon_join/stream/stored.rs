//! The vectors of the window of a stream as bytes, so that a later run goes on.
//!
//! ```text
//! body    4  coordinates of a vector
//!         1  unit of the window: 1 vectors, 2 nanoseconds
//!         8  length of the window
//!         8  vectors so far
//!         8  nanoseconds so far
//!         8  number of vectors that a later vector may join with; of these vectors
//!         …  the id of each (4)
//!         …  the stamp of each (8), if the window is one of time, ascending
//!         …  their coordinates (4 each)
//! ```
//!
//! Directories are left out, because they follow from the vectors. Panes are left out, too, so the
//! state of a stream does not depend on the division of the stream into batches. The module
//! [`state`](crate::shared::state) describes the envelope around the body.

use crate::epsilon_join::data::side::VECTORS_MAX;
use crate::shared::items::StoredItem;
use crate::shared::state::{Reader, RestoreError, StateKind, Writer};
use crate::shared::window::Extent;

/// Maximum number of vectors and of nanoseconds; no stream reaches these numbers.
const PROGRESS_MAX: u64 = 1 << 62;

/// The unit and the length of a window.
fn window_of(window: Extent) -> (u8, u64) {
    match window {
        Extent::Items(length) => (1, length),
        Extent::Nanoseconds(length) => (2, length),
        Extent::Endless => (0, 0),
    }
}

/// Vectors of a stream that later vectors may join with, and the progress of the stream.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct StoredVectors {
    /// Vectors so far.
    pub(crate) position: u64,
    /// Nanoseconds so far.
    pub(crate) time: u64,
    pub(crate) ids: Vec<u32>,
    pub(crate) stamps: Vec<u64>,
    pub(crate) coordinates: Vec<f32>,
}

impl StoredVectors {
    /// The least stamp of the next vector.
    pub(crate) fn next(&self, window: Extent) -> u64 {
        match window {
            Extent::Nanoseconds(_) => self.time,
            Extent::Items(_) | Extent::Endless => self.position,
        }
    }

    /// The state as bytes.
    pub(crate) fn write(&self, dims: u32, window: Extent) -> Vec<u8> {
        let mut writer = Writer::new(StateKind::Vectors, u32::NUMBER);
        let (unit, length) = window_of(window);
        writer.u32(dims);
        writer.u8(unit);
        writer.u64(length);
        writer.u64(self.position);
        writer.u64(self.time);
        writer.len(self.ids.len());
        writer.u32s(self.ids.iter().copied());
        if let Extent::Nanoseconds(_) = window {
            self.stamps.iter().for_each(|&stamp| writer.u64(stamp));
        }
        writer.u32s(self.coordinates.iter().map(|value| value.to_bits()));
        writer.finish()
    }

    /// Reads a state.
    ///
    /// # Errors
    /// If the bytes are not such a state, or the state has vectors of another length or another
    /// window.
    pub(crate) fn read(bytes: &[u8], dims: u32, window: Extent) -> Result<Self, RestoreError> {
        let mut reader = Reader::new(bytes, StateKind::Vectors, u32::NUMBER)?;
        let (unit, length) = window_of(window);
        let field = "the number of coordinates of a vector";
        let found = reader.u32(field)?;
        reader.check(field, found, &(dims..=dims))?;
        let field = "the unit of the window (1 vectors, 2 time)";
        let found = reader.u8(field)?;
        reader.check(field, found, &(unit..=unit))?;
        let field = "the length of the window";
        let found = reader.u64(field)?;
        reader.check(field, found, &(length..=length))?;
        let progress = |reader: &mut Reader<'_>, field| {
            let found = reader.u64(field)?;
            reader.check(field, found, &(0..=PROGRESS_MAX))
        };
        let position = progress(&mut reader, "the vectors so far")?;
        let time = progress(&mut reader, "the nanoseconds so far")?;
        let field = "the number of vectors";
        let len = reader.len(field, VECTORS_MAX, 4 + 4 * dims as usize)?;
        reader.check(field, len as u64, &(0..=position))?;
        let ids = reader.u32s("the ids", len)?;
        let stamps = match window {
            Extent::Nanoseconds(_) => {
                let stamps = (0..len).map(|_| reader.u64("the stamps"));
                stamps.collect::<Result<_, _>>()?
            }
            Extent::Items(_) | Extent::Endless => (position - len as u64..position).collect(),
        };
        let mut stored = Self { position, time, ids, stamps, coordinates: Vec::new() };
        stored.check_stamps(&reader, window)?;
        let field = "the coordinates";
        let bits = reader.u32s(field, len * dims as usize)?;
        stored.coordinates = bits.into_iter().map(f32::from_bits).collect();
        if let Some(value) = stored.coordinates.iter().find(|value| !value.is_finite()) {
            return Err(reader.refuse(field, value, "finite numbers"));
        }
        reader.finish()?;
        Ok(stored)
    }

    /// Refuses stamps that do not ascend, and vectors that no later vector joins with.
    fn check_stamps(&self, reader: &Reader<'_>, window: Extent) -> Result<(), RestoreError> {
        let next = self.next(window);
        let (first, last) = match self.stamps[..] {
            [] => return Ok(()),
            [only] => (only, only),
            [first, .., last] => (first, last),
        };
        if !self.stamps.is_sorted() || last > next || !window.reaches(first, next) {
            let expected = format!("ascending ones in the window of {next}");
            return Err(reader.refuse("the stamps", format!("{first} to {last}"), expected));
        }
        Ok(())
    }
}

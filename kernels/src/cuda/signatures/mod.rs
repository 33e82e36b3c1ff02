//! Tiles of all pairs on a device: the contract of [`crate::signatures`], a chunk of tiles at a
//! time.
//!
//! Sets go to the device once and get their signatures there ([`SignedSets`]); a chunk goes through
//! a [`Slot`]:
//!
//! ```text
//! Slot ──submit──► Flight ──collect──► Slot, with matches and what is unfinished, or a count
//! ```
//!
//! Matches go to a buffer of fixed size: the 32 pairs that a warp verifies at once reserve their
//! places with one atomic addition, and a strip that finds no place appends itself to the
//! unfinished tiles, which come back. Counting before would find each overlap twice.
//!
//! Kernels: `kernels/cuda/signatures.cu`. They find the same matches as the levels of the processor
//! do; which of them come first when there is no room for all is chance.

mod policy;
mod sets;
mod slot;

pub use self::policy::Policy;
pub use self::sets::SignedSets;
pub use self::slot::{Flight, Job, Kept, Slot, TileLimits};

use std::sync::Arc;

use super::device::Device;
use super::error::DeviceError;
use super::module::{Function, Images, Module, ModuleImage, images};
use crate::signatures::WORDS;

const IMAGES: Images = images!("signatures");

/// The names of the entry points: sign, join, count; by [`WORDS`].
const FUNCTIONS: [[&str; 3]; WORDS.len()] = [
    ["signatures_sign_1", "signatures_join_1", "signatures_count_1"],
    ["signatures_sign_2", "signatures_join_2", "signatures_count_2"],
    ["signatures_sign_4", "signatures_join_4", "signatures_count_4"],
    ["signatures_sign_8", "signatures_join_8", "signatures_count_8"],
];

/// What is asked of a chunk of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The matches, as [`crate::signatures::join`] gives them.
    Matches,
    /// How many there are, as [`crate::signatures::count`] gives it.
    Count,
}

/// What a kernel does.
#[derive(Clone, Copy, Debug)]
enum Step {
    Sign,
    Join,
    Count,
}

/// The kernels, loaded on a device.
#[derive(Debug)]
pub struct Joiner {
    device: Device,
    image: ModuleImage,
    functions: [[Function; 3]; WORDS.len()],
}

impl Joiner {
    /// Loads the kernels.
    ///
    /// # Errors
    ///
    /// If the driver refuses them.
    pub fn new(device: &Device) -> Result<Arc<Self>, DeviceError> {
        let module = Module::load(device, &IMAGES)?;
        let of_width = |[sign, join, count]: [&'static str; 3]| {
            Ok([module.function(sign)?, module.function(join)?, module.function(count)?])
        };
        let [one, two, four, eight] = FUNCTIONS;
        let functions = [of_width(one)?, of_width(two)?, of_width(four)?, of_width(eight)?];
        Ok(Arc::new(Self { device: device.clone(), image: module.image(), functions }))
    }

    /// What the kernels were loaded from.
    #[must_use]
    pub fn image(&self) -> ModuleImage {
        self.image
    }

    /// The device that has them.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn function(&self, words: usize, step: Step) -> &Function {
        let width = WORDS.iter().position(|width| *width == words);
        let [sign, join, count] = &self.functions[width.expect("a width of signatures")];
        match step {
            Step::Sign => sign,
            Step::Join => join,
            Step::Count => count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_of_the_widths() {
        for (names, words) in FUNCTIONS.into_iter().zip(WORDS) {
            let expected =
                ["sign", "join", "count"].map(|step| format!("signatures_{step}_{words}"));
            assert_eq!(names, expected);
        }
    }
}

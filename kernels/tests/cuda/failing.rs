//! A pipeline that may fail, and says how, in a process of its own.

use std::env;

use trommel_kernels::cuda::overlap::Variant;
use trommel_kernels::cuda::signatures::GRID;
use trommel_kernels::cuda::{Device, DeviceError, FailureKind, NoDevice};

use super::cases::Case;
use super::suite::{self, Bench, waves};
use super::tiles::TileCase;

/// The variable that asks for the outcome to be printed; without it the test has no work.
pub(crate) const OUTCOME_VARIABLE: &str = "STAND_IN_OUTCOME";

/// Runs a pipeline, and returns how it ended.
fn run() -> Result<(), NoDevice> {
    let device = Device::probe(0)?;
    pipeline(&device).map_err(NoDevice::from)
}

fn pipeline(device: &Device) -> Result<(), DeviceError> {
    let case = Case::of_sizes("failing", &[9, 30, 4, 17], 20).with_pairs(&[0, 3, 1], 1, 21);
    device.memory_bytes()?;
    let bench = Bench::new(device)?;
    let overlaps = waves(&bench, &case, Variant::Lanes16, (2, 3))?;
    assert_eq!(overlaps, case.expected().0);
    let case = TileCase::of_sizes("failing", &[5; 9], 1, [4, 9]);
    let bench = suite::signatures::Bench::new(device)?;
    let sets = bench.sign(&case, 1)?;
    let (matches, ..) = bench.join(&case, &sets, bench.slot(&case, 5)?, GRID)?;
    assert_eq!(matches, suite::signatures::expected(&case, 1).0);
    Ok(())
}

#[test]
fn a_pipeline_says_how_it_ended() {
    if env::var_os(OUTCOME_VARIABLE).is_none() {
        return;
    }
    match run() {
        Ok(()) => println!("OUTCOME fine"),
        Err(NoDevice::Failed(error)) => {
            let kind = match error.kind() {
                FailureKind::OutOfMemory => "full",
                FailureKind::Lost => "lost",
                _ => "refused",
            };
            println!("OUTCOME {kind}: {error}");
        }
        Err(none) => println!("OUTCOME none: {none}"),
    }
}

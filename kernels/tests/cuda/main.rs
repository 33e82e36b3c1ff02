//! The device layer and every CUDA kernel: on a GPU where there is one, and on the stand-in
//! driver.
//!
//! `suite` and `failing` run on any driver that the process finds, and print a line if there is no
//! driver; with `TROMMEL_REQUIRE_CUDA=1` a missing driver is a failure. `stand_in` starts this same
//! program again with the stand-in driver, so that all tests run everywhere. On a machine with a
//! GPU, run `suite` alone: `TROMMEL_REQUIRE_CUDA=1 cuda suite::`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "skipped tests, and the end of a child")]

mod bugs;
mod cases;
mod failing;
mod lists;
mod stand_in;
mod suite;
mod tiles;
mod transactions;
mod vectors;

use std::env;

use trommel_kernels::cuda::Device;

/// Turns a missing device into a failure.
const REQUIRE_VARIABLE: &str = "TROMMEL_REQUIRE_CUDA";

/// The first device, or a line that says why there is none.
fn device() -> Option<Device> {
    match Device::probe(0) {
        Ok(device) => Some(device),
        Err(reason) => {
            let required = env::var(REQUIRE_VARIABLE).is_ok_and(|value| value == "1");
            assert!(!required, "a device is required, but: {reason}");
            println!("SKIPPED, no device: {reason}");
            None
        }
    }
}

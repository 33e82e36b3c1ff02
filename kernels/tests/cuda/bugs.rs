//! Runs one kernel of the shim's planted bugs, in a process of its own.

#![expect(unsafe_code, reason = "kernels that no launcher knows")]

use std::env;
use std::ffi::{CString, c_void};

use cudarc::driver::{result, sys};

/// Names the kernel; without this variable the test has no work.
pub(crate) const KERNEL_VARIABLE: &str = "STAND_IN_KERNEL";

const THREADS: u32 = 64;
const WORD_BYTES: usize = 4;

/// The driver's answer at the end.
fn run(name: &str) -> Result<(), result::DriverError> {
    result::init()?;
    let device = result::device::get(0)?;
    // SAFETY: the driver has named the device.
    let context = unsafe { result::primary_ctx::retain(device) }?;
    // SAFETY: the context is retained to the end of the process.
    unsafe { result::ctx::set_current(context) }?;
    let image = c".version 8.0";
    // SAFETY: the stand-in looks at the first words only.
    let module = unsafe { result::module::load_data(image.as_ptr().cast::<c_void>()) }?;
    let name = CString::new(name).expect("a name of a kernel");
    // SAFETY: the module is loaded.
    let function = unsafe { result::module::get_function(module, name) }?;
    let bytes = THREADS as usize * WORD_BYTES;
    // SAFETY: no code reads the memory before the kernel writes it.
    let mut out = unsafe { result::malloc_sync(bytes) }?;
    let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
    let mut arguments = [(&raw mut out).cast::<c_void>()];
    let shared = THREADS * 4;
    let stream_of: sys::CUstream = stream;
    // SAFETY: kernels of `bugs.cu` take one pointer to as many words as threads; their
    // mistakes stay within the stand-in driver, which ends the launch or the process.
    unsafe {
        result::launch_kernel(
            function,
            (1, 1, 1),
            (THREADS, 1, 1),
            shared,
            stream_of,
            &mut arguments,
        )
    }?;
    // SAFETY: the stream is alive.
    unsafe { result::stream::synchronize(stream) }
}

#[test]
fn runs_the_kernel_that_is_named() {
    let Ok(name) = env::var(KERNEL_VARIABLE) else { return };
    run(&name).unwrap();
}

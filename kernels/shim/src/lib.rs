//! Runs the CUDA kernels of `kernels/cuda` on a CPU, through a stand-in for the CUDA driver.
//!
//! A C++ compiler compiles the kernels together with `cpp/`, which has the language (`cuda.h`) and
//! the machine: a launch runs its blocks one after another, and each CUDA thread runs on a fiber, a
//! stack of its own, until it waits at a barrier or in a collective of its warp. The functions of
//! `libcuda.so.1` surround this machine. A program that loads the driver at run time, and that
//! [`StandIn::command`] has started, finds this driver instead of the vendor's. So its whole path
//! to the device runs unchanged: probe, buffers, streams, events, launches, failures.
//!
//! # Checks
//!
//! | form | notices |
//! |---|---|
//! | all | results that depend on the order of threads ([`Order`]), barriers that not all threads reach, masks that name absent lanes, shuffles from outside of a mask, work for which no call has waited (streams are as late as they may be), reads of shared or device memory that no code has written (it holds rubbish) |
//! | [`Form::Address`] | accesses outside of shared or device memory, and to memory that was freed |
//! | [`Form::Race`] | accesses to the same bytes that no barrier orders |
//!
//! # Limits
//!
//! - Threads take turns: the race check, not a result, shows a mistake that needs two threads at
//!   the same instant. That check remembers the last write and two reads of a word, so it can miss
//!   a race, and takes a `__syncwarp` of a part of a warp for no order at all.
//! - Warps are not in step. A mistake that a GPU would hide by lockstep is an error here.
//! - One block runs at a time. Blocks that wait for each other hang on some GPUs, and always hang
//!   here.
//! - Memory is ordered as strongly as on the CPU. Missing fences between blocks do not show.
//! - The stand-in says nothing about speed, alignment of vector loads, registers, or limits of a
//!   GPU other than 1,024 threads and the shared memory of a block: 48 KiB, or up to 227 KiB if the
//!   launch asks for it.
//! - Images are not read: the kernels of the sources run. Only compute-sanitizer on a GPU sees
//!   changes by the assembler: the assembler joins loads of neighbouring words to one load, even
//!   where the source reads the second word only under a condition, and so can read a word past the
//!   end that the source never touches.
#![forbid(unsafe_code)]

mod compile;
mod form;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use self::form::Form;

use self::compile::{Compiler, kernels};

/// The order in which the threads of a block run, if several can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The lowest thread first.
    Forward,
    /// The highest thread first.
    Reverse,
    /// A random order, by a seed.
    Random(u32),
}

/// The setting of failures, separated by commas.
const FAIL: &str = "STAND_IN_FAIL";

/// A stand-in driver with its settings.
#[derive(Clone, Debug)]
pub struct StandIn {
    form: Form,
    folder: PathBuf,
    settings: Vec<(&'static str, String)>,
}

impl StandIn {
    /// A driver with one device of capability 9.0 and 1 GiB.
    #[must_use]
    pub fn new(form: Form) -> Self {
        let folder = Path::new(env!("STAND_IN_HOME")).join(form.folder());
        Self { form, folder, settings: Vec::new() }
    }

    /// A driver in which `changed` is changed: the kernel source `source` itself, or a header that
    /// it includes. The changed source is compiled into `folder`.
    ///
    /// # Errors
    ///
    /// If the changed source does not compile, or a file cannot be read or written.
    pub fn with_changed_kernels(
        form: Form,
        source: &str,
        changed: &str,
        change: impl FnOnce(&str) -> String,
        folder: &Path,
    ) -> io::Result<Self> {
        let built = Self::new(form);
        let compiler = Compiler::of_changes(env!("STAND_IN_CXX").into(), form, &built.folder);
        // The compiler finds headers next to the source before the unchanged headers, also from
        // other headers.
        for entry in fs::read_dir(kernels())? {
            let entry = entry?;
            let is_header = entry.path().extension() == Some(OsStr::new("cuh"));
            if is_header || entry.file_name() == source {
                fs::copy(entry.path(), folder.join(entry.file_name()))?;
            }
        }
        let text = fs::read_to_string(kernels().join(changed))?;
        fs::write(folder.join(changed), change(&text))?;
        let object = compiler.compile(&folder.join(source), folder)?;
        let mut objects = vec![object.clone()];
        for entry in fs::read_dir(&built.folder)? {
            let path = entry?.path();
            let is_other = path.file_name() != object.file_name();
            if is_other && path.extension() == Some(OsStr::new("o")) {
                objects.push(path);
            }
        }
        compiler.link(&objects, folder)?;
        Ok(Self { folder: folder.to_owned(), ..built })
    }

    /// The order of threads; forward unless set.
    #[must_use]
    pub fn order(self, order: Order) -> Self {
        match order {
            Order::Forward => self.with("STAND_IN_ORDER", "forward"),
            Order::Reverse => self.with("STAND_IN_ORDER", "reverse"),
            Order::Random(seed) => {
                self.with("STAND_IN_ORDER", "random").with("STAND_IN_SEED", seed)
            }
        }
    }

    /// The number of devices.
    #[must_use]
    pub fn devices(self, devices: u32) -> Self {
        self.with("STAND_IN_DEVICES", devices)
    }

    /// The compute capability, ten times major plus minor.
    #[must_use]
    pub fn capability(self, capability: u32) -> Self {
        self.with("STAND_IN_CAPABILITY", capability)
    }

    /// The CUDA version of the driver, 1,000 times major plus ten times minor.
    #[must_use]
    pub fn driver_version(self, version: u32) -> Self {
        self.with("STAND_IN_DRIVER", version)
    }

    /// The bytes of the device's memory.
    #[must_use]
    pub fn memory_bytes(self, bytes: u64) -> Self {
        self.with("STAND_IN_MEMORY", bytes)
    }

    /// Lets the `nth` call of a function fail with a code; `kernel` is the running of a kernel.
    /// Codes that no context survives are the answer to every later call, too.
    #[must_use]
    pub fn failure(self, call: &str, nth: u32, code: u32) -> Self {
        self.failing(format!("{call}:{nth}:{code}"))
    }

    /// As [`failure`](Self::failure), for a call of one device, whose calls are counted alone. The
    /// other devices go on. Several failures can be set.
    #[must_use]
    pub fn failure_on(self, device: u32, call: &str, nth: u32, code: u32) -> Self {
        self.failing(format!("{call}:{nth}:{code}:{device}"))
    }

    fn failing(mut self, failure: String) -> Self {
        match self.settings.iter_mut().find(|(name, _)| *name == FAIL) {
            Some((_, failures)) => *failures = format!("{failures},{failure}"),
            None => self.settings.push((FAIL, failure)),
        }
        self
    }

    /// Leaves out the barriers and warp synchronizations on a line of a kernel's source.
    #[must_use]
    pub fn without_line(self, line: usize) -> Self {
        self.with("STAND_IN_DROP_LINE", line)
    }

    /// The file that the process writes at its end: the resources that are left, and the number
    /// of calls of each function.
    #[must_use]
    pub fn report(self, path: &Path) -> Self {
        self.with("STAND_IN_REPORT", path.display())
    }

    fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.settings.push((name, value.to_string()));
        self
    }

    /// The folder with the library.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A command whose process finds this driver.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", &self.folder);
        if self.form == Form::Address {
            // The sanitizer has to be loaded before all other libraries. It does not look for leaks
            // of other libraries at the end.
            command.env("LD_PRELOAD", env!("STAND_IN_ASAN"));
            command.env("ASAN_OPTIONS", "detect_leaks=0:abort_on_error=0:exitcode=99");
        }
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }
}

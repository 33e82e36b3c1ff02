//! The native half of the Python package `trommel`: it translates between Python objects, Arrow
//! data and the crate [`trommel`], and contains no algorithm.
//!
//! | file | contents |
//! |---|---|
//! | `import` | all data that comes in: which Arrow types are accepted as what |
//! | `table` | record batches as a Python object |
//! | `cells` | columns as Python values |
//! | `function` | a pipeline that runs within one call |
//! | `running` | a pipeline that runs on |
//! | `supply` | sources and sinks that are Python objects |
//! | `summary` | one operator, called directly |
//! | `live` | all runs of the process: the end of the interpreter, and forks |
//! | `wait` | waiting without the interpreter's lock, and Ctrl-C |
//! | `log` | events of the engine for Python's `logging` |
//! | `errors` | errors as Python exceptions |
//!
//! Every function that works or waits releases the interpreter's lock. Threads are the engine's
//! alone; a thread of the engine takes the lock only to call a Python source, sink or logger.
#![forbid(unsafe_code)]

mod errors;
mod function;
mod import;
mod live;
mod log;
mod running;
mod summary;
mod supply;
mod table;
mod wait;

use pyo3::prelude::*;

// The allocator of the command line. The C library's gives large blocks back to the system at the
// end of a call: a join of a million sets took a fifth longer with it. AddressSanitizer watches the
// C library's alone.
#[cfg(not(address_sanitizer))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The native half of the package.
#[pymodule(gil_used = false)]
mod _trommel {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::errors::PipelineError;
    #[pymodule_export]
    use crate::function::run;
    #[pymodule_export]
    use crate::import::{chosen, column, table};
    #[pymodule_export]
    use crate::live::shutdown;
    #[pymodule_export]
    use crate::running::{Run, StandingQuery, plan, start};
    #[pymodule_export]
    use crate::summary::{Summary, formed_type};
    #[pymodule_export]
    use crate::table::{Schema, Table, combine, empty, in_order};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::log::install();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let operators = crate::operators();
        module.add("OPERATORS", operators)
    }
}

/// The operators that a configuration may name, with their summaries.
fn operators() -> Vec<(&'static str, &'static str)> {
    trommel::registry().entries().map(|entry| (entry.name(), entry.summary())).collect()
}

//! Calls of decoders, which may panic where a file is damaged.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use crate::source::read::error::TableError;

thread_local! {
    static IS_DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Calls a decoder, and turns a panic into an error.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> Result<T, TableError>) -> Result<T, TableError> {
    keep_panics_quiet();
    let was_decoding = IS_DECODING.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    IS_DECODING.set(was_decoding);
    decoded.unwrap_or(Err(TableError::Damaged))
}

/// Suppresses the messages of panics of decoders, since the error names the file. Messages of other
/// panics are printed as before.
fn keep_panics_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_DECODING.get() {
                usual(panic);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;

    use super::*;

    /// Environment variable that makes the test the process that panics.
    const PANICS: &str = "TROMMEL_TEST_PANICS";

    #[test]
    fn only_a_panic_of_a_decoder_is_not_printed() {
        if env::var_os(PANICS).is_some() {
            let decoded: Result<(), _> = guarded(|| panic!("of a decoder"));
            assert!(matches!(decoded, Err(TableError::Damaged)));
            assert!(catch_unwind(|| panic!("of others")).is_err());
            return;
        }
        let (_, module) = module_path!().split_once("::").expect("a module of the crate");
        let name = format!("{module}::only_a_panic_of_a_decoder_is_not_printed");
        let mut this = Command::new(env::current_exe().unwrap());
        let run = this.args(["--exact", &name, "--nocapture"]).env(PANICS, "1").output().unwrap();
        let printed = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{printed}");
        assert!(printed.contains("of others"), "{printed}");
        assert!(!printed.contains("of a decoder"), "{printed}");
    }
}

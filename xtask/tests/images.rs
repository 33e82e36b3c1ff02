//! The images in the repository belong to the sources beside them.

use std::env;
use std::process::Command;

/// How `xtask` ends when the compiler cannot be installed, which is no fault of the images.
const NO_TOOLCHAIN: i32 = 3;

/// Turns a missing compiler into a failure.
const REQUIRE_VARIABLE: &str = "TROMMEL_REQUIRE_TOOLCHAIN";

#[test]
fn images_are_what_the_sources_compile_to() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_xtask")).args(["cuda", "--check"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let is_required = env::var(REQUIRE_VARIABLE).is_ok_and(|value| value == "1");
    if output.status.code() == Some(NO_TOOLCHAIN) && !is_required {
        println!("NOT CHECKED, whether the images are those of the sources: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
}

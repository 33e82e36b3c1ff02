//! The images in the repository belong to the sources beside them.

use std::process::Command;

/// How `xtask` ends when the compiler cannot be installed, which is no fault of the images.
const NO_TOOLCHAIN: i32 = 3;

#[test]
fn images_are_what_the_sources_compile_to() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_xtask")).args(["cuda", "--check"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NO_TOOLCHAIN) {
        println!("NOT CHECKED, whether the images are those of the sources: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
}

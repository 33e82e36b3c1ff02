//! `supports` on the stand-in driver: every unit gives the answer of the processor. The measured
//! times have no meaning there.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use trommel_shim::{Form, StandIn};

fn supports(driver: &StandIn) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trommel-bench"));
    command.args(["supports", "--rounds", "1", "--matrices", "130:700:0.2:30,3:6600:0.01:1"]);
    let command = command.env_remove("TROMMEL_DEVICE").env("LD_LIBRARY_PATH", driver.folder());
    let ended = command.output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    said
}

#[test]
fn every_unit_gives_the_answer_of_the_processor() {
    let said = supports(&StandIn::new(Form::Plain));
    assert_eq!(said.matches("| tensor cores ").count(), 2, "{said}");
    assert_eq!(said.matches("| integer units ").count(), 2, "{said}");
    assert_eq!(said.matches("batmaps: kernel ").count(), 2, "{said}");
}

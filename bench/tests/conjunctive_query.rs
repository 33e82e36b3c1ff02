//! `conjunctive-query` on the stand-in driver: every way gives the answers of the processor. The
//! measured times have no meaning there.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use trommel_shim::{Form, StandIn};

fn conjunctive_query(devices: u32) -> String {
    let driver = StandIn::new(Form::Plain).devices(devices);
    let mut command: Command = driver.command(env!("CARGO_BIN_EXE_trommel-bench"));
    command.args(["conjunctive-query", "--queries", "50", "--rounds", "1"]);
    command.args(["--batches", "1,20", "--copy-bytes", "65536"]);
    command.args(["--indexes", "300:66000:30000,60:300:2000"]);
    let ended = command.output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    said
}

#[test]
fn every_way_gives_the_answers_of_the_processor() {
    let said = conjunctive_query(1);
    assert_eq!(said.matches("| count ").count(), 2 * 4 * 2, "{said}");
    assert_eq!(said.matches("| documents ").count(), 2 * 2, "{said}");
    assert_eq!(said.matches("| one core, ").count(), if cfg!(feature = "peers") { 4 } else { 2 });
}

#[test]
fn without_a_device_the_processor_is_measured() {
    let said = conjunctive_query(0);
    assert!(said.contains("processor only: "), "{said}");
    assert!(said.contains("| one core, ") && !said.contains("| documents "), "{said}");
}

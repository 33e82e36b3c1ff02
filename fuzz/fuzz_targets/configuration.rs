//! Loads pipelines from arbitrary text: the result is a topology, or a list of mistakes with
//! their places in the text.
//!
//! `cargo xtask fuzz configuration`
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use trommel::{Override, Registry};

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        // Relative paths of a pipeline lead to no file.
        let folder = std::env::temp_dir().join(format!("trommel-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::env::set_current_dir(&folder).expect("it is there");
        trommel::registry()
    })
}

fuzz_target!(|input: (&str, Vec<&str>)| {
    let (text, overrides) = input;
    // Skips inputs that would read all files of the machine.
    if text.contains('/') || overrides.iter().any(|change| change.contains('/')) {
        return;
    }
    let overrides: Vec<Override> = overrides.iter().filter_map(|text| text.parse().ok()).collect();
    match trommel::load(text, "fuzz.json", registry(), &overrides) {
        Ok(pipeline) => assert!(!pipeline.topology.stages().is_empty()),
        Err(mistakes) => {
            let said = mistakes.to_string();
            assert!(!said.is_empty(), "a refusal without a reason");
        }
    }
});

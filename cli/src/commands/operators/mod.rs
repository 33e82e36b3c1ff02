//! `trommel operators`: the operators and their parameters, from the JSON Schema.

mod parameters;

use serde_json::Value;
use trommel::Registry;
use trommel::files::terminal_width;

use crate::args::OperatorsArguments;
use crate::failure::Failure;

use parameters::wrapped;

/// Width of lines where standard output is no terminal.
const WIDTH: usize = 80;
/// Maximum width of lines, beyond which a line of prose is hard to read.
const WIDTH_MAX: usize = 100;
/// Minimum width of lines, which a narrower terminal breaks.
const WIDTH_MIN: usize = 40;

pub(super) fn run(arguments: &OperatorsArguments) -> Result<u8, Failure> {
    let registry = trommel::registry();
    let width = terminal_width().unwrap_or(WIDTH).clamp(WIDTH_MIN, WIDTH_MAX);
    let text = match arguments.name.as_deref().and_then(|name| registry.entry(name)) {
        None => list(&registry, width),
        Some(entry) => {
            let schema = trommel::schema(&registry);
            let with = parameters_of(entry.name(), &schema);
            let parameters = parameters::describe(with, &schema, width);
            format!("{}: {}\n{parameters}", entry.name(), entry.summary())
        }
    };
    crate::print(&text)?;
    Ok(0)
}

fn list(registry: &Registry, width: usize) -> String {
    let indent = 2 + registry.entries().map(|entry| entry.name().len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in registry.entries() {
        let summary = wrapped(entry.summary(), indent, width);
        text.push_str(&format!("{:indent$}{}", entry.name(), summary.trim_start()));
    }
    text.push_str("\n`trommel operators NAME` shows the parameters of one.\n");
    text
}

/// The schema of the `with` object of an operator's stages.
fn parameters_of<'a>(operator: &str, schema: &'a Value) -> &'a Value {
    let stages = schema["properties"]["stages"]["items"]["oneOf"].as_array();
    let stage = stages
        .into_iter()
        .flatten()
        .find(|stage| stage["properties"]["operator"]["const"] == operator)
        .expect("the schema has every registered operator");
    &stage["properties"]["with"]
}

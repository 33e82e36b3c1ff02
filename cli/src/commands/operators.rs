//! `trommel operators`: the operators and their parameters, from the JSON Schema.

mod parameters;

use serde_json::Value;
use trommel::Registry;

use crate::args::OperatorsArguments;
use crate::failure::Failure;

pub(super) fn run(arguments: &OperatorsArguments) -> Result<u8, Failure> {
    let registry = trommel::registry();
    let text = match arguments.name.as_deref().and_then(|name| registry.entry(name)) {
        None => list(&registry),
        Some(entry) => {
            let schema = trommel::schema(&registry);
            let with = parameters_of(entry.name(), &schema);
            let parameters = parameters::describe(with, &schema);
            format!("{}: {}\n{parameters}", entry.name(), entry.summary())
        }
    };
    crate::print(&text)?;
    Ok(0)
}

fn list(registry: &Registry) -> String {
    let width = registry.entries().map(|entry| entry.name().len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in registry.entries() {
        text.push_str(&format!("{:width$}  {}\n", entry.name(), entry.summary()));
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

//! The plan as a drawing: a box a part, a frame a thread, a thick arrow where a queue joins two
//! threads.

use std::fmt::Write as _;

use trommel::Topology;
use trommel::placement::Group;

use super::text::crosses_threads;

pub(super) fn mermaid(topology: &Topology) -> String {
    let mut text = String::from("flowchart LR\n");
    let escape =
        |label: &str| label.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    for (index, group) in topology.plan().groups.iter().enumerate() {
        add(&mut text, format_args!("  subgraph t{index}[\"{}\"]", thread(index, group)));
        for (part, label, operator) in boxes(topology, group) {
            let label = escape(label);
            add(&mut text, format_args!("    p{part}[\"{label}<br/>{operator}\"]"));
        }
        add(&mut text, format_args!("  end"));
    }
    for link in topology.links() {
        let arrow = if crosses_threads(topology, link) { "==>" } else { "-->" };
        add(&mut text, format_args!("  p{} {arrow} p{}", link.0, link.1));
    }
    text
}

pub(super) fn dot(topology: &Topology) -> String {
    let mut text = String::from("digraph pipeline {\n  rankdir=LR;\n  node [shape=box];\n");
    let escape = |label: &str| label.replace('\\', "\\\\").replace('"', "\\\"");
    for (index, group) in topology.plan().groups.iter().enumerate() {
        add(&mut text, format_args!("  subgraph cluster_{index} {{"));
        add(&mut text, format_args!("    label=\"{}\";", thread(index, group)));
        for (part, label, operator) in boxes(topology, group) {
            let label = escape(label);
            add(&mut text, format_args!("    p{part} [label=\"{label}\\n{operator}\"];"));
        }
        add(&mut text, format_args!("  }}"));
    }
    for link in topology.links() {
        let pen = if crosses_threads(topology, link) { " [penwidth=2]" } else { "" };
        add(&mut text, format_args!("  p{} -> p{}{pen};", link.0, link.1));
    }
    text.push_str("}\n");
    text
}

fn add(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a string takes everything");
}

fn thread(index: usize, group: &Group) -> String {
    let core = group.core.map_or_else(String::new, |core| format!(", core {core}"));
    format!("thread {}{core}", index + 1)
}

/// The parts of a thread: index, label, operator.
fn boxes<'a>(
    topology: &'a Topology,
    group: &'a Group,
) -> impl Iterator<Item = (usize, &'a str, &'static str)> {
    group.parts.iter().map(|&part| {
        let label = topology.parts().nth(part).expect("the plan names parts of the topology");
        let stage = topology.stages().iter().find(|stage| stage.parts.contains(&part));
        (part, label, stage.expect("every part belongs to a stage").operator)
    })
}

//! The plan in words.

use std::fmt::Write as _;

use indicatif::BinaryBytes;
use trommel::graph::StageInfo;
use trommel::placement::Group;
use trommel::{Isa, Pipeline, Topology};

use crate::units::counted;

pub(super) fn describe(pipeline: &Pipeline) -> String {
    let topology = &pipeline.topology;
    let groups = &topology.plan().groups;
    let mut text = String::new();
    let (stages, threads) = (topology.stages().len() as u64, groups.len() as u64);
    let summary = format!("{}, {}", counted(stages, "stage"), counted(threads, "thread"));
    line(&mut text, &format!("{}: {summary}, on the CPU{}", pipeline.name, level()));
    line(&mut text, "\nstages");
    table(&mut text, topology.stages().iter().map(stage_row));
    line(&mut text, "\nthreads");
    table(&mut text, groups.iter().enumerate().map(|(i, group)| thread_row(topology, i, group)));
    let labels: Vec<&str> = topology.parts().collect();
    let devices: Vec<_> =
        topology.devices().map(|(part, device)| vec![labels[part].to_owned(), device]).collect();
    if !devices.is_empty() {
        line(&mut text, "\ndevices");
        table(&mut text, devices.into_iter());
    }
    let queues = queues(topology);
    if queues.is_empty() {
        line(&mut text, "\nno queues: everything runs on one thread");
    } else {
        let limits = pipeline.options.queue;
        let (batches, bytes) = (limits.batches, BinaryBytes(limits.bytes));
        line(&mut text, &format!("\nqueues (limits of each: batches {batches}, bytes {bytes})"));
        table(&mut text, queues.into_iter().map(|(from, to)| vec![format!("{from} → {to}")]));
    }
    text
}

/// The instruction set, unless it is not known: then a run says why.
fn level() -> String {
    Isa::selected().map_or_else(|_| String::new(), |level| format!(" ({level})"))
}

fn stage_row(stage: &StageInfo) -> Vec<String> {
    let columns = |schema: &arrow_schema::SchemaRef| {
        let fields = schema.fields().iter();
        let columns: Vec<_> = fields.map(|f| format!("{} {}", f.name(), f.data_type())).collect();
        columns.join(", ")
    };
    let outputs: Vec<String> = stage.outputs.iter().map(columns).collect();
    let arrow = |arrow: &str, names: String| {
        if names.is_empty() { names } else { format!("{arrow} {names}") }
    };
    vec![
        stage.id.clone(),
        stage.operator.to_owned(),
        arrow("←", stage.inputs.join(", ")),
        arrow("→", outputs.join(" | ")),
        match stage.workers() {
            1 => String::new(),
            workers => format!("{workers} workers ({})", stage.division.name()),
        },
    ]
}

fn thread_row(topology: &Topology, index: usize, group: &Group) -> Vec<String> {
    let labels: Vec<&str> = topology.parts().collect();
    let parts: Vec<&str> = group.parts.iter().map(|&part| labels[part]).collect();
    let core = group.core.map_or_else(|| "any core".to_owned(), |core| format!("core {core}"));
    vec![(index + 1).to_string(), core, parts.join(", ")]
}

/// The labels of parts that are joined by a queue, because they run on different threads.
fn queues(topology: &Topology) -> Vec<(&str, &str)> {
    let labels: Vec<&str> = topology.parts().collect();
    let crossing = topology.links().filter(|&link| crosses_threads(topology, link));
    crossing.map(|(from, to)| (labels[from], labels[to])).collect()
}

pub(super) fn crosses_threads(topology: &Topology, (from, to): (usize, usize)) -> bool {
    !topology.plan().groups.iter().any(|g| g.parts.contains(&from) && g.parts.contains(&to))
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Rows in aligned columns, indented.
fn table(text: &mut String, rows: impl Iterator<Item = Vec<String>>) {
    let rows: Vec<Vec<String>> = rows.collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in &rows {
        let mut shown = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            write!(shown, "  {cell:width$}").expect("a string takes everything");
        }
        line(text, shown.trim_end());
    }
}

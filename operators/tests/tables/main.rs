//! Operators over tables: sets of integers and texts in all layouts, ids of all types, vectors of
//! lists and columns. Each is compared with counting by hand over the rows that the table was made
//! of.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod forms;
mod items;
mod pairs;
mod queries;
mod rejecting;
mod sets;
mod vectors;

use std::process::Command;
use std::sync::Arc;

use arrow_array::RecordBatch;
use trommel_engine::graph::{Graph, StageId};
use trommel_engine::operator::OperatorSpec;
use trommel_engine::runtime::RunOptions;
use trommel_operators::wave::Device;
use trommel_operators::{Collect, Memory};
use trommel_shim::{Form, StandIn};

/// Set in a child process, which finds the stand-in driver.
const ON_DEVICE: &str = "TABLES_ON_DEVICE";

/// The device of this process.
fn device() -> Device {
    if std::env::var_os(ON_DEVICE).is_some() { Device::Cuda(0) } else { Device::Cpu }
}

/// Runs the test of this name in a process of its own, whose device is the stand-in.
fn on_stand_in(test: &str) {
    let stand_in = StandIn::new(Form::Plain);
    let mut child: Command = stand_in.command(std::env::current_exe().unwrap());
    child.args(["--exact", test]).env(ON_DEVICE, "1");
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// A small random generator with a seed of its own.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        u32::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Adds a source of `table` in batches of `rows` rows.
fn source(graph: &mut Graph, name: &str, table: &RecordBatch, rows: usize) -> StageId {
    let cut = (0..table.num_rows()).step_by(rows);
    let cut = cut.map(|begin| table.slice(begin, rows.min(table.num_rows() - begin)));
    graph.add(name, Memory::new(table.schema(), cut.collect::<Vec<_>>()))
}

/// The rows of a stage over `tables`, in batches of `batch` rows; or the error.
fn run(
    tables: &[&RecordBatch],
    batch: usize,
    spec: impl OperatorSpec + 'static,
    cores: &[usize],
) -> Result<Vec<RecordBatch>, String> {
    let mut graph = Graph::new();
    let sources: Vec<_> = (0..)
        .zip(tables)
        .map(|(number, table)| source(&mut graph, &format!("table{number}"), table, batch))
        .collect();
    let stage = graph.add("stage", spec);
    for source in sources {
        graph.connect(source, stage);
    }
    graph.cores(stage, cores);
    let (sink, rows) = Collect::new();
    graph.add_after(stage, "rows", sink);
    let chain = |error: &dyn std::error::Error| {
        let chain = std::iter::successors(Some(error), |error| error.source());
        chain.map(|error| format!("{error}: ")).collect::<String>()
    };
    let topology = graph.build().map_err(|error| chain(&error))?;
    topology.run(RunOptions::new()).map_err(|error| chain(&error))?;
    Ok(rows.take())
}

/// A table of these columns.
fn table<'a>(columns: impl IntoIterator<Item = (&'a str, arrow_array::ArrayRef)>) -> RecordBatch {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// The column `name` of all `rows`, each value as text.
fn shown(rows: &[RecordBatch], name: &str) -> Vec<String> {
    let of_batch = |batch: &RecordBatch| {
        let column = Arc::clone(batch.column_by_name(name).unwrap());
        let options = arrow_cast::display::FormatOptions::default();
        let show = arrow_cast::display::ArrayFormatter::try_new(column.as_ref(), &options).unwrap();
        (0..batch.num_rows()).map(|row| show.value(row).to_string()).collect::<Vec<_>>()
    };
    rows.iter().flat_map(of_batch).collect()
}

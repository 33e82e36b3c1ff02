//! `trommel run`: a pipeline from a file.

use std::path::Path;

use trommel::Topology;
use trommel::files::{Destination, FileError};
use trommel::graph::StageInfo;

use crate::args::RunArguments;
use crate::config::{ConfigText, claim};
use crate::failure::Failure;
use crate::progress::{Ends, Progress};
use crate::server::{Listener, Server};
use crate::session::Session;
use trommel::report::Report;

pub(super) fn run(arguments: &RunArguments) -> Result<u8, Failure> {
    let config = ConfigText::read(&arguments.pipeline.file)?;
    let mut overrides = arguments.pipeline.overrides.clone();
    if arguments.pin {
        overrides.push("pin=true".parse().expect("a path and a value"));
    }
    let mut pipeline = config.load_to_run(&overrides)?;
    // Before the run, so that it is not in vain.
    let report = arguments.report.as_deref().map(|path| report_file(path, &mut pipeline.topology));
    let report = report.transpose()?;
    let listen = |address| Listener::bind(address, arguments.token_file.as_deref());
    let listener = arguments.listen.map(listen).transpose()?;
    let progress = Progress::new(ends(&pipeline.topology), !arguments.quiet);
    let drain = arguments.drain_seconds;
    let session = Session::start(pipeline.topology, pipeline.options, progress, drain)?;
    let serve = |listener| Server::start(listener, &pipeline.name, session.handle(), drain);
    let server = listener.map(serve).transpose()?;
    let outcome = session.wait();
    if let Some(server) = server {
        server.end();
    }
    let status = outcome.conclude();
    if let Some(file) = report {
        let report = Report::new(&pipeline.name, &outcome.metrics, outcome.error.as_ref());
        write_report(&file, &report).map_err(Failure::run)?;
    }
    Ok(status)
}

/// The file of the report, if it can be written and no stage reads or writes it.
fn report_file(path: &Path, topology: &mut Topology) -> Result<Destination, Failure> {
    let file = Destination::file(path).map_err(Failure::usage)?;
    file.probe().map_err(Failure::usage)?;
    claim(topology, file.claim("--report"))?;
    Ok(file)
}

fn write_report(file: &Destination, report: &Report<'_>) -> Result<(), FileError> {
    let mut file = file.replace()?;
    file.write(report.to_string().as_bytes())?;
    file.commit()
}

/// The stages at which rows enter the pipeline, and at which they leave it.
fn ends(topology: &Topology) -> Ends {
    let ids = |is_end: fn(&StageInfo) -> bool| {
        let stages = topology.stages().iter().filter(|stage| is_end(stage));
        stages.map(|stage| stage.id.clone()).collect()
    };
    Ends {
        sources: ids(|stage| stage.inputs.is_empty()),
        sinks: ids(|stage| stage.outputs.is_empty()),
    }
}

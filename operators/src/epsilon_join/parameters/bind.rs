//! Checks the parameters of the operator and makes its parts.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use arrow_schema::SchemaRef;
use trommel_engine::error::BindError;
use trommel_engine::operator::{BindContext, Demand, Fragment, OperatorSpec};
use trommel_engine::registry::Configured;
use trommel_kernels::vectors::Epsilon;

use super::operator::{EpsilonJoin, MEMORY_MAX};
use super::options::EpsilonOutput;
use super::rules::Rules;
use crate::epsilon_join::answer::chunk::EpsilonChunk;
use crate::epsilon_join::answer::kernel::EpsilonKernel;
use crate::epsilon_join::data::side::{Side, VectorSource};
use crate::epsilon_join::data::vectors::VectorInput;
use crate::epsilon_join::device::choice::has_method;
use crate::epsilon_join::device::flights::{BLOCKS, OpenFlights};
use crate::epsilon_join::prepare::EpsilonProducer;
use crate::epsilon_join::rows::collect::{EpsilonConsumer, ResultRows};
use crate::epsilon_join::stream::producer::StreamProducer;
use crate::expressions::ColumnInput;
use crate::shared::budget::Allowance;
use crate::shared::columns::DIMS_MAX;
use crate::shared::columns::carry::{CarriedColumns, carried_by_all, carried_demand};
use crate::shared::columns::ids::IdInput;
use crate::shared::parameters::{Mistakes, blame, refuse, selected_isa};
use crate::shared::rejected::{BadRows, OnError};
use crate::shared::state::{SnapshotFile, SnapshotFileError, check_input, read_file};
use crate::shared::window::Extent;
use crate::wave::{self, Device, DeviceChoice, DeviceSession, Wave};

impl OperatorSpec for EpsilonJoin {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=2
    }

    fn output_ports(&self) -> &'static [&'static str] {
        OnError::output_ports(self.on_error)
    }

    fn reject(&mut self) -> bool {
        OnError::reject(&mut self.on_error)
    }

    fn demand(&self, _: usize, _: &Demand) -> Demand {
        let carried = carried_demand(&self.carry, Demand::none());
        let ids = IdInput::demand(self.id.as_deref(), carried);
        let vectors = self.vector.as_slice().iter();
        let read = vectors.fold(ids, |demand, text| ColumnInput::demand(text, demand));
        OnError::demand(self.on_error, read)
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        let isa = selected_isa()?;
        let CheckedVectors { epsilon, sources, device, file, state, memory, window } =
            self.checked(inputs, &context)?;
        let kernels = Wave::kernels(device, context.cores);
        let session = DeviceSession::new(device);
        let claim = file.as_ref().and_then(SnapshotFile::claim);
        let Self { output, algorithm, tuning, on_error, .. } = *self;
        let rows = self.rows(&sources);
        let outputs = vec![SchemaRef::clone(rows.schema())];
        let device_memory_max = self.device_memory_max.unwrap_or(usize::MAX);
        let rules =
            Rules { epsilon, output, algorithm, isa, kernels, memory, device_memory_max, tuning };
        // A null vector is a fault: `on_error` decides, and the default is an error.
        let bad = BadRows::new(Some(on_error.unwrap_or_default()), inputs.len());
        let mut sides: Vec<Side> =
            (0..).zip(sources).map(|(input, source)| Side::new(source, input)).collect();
        let consumer = EpsilonConsumer::new(rows, &tuning);
        let in_flight = if device == Device::Cpu { 0 } else { BLOCKS };
        let wave = Wave::new(&session, Wave::chunks_of(kernels, in_flight), 0);
        let open = (device != Device::Cpu).then(|| OpenFlights {
            epsilon: epsilon.value(),
            output,
            tuning,
        });
        let kernel = |number| EpsilonKernel::new(isa, number, open.clone());
        let kernels = (0..kernels).map(kernel).collect();
        let make = move || EpsilonChunk::new(output, &tuning);
        let fragment = match window {
            Some(window) => {
                let side = (sides.remove(0), bad);
                let mut producer = StreamProducer::new(rules, window, side, file);
                if let Some((path, state)) = &state {
                    let named = |error| format!("{}: {error}", path.display());
                    producer.restore(state).map_err(|error| blame("restore", named(error)))?;
                }
                wave::parallel(producer, kernels, consumer, make, wave, outputs).claiming(claim)
            }
            None => {
                let choice = DeviceChoice::new(session, tuning.device_price);
                let producer = EpsilonProducer::new(rules, (sides, bad), choice);
                wave::parallel(producer, kernels, consumer, make, wave, outputs)
            }
        };
        Ok(fragment.with_early_outputs(OnError::rejected(on_error)))
    }
}

/// Parameters that fit each other and the inputs.
struct CheckedVectors {
    epsilon: Epsilon,
    sources: Vec<VectorSource>,
    device: Device,
    file: Option<SnapshotFile>,
    state: Option<(PathBuf, Vec<u8>)>,
    memory: Allowance,
    window: Option<Extent>,
}

impl EpsilonJoin {
    /// Checks all parameters.
    fn checked(
        &self,
        inputs: &[SchemaRef],
        context: &BindContext,
    ) -> Result<CheckedVectors, BindError> {
        let mut mistakes = Mistakes::default();
        mistakes.check(check_input(self.restore.as_deref(), self.snapshot.as_deref(), context));
        let epsilon = mistakes.check(self.bound());
        let sources = mistakes.check(self.sources(inputs));
        mistakes.check(self.check_output(inputs.len()));
        let device = mistakes.check(self.place(sources.as_deref()));
        mistakes.check(self.check_ranges());
        // If the join cannot have a state, faults of its files are not reported.
        let has_state = mistakes.check(self.check_state(sources.as_deref()));
        let file = has_state.and_then(|()| mistakes.check(self.file()));
        let state = has_state.and_then(|()| mistakes.check(self.state()));
        let memory = Allowance::of_stage(self.memory_max, MEMORY_MAX, &context.memory);
        let memory = mistakes.check(memory);
        let window = mistakes.check(self.extent(inputs.len()));
        mistakes.all(|| {
            Some(CheckedVectors {
                epsilon: epsilon?,
                sources: sources?,
                device: device?,
                file: file?,
                state: state?,
                memory: memory?,
                window: window?,
            })
        })
    }

    /// The bound of distances.
    fn bound(&self) -> Result<Epsilon, BindError> {
        let allowed = "expected a finite number of at least 0";
        let wrong = || refuse("epsilon", self.epsilon.to_string(), allowed);
        Epsilon::new(self.epsilon).ok_or_else(wrong)
    }

    /// Refuses outputs that a join of these inputs does not have.
    fn check_output(&self, inputs: usize) -> Result<(), BindError> {
        match self.output {
            EpsilonOutput::First if inputs > 1 => {
                let allowed = "vectors of one input are first or not; name one input";
                Err(refuse("output", "\"first\" with two inputs", allowed))
            }
            EpsilonOutput::Partners if self.window.is_some() => {
                let allowed = "partners are counted without a window";
                Err(refuse("output", "\"partners\" with a window", allowed))
            }
            _ => Ok(()),
        }
    }

    /// The file for the state.
    fn file(&self) -> Result<Option<SnapshotFile>, BindError> {
        let file = self.snapshot.as_deref().map(SnapshotFile::new).transpose();
        file.map_err(|error| blame("snapshot", error))
    }

    /// The state to begin with, and its file.
    fn state(&self) -> Result<Option<(PathBuf, Vec<u8>)>, BindError> {
        let path = self.missing.present(self.restore.as_deref());
        let state = path.map(|path| Ok((path.to_owned(), read_file(path)?)));
        state.transpose().map_err(|error: SnapshotFileError| blame("restore", error))
    }

    /// Refuses the parameters of a state if the join has no state, or if a state cannot hold the
    /// join's data.
    fn check_state(&self, sources: Option<&[VectorSource]>) -> Result<(), BindError> {
        let parameters = [("restore", &self.restore), ("snapshot", &self.snapshot)];
        for (parameter, path) in parameters {
            let Some(path) = path else { continue };
            if self.window.is_none() {
                let allowed = "set `window`; without one, the join has no state at its end";
                return Err(refuse(parameter, path.display().to_string(), allowed));
            }
            let Some([VectorSource { ids, vectors, carried }, ..]) = sources else { continue };
            let allowed = if ids.are_positions() || carried.id_type().is_some() {
                "name a column of ids of UInt32 as `id`; a state has no others"
            } else if !carried.is_empty() {
                "omit `carry`; a state has no carried columns"
            } else if vectors.dims().is_none() {
                "say the length of the vectors by `dims`; a state has vectors of one length"
            } else {
                continue;
            };
            return Err(refuse(parameter, path.display().to_string(), allowed));
        }
        Ok(())
    }

    /// The columns of each input that the parameters name.
    fn sources(&self, inputs: &[SchemaRef]) -> Result<Vec<VectorSource>, BindError> {
        let mut mistakes = Mistakes::default();
        let is_carried = !self.carry.as_slice().is_empty();
        let has_columns = self.output != EpsilonOutput::Count;
        mistakes.refuse(is_carried && !has_columns, || {
            let allowed = "`output`: \"count\" has no other columns";
            refuse("carry", "columns to carry", allowed)
        });
        let taken: &[&str] = match self.output {
            EpsilonOutput::Pairs | EpsilonOutput::Count => &[],
            EpsilonOutput::Partners => &["id", "partners"],
            EpsilonOutput::First => &["id"],
        };
        let ids = mistakes.check(IdInput::bind(inputs, self.id.as_deref()));
        let vectors = mistakes.check(VectorInput::bind(inputs, &self.vector, self.dims));
        let carried = match has_columns {
            true => mistakes.check(carried_by_all(&self.carry, inputs, taken)),
            false => Some(vec![Vec::new(); inputs.len()]),
        };
        let (ids, vectors, carried) = mistakes.all(|| Some((ids?, vectors?, carried?)))?;
        let columns = inputs.iter().zip(ids).zip(vectors).zip(carried);
        let source = |(((input, ids), vectors), columns): (((&SchemaRef, IdInput), _), _)| {
            let carried = CarriedColumns::new(input, &ids, columns);
            VectorSource { ids, vectors, carried }
        };
        Ok(columns.map(source).collect())
    }

    /// The device, if the device can join the vectors of `sources`, as far as the sources are
    /// known.
    fn place(&self, sources: Option<&[VectorSource]>) -> Result<Device, BindError> {
        let dims = sources.and_then(|sources| sources[0].vectors.dims());
        let device = self.device;
        device.check()?;
        let is_wanted = device.is_required();
        if self.window.is_some() && is_wanted {
            let allowed = "a streaming join runs on the CPU: `device` must be \"auto\" or \"cpu\"";
            return Err(refuse("device", format!("\"{device}\" with a window"), allowed));
        }
        let has_method = has_method(self.algorithm, dims.unwrap_or(DIMS_MAX as usize));
        if !has_method && is_wanted && sources.is_some() {
            let dims = dims.map_or_else(|| "unknown".to_owned(), |dims| dims.to_string());
            let value = format!("\"directory\" of {dims} dimensions with `device` \"{device}\"");
            let allowed = "a GPU has directories of up to 16 dimensions (`dims`); expected \"auto\" or \
                           \"nested_loop\"";
            return Err(refuse("algorithm", value, allowed));
        }
        Ok(if has_method && self.window.is_none() { device } else { Device::Cpu })
    }

    /// The window of a streaming join.
    fn extent(&self, inputs: usize) -> Result<Option<Extent>, BindError> {
        let Some(window) = self.window else { return Ok(None) };
        if inputs > 1 {
            let allowed = "a streaming join has one input, which it joins to itself";
            return Err(refuse("window", "a window with two inputs", allowed));
        }
        window.resolve().map(Some)
    }

    /// Rows of the output.
    fn rows(&self, sources: &[VectorSource]) -> ResultRows {
        let [first, last] = [&sources[0], &sources[sources.len() - 1]];
        match self.output {
            EpsilonOutput::Pairs => {
                let carried = [&first.carried, &last.carried];
                ResultRows::pairs(carried, self.tuning.carried_batch_bytes)
            }
            EpsilonOutput::Count => ResultRows::count(),
            EpsilonOutput::Partners => ResultRows::vectors(true, &first.carried),
            EpsilonOutput::First => ResultRows::vectors(false, &first.carried),
        }
    }
}

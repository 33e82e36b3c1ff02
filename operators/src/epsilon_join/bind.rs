//! Checks the parameters of the operator and makes its parts.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use arrow_schema::{DataType, SchemaRef};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{BindContext, Fragment, OperatorError, OperatorSpec};
use trommel_engine::placement::parallelism;
use trommel_engine::registry::Configured;
use trommel_kernels::Isa;
use trommel_kernels::vectors::Epsilon;

use super::chunk::EpsilonChunk;
use super::collect::{EpsilonConsumer, ResultRows};
use super::device::{DeviceChoice, has_method};
use super::flights::{BLOCKS, OpenFlights};
use super::kernel::EpsilonKernel;
use super::operator::{EpsilonJoin, MEMORY_MAX};
use super::options::EpsilonOutput;
use super::prepare::EpsilonProducer;
use super::rules::Rules;
use super::side::{Side, VectorColumns, carried_schema};
use super::stream::StreamProducer;
use crate::budget::Allowance;
use crate::carry::carried_columns;
use crate::columns::{DIMS_MAX, find_column};
use crate::parameters::{check_range, refuse};
use crate::state::{SnapshotFile, SnapshotFileError, check_input, read_file};
use crate::wave::{self, Device, DeviceSession, KERNELS_MAX, Wave};
use crate::window::Extent;

impl OperatorSpec for EpsilonJoin {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=2
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        check_input(self.restore.as_deref(), self.snapshot.as_deref(), &context)?;
        let Some(epsilon) = Epsilon::new(self.epsilon) else {
            let allowed = "expected a finite number of at least 0";
            return Err(refuse("epsilon", self.epsilon.to_string(), allowed));
        };
        let columns: Vec<VectorColumns> =
            inputs.iter().map(|input| self.columns(input)).collect::<Result<_, _>>()?;
        if let [left, right] = &columns[..]
            && left.dims != right.dims
        {
            let value = format!("vectors of {} and of {} coordinates", left.dims, right.dims);
            return Err(refuse("vector", value, "both inputs need vectors of one length"));
        }
        if inputs.len() > 1 && self.output == EpsilonOutput::First {
            let allowed = "vectors of one input are first or not; name one input";
            return Err(refuse("output", "\"first\" with two inputs", allowed));
        }
        let isa = Isa::selected().map_err(|error| BindErrorKind::Other(error.into()))?;
        let kernels = match context.cores {
            0 => parallelism(),
            named => named,
        };
        let kernels = kernels.min(KERNELS_MAX);
        let device = self.place(columns[0].dims)?;
        let choice = self.choice(device)?;
        self.check_state()?;
        let file = self.snapshot.as_deref().map(SnapshotFile::new).transpose();
        let file = file.map_err(|error| blame("snapshot", error))?;
        let claim = file.as_ref().and_then(SnapshotFile::claim);
        let state = self.state()?;
        let memory = Allowance::of_stage(self.memory_max, MEMORY_MAX, &context.memory)?;
        let Self { output, algorithm, tuning, not_finite, .. } = *self;
        let rows = self.rows(&columns);
        let outputs = vec![SchemaRef::clone(rows.schema())];
        let rules = Rules { epsilon, output, algorithm, isa, kernels, memory, tuning };
        let window = self.extent(inputs.len())?;
        let dims = columns[0].dims;
        let sides = columns.into_iter().zip(1..);
        let mut sides: Vec<Side> =
            sides.map(|(columns, input)| Side::new(columns, input, not_finite)).collect();
        let consumer = EpsilonConsumer::new(rows, &tuning);
        let in_flight = if device == Device::Cpu { 0 } else { BLOCKS };
        // The choice is made with the blocks, which are for a device only.
        let is_device_forced = device != Device::Cpu;
        let chunks = Wave::chunks_of(kernels, in_flight);
        let wave = Wave { is_device_forced, ..Wave::new(device, chunks, 0) };
        let open = (device != Device::Cpu).then(|| {
            let (session, epsilon) = (choice.session.clone(), epsilon.value());
            OpenFlights { session, dims, epsilon, output, tuning }
        });
        let kernel = |number| EpsilonKernel::new(isa, number, open.clone());
        let kernels = (0..kernels).map(kernel).collect();
        let make = move || EpsilonChunk::new(output, &tuning);
        Ok(match window {
            Some(window) => {
                let mut producer = StreamProducer::new(rules, window, sides.remove(0), file);
                if let Some((path, state)) = &state {
                    let named = |error| format!("{}: {error}", path.display());
                    producer.restore(state).map_err(|error| blame("restore", named(error)))?;
                }
                wave::parallel(producer, kernels, consumer, make, wave, outputs).claiming(claim)
            }
            None => {
                let producer = EpsilonProducer::new(rules, sides, choice);
                wave::parallel(producer, kernels, consumer, make, wave, outputs)
            }
        })
    }
}

fn blame(parameter: &'static str, error: impl Into<OperatorError>) -> BindError {
    BindErrorKind::Other(error.into()).at(parameter)
}

impl EpsilonJoin {
    /// The state to begin with, and its file.
    fn state(&self) -> Result<Option<(PathBuf, Vec<u8>)>, BindError> {
        let path = self.missing.present(self.restore.as_deref());
        let state = path.map(|path| Ok((path.to_owned(), read_file(path)?)));
        state.transpose().map_err(|error: SnapshotFileError| blame("restore", error))
    }

    /// Refuses the state of a join that has none, or that a state cannot hold.
    fn check_state(&self) -> Result<(), BindError> {
        let parameters = [("restore", &self.restore), ("snapshot", &self.snapshot)];
        for (parameter, path) in parameters {
            let Some(path) = path else { continue };
            if self.window.is_none() {
                let allowed = "set `window`; without one, the join has no state at its end";
                return Err(refuse(parameter, path.display().to_string(), allowed));
            }
            if !self.carry.is_empty() {
                let allowed = "omit `carry`; a state has no carried columns";
                return Err(refuse(parameter, path.display().to_string(), allowed));
            }
        }
        Ok(())
    }

    /// The columns of an input that the parameters name.
    fn columns(&self, input: &SchemaRef) -> Result<VectorColumns, BindError> {
        let wrong = |column: &str, found: DataType, expected, parameter| {
            let column = column.to_owned();
            BindErrorKind::ColumnType { column, found, expected }.at(parameter)
        };
        let id = match find_column(input, &self.id, "id")? {
            (index, DataType::UInt32) => index,
            (_, found) => return Err(wrong(&self.id, found, "UInt32", "id")),
        };
        let (vector, found) = find_column(input, &self.vector, "vector")?;
        let dims = match &found {
            DataType::FixedSizeList(item, dims) if *item.data_type() == DataType::Float32 => {
                u32::try_from(*dims).ok().filter(|dims| (1..=DIMS_MAX).contains(dims))
            }
            _ => None,
        };
        let Some(dims) = dims else {
            let expected = "FixedSizeList<Float32> of 1 to 4,096 coordinates";
            return Err(wrong(&self.vector, found, expected, "vector"));
        };
        let carry = match self.output {
            EpsilonOutput::Count if !self.carry.is_empty() => {
                let allowed = "`output`: \"count\" has no other columns";
                return Err(refuse("carry", "columns to carry", allowed));
            }
            _ => carried_columns(&self.carry, input)?,
        };
        let taken: &[&str] = match self.output {
            EpsilonOutput::Pairs | EpsilonOutput::Count => &[],
            EpsilonOutput::Partners => &["id", "partners"],
            EpsilonOutput::First => &["id"],
        };
        if let Some(name) = self.carry.iter().find(|name| taken.contains(&name.as_str())) {
            let allowed = "a column of the rows has this name; rename the column";
            return Err(refuse("carry", format!("`{name}`"), allowed));
        }
        let carried = carried_schema(input, &carry);
        Ok(VectorColumns { id, vector, dims: dims as usize, carry, carried })
    }

    /// The device, if it may be used for vectors of `dims` coordinates.
    fn place(&self, dims: usize) -> Result<Device, BindError> {
        let device = self.device;
        let is_wanted = matches!(device, Device::Cuda(_));
        if self.window.is_some() && is_wanted {
            let allowed = "a streaming join runs on the CPU: `device` must be \"auto\" or \"cpu\"";
            return Err(refuse("device", format!("\"{device}\" with a window"), allowed));
        }
        let has_method = has_method(self.algorithm, dims);
        if !has_method && is_wanted {
            let value = format!("\"directory\" of {dims} dimensions with `device` \"{device}\"");
            let allowed = "a GPU has directories of up to 16 dimensions; expected \"auto\" or \
                           \"nested_loop\"";
            return Err(refuse("algorithm", value, allowed));
        }
        Ok(if has_method && self.window.is_none() { device } else { Device::Cpu })
    }

    /// The choice between `device` and the CPU.
    fn choice(&self, device: Device) -> Result<DeviceChoice, BindError> {
        if let Some(bytes) = &self.device_memory_max {
            check_range("device_memory_max", bytes, &(1..=usize::MAX))?;
        }
        let memory_max = self.device_memory_max.unwrap_or(usize::MAX);
        Ok(DeviceChoice { device, session: DeviceSession::new(device), memory_max })
    }

    /// The window of a streaming join.
    fn extent(&self, inputs: usize) -> Result<Option<Extent>, BindError> {
        let Some(window) = self.window else { return Ok(None) };
        if inputs > 1 {
            let allowed = "a streaming join has one input, which it joins to itself";
            return Err(refuse("window", "a window with two inputs", allowed));
        }
        if self.output == EpsilonOutput::Partners {
            let allowed = "partners are counted without a window";
            return Err(refuse("output", "\"partners\" with a window", allowed));
        }
        window.resolve().map(Some)
    }

    /// Rows of the output.
    fn rows(&self, columns: &[VectorColumns]) -> ResultRows {
        let [first, last] = [&columns[0], &columns[columns.len() - 1]];
        match self.output {
            EpsilonOutput::Pairs => {
                let carried = [SchemaRef::clone(&first.carried), SchemaRef::clone(&last.carried)];
                ResultRows::pairs(carried, self.tuning.carried_batch_bytes)
            }
            EpsilonOutput::Count => ResultRows::count(),
            EpsilonOutput::Partners => ResultRows::vectors(true, &first.carried),
            EpsilonOutput::First => ResultRows::vectors(false, &first.carried),
        }
    }
}

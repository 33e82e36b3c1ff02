//! Checks the parameters of the operator and makes its parts.

use arrow_schema::SchemaRef;
use trommel_engine::error::BindError;
use trommel_engine::operator::{BindContext, Demand, Fragment, OperatorSpec};
use trommel_engine::registry::Configured;
use trommel_kernels::supports::Pair;

use super::operator::{FrequentPairs, MEMORY_MAX};
use super::options::{Layout, PairWindow};
use crate::expressions::ColumnInput;
use crate::frequent_pairs::answer::chunk::PairChunk;
use crate::frequent_pairs::answer::count::PairKernel;
use crate::frequent_pairs::device::flights::{IN_FLIGHT, OpenFlights};
use crate::frequent_pairs::plan::device_form::DeviceForm;
use crate::frequent_pairs::prepare::{PairProducer, Rules};
use crate::frequent_pairs::rows::collect::{FrequentRows, PairConsumer};
use crate::shared::budget::Allowance;
use crate::shared::names::ItemNames;
use crate::shared::parameters::{Mistakes, blame, refuse, selected_isa};
use crate::shared::rejected::{BadRows, OnError};
use crate::shared::sets::SetInput;
use crate::shared::state::{SnapshotFile, check_input, read_file};
use crate::shared::window::slides::Slides;
use crate::wave::{self, Device, DeviceChoice, DeviceSession, Wave};

impl OperatorSpec for FrequentPairs {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn output_ports(&self) -> &'static [&'static str] {
        OnError::output_ports(self.on_error)
    }

    fn reject(&mut self) -> bool {
        OnError::reject(&mut self.on_error)
    }

    fn demand(&self, _: usize, _: &Demand) -> Demand {
        OnError::demand(self.on_error, ColumnInput::demand(&self.set, Demand::none()))
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        let CheckedPairs { set, device, forms, slides, memory, file } =
            self.checked(inputs, &context)?;
        let names = ItemNames::new(set.item_type()).expect("items of sets have names");
        let isa = selected_isa()?;
        let kernels = Wave::kernels(device, context.cores);
        let Self { support, itemset, layout, tuning, .. } = *self;
        let rules =
            Rules { support, itemset, layout, kernels, slides, memory: memory.clone(), tuning };
        let rows = FrequentRows::new(
            names.item_type(),
            itemset,
            self.measures,
            slides.map(|slides| slides.borders),
        );
        let session = DeviceSession::new(device);
        let choice = DeviceChoice::new(session.clone(), tuning.device_price);
        let open = forms.first().map(|&form| {
            let lists_max = memory.bytes();
            OpenFlights { form, isa, lists_max, tuning }
        });
        let claim = file.as_ref().and_then(SnapshotFile::claim);
        let (bad, rejected) = (BadRows::new(self.on_error, 1), OnError::rejected(self.on_error));
        let mut producer = PairProducer::new(rules, (set, bad), names, (choice, forms), file);
        if let Some(path) = self.missing.present(self.restore.as_deref()) {
            let state = read_file(path).map_err(|error| blame("restore", error))?;
            let named = |error| format!("{}: {error}", path.display());
            producer.restore(&state).map_err(|error| blame("restore", named(error)))?;
        }
        let outputs = vec![SchemaRef::clone(rows.schema())];
        let chunk_bytes = tuning.chunk_pairs * size_of::<Pair>();
        let in_flight = if forms.is_empty() { 0 } else { IN_FLIGHT };
        let chunks = Wave::chunks_of(kernels, in_flight);
        let wave = Wave::new(session, chunks, chunk_bytes);
        let kernels = (0..kernels).map(|_| PairKernel::new(isa, open.clone())).collect();
        let consumer = PairConsumer::new(rows, tuning.batch_rows);
        let make = move || PairChunk::new(tuning.chunk_pairs);
        let fragment = wave::parallel(producer, kernels, consumer, make, wave, outputs);
        Ok(fragment.with_early_outputs(rejected).claiming(claim))
    }
}

/// Parameters that fit each other and the input.
struct CheckedPairs {
    set: SetInput,
    device: Device,
    forms: &'static [DeviceForm],
    slides: Option<Slides>,
    memory: Allowance,
    file: Option<SnapshotFile>,
}

impl FrequentPairs {
    /// Checks all parameters.
    fn checked(
        &self,
        inputs: &[SchemaRef],
        context: &BindContext,
    ) -> Result<CheckedPairs, BindError> {
        let mut mistakes = Mistakes::default();
        mistakes.check(check_input(self.restore.as_deref(), self.snapshot.as_deref(), context));
        mistakes.check(self.check_ranges());
        mistakes.refuse(self.support == crate::frequent_pairs::Support::Count(0), || {
            refuse("support", "0", "expected at least 1 transaction")
        });
        let sets = mistakes.check(SetInput::bind(inputs, &self.set));
        let is_named_before = |index: usize| {
            let (before, from) = self.measures.split_at(index);
            before.contains(&from[0])
        };
        mistakes.refuse((0..self.measures.len()).any(is_named_before), || {
            refuse("measures", "a measure twice", "name each measure once")
        });
        let places = mistakes.check(self.places());
        let slides = mistakes.check(self.window.map(PairWindow::resolve).transpose());
        let memory = Allowance::of_stage(self.memory_max, MEMORY_MAX, &context.memory);
        let memory = mistakes.check(memory);
        let file = self.snapshot.as_deref().map(SnapshotFile::new).transpose();
        let file = mistakes.check(file.map_err(|error| blame("snapshot", error)));
        mistakes.all(|| {
            let ((device, forms), set) = (places?, sets?.remove(0));
            let (slides, memory, file) = (slides?, memory?, file?);
            Some(CheckedPairs { set, device, forms, slides, memory, file })
        })
    }

    /// The device, and the forms of the data on that device; no forms for the CPU.
    fn places(&self) -> Result<(Device, &'static [DeviceForm]), BindError> {
        self.device.check()?;
        let layout = || format!("{:?} with `device` \"{}\"", self.layout.name(), self.device);
        match (self.device, DeviceForm::of(self.layout)) {
            (Device::Cpu, _) if self.layout == Layout::Tensor => {
                let allowed = "it needs a GPU: `device` must be \"auto\" or \"cuda\"";
                Err(refuse("layout", layout(), allowed))
            }
            (device, []) if device.is_required() => {
                let allowed = "expected \"auto\", \"batmap\", \"bitmap\", \"sparse\" or \"tensor\" \
                               on a GPU";
                Err(refuse("layout", layout(), allowed))
            }
            (Device::Cpu, _) | (_, []) => Ok((Device::Cpu, &[])),
            (device, forms) => Ok((device, forms)),
        }
    }
}

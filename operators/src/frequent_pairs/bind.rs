//! Checks the parameters of the operator and makes its parts.

use std::ops::RangeInclusive;

use arrow_schema::{DataType, SchemaRef};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{BindContext, Fragment, OperatorSpec};
use trommel_engine::placement::parallelism;
use trommel_engine::registry::Configured;
use trommel_kernels::Isa;
use trommel_kernels::supports::Pair;

use super::chunk::PairChunk;
use super::collect::{FrequentRows, PairConsumer};
use super::count::PairKernel;
use super::names::ItemNames;
use super::operator::FrequentPairs;
use super::options::PairWindow;
use super::prepare::{PairProducer, Rules};
use crate::columns::find_column;
use crate::parameters::{check_range, refuse};
use crate::wave::{self, CHUNKS_MAX, Device, Wave};

/// Maximum number of kernels: each needs a chunk, one more is filled and one is read.
const KERNELS_MAX: usize = CHUNKS_MAX - 2;

impl OperatorSpec for FrequentPairs {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=1
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        check_range("memory_max", &self.memory_max, &(1..=usize::MAX))?;
        check_range("itemset", &self.itemset, &(2..=3))?;
        if self.support == super::Support::Count(0) {
            return Err(refuse("support", "0", "expected at least 1 transaction"));
        }
        let (set, found) = find_column(&inputs[0], &self.set, "set")?;
        let names = match &found {
            DataType::List(item) => ItemNames::new(item.data_type()),
            _ => None,
        };
        let Some(names) = names else {
            let expected = "List<UInt32>, List<Utf8> or List<Dictionary<UInt32, Utf8>>";
            let column = self.set.clone();
            return Err(BindErrorKind::ColumnType { column, found, expected }.at("set"));
        };
        let is_named_before = |index: usize| {
            let (before, from) = self.measures.split_at(index);
            before.contains(&from[0])
        };
        if (0..self.measures.len()).any(is_named_before) {
            return Err(refuse("measures", "a measure twice", "name each measure once"));
        }
        let slides = self.window.map(PairWindow::resolve).transpose()?;
        let isa = Isa::selected().map_err(|error| BindErrorKind::Other(error.into()))?;
        let kernels = match context.cores {
            0 => parallelism(),
            named => named,
        };
        let kernels = kernels.min(KERNELS_MAX);
        let Self { support, itemset, layout, memory_max, tuning, .. } = *self;
        let rules = Rules { support, itemset, layout, kernels, slides, memory_max, tuning };
        let rows = FrequentRows::new(
            &names.item_type(),
            itemset,
            self.measures,
            slides.map(|slides| slides.borders),
        );
        let producer = PairProducer::new(rules, set, names);
        let outputs = vec![SchemaRef::clone(rows.schema())];
        // Two chunks for each kernel, of which one waits; one that is filled and one that is read.
        let chunk_bytes = tuning.chunk_pairs * size_of::<Pair>();
        let wave = Wave::new(Device::Cpu, CHUNKS_MAX.min(2 * kernels + 2), chunk_bytes);
        let kernels = (0..kernels).map(|_| PairKernel::new(isa)).collect();
        let consumer = PairConsumer::new(rows, tuning.batch_rows);
        let make = move || PairChunk::new(tuning.chunk_pairs);
        Ok(wave::parallel(producer, kernels, consumer, make, wave, outputs))
    }
}

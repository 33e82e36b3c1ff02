//! Checks the parameters of the operator and makes its parts.

use std::ops::RangeInclusive;

use arrow_schema::{DataType, SchemaRef};
use trommel_engine::error::BindError;
use trommel_engine::operator::{BindContext, Demand, Fragment, Load, OperatorSpec};
use trommel_engine::registry::Configured;
use trommel_kernels::Isa;

use super::operator::{MEMORY_MAX, SetSimilarityJoin};
use super::options::{JoinAlgorithm, JoinMode, JoinOutput};
use crate::expressions::ColumnInput;
use crate::set_similarity_join::answer::chunk::JoinChunk;
use crate::set_similarity_join::answer::kernel::JoinKernel;
use crate::set_similarity_join::join::JoinQuestion;
use crate::set_similarity_join::plan::opening::Opening;
use crate::set_similarity_join::plan::verify_plan::{PairKernel, VerifyPlan};
use crate::set_similarity_join::prepare::CollectionProducer;
use crate::set_similarity_join::rows::pair_rows::SimilarRows;
use crate::set_similarity_join::rows::{PairConsumer, ResultRows};
use crate::set_similarity_join::similarity::Bounds;
use crate::set_similarity_join::stream::{self, JoinWindow, StreamProducer, StreamRules};
use crate::shared::budget::Allowance;
use crate::shared::columns::carry::carried_demand;
use crate::shared::columns::column_schema;
use crate::shared::columns::ids::IdInput;
use crate::shared::parameters::{Mistakes, Names, blame, refuse, selected_isa};
use crate::shared::rejected::{BadRows, OnError};
use crate::shared::sets::{SetCollector, SetSource};
use crate::shared::window::Extent;
use crate::wave::{self, ChunkBytes, DeviceSession, KERNELS_MAX, Producer, Wave};

/// Default of `chunk_bytes`: a chunk stays in the second-level cache of a CPU; on a device,
/// smaller chunks leave multiprocessors idle (bench/reports/gpu.md, *Waves*).
const CHUNK_BYTES: ChunkBytes = ChunkBytes { on_cpu: 1 << 18, on_device: 5 << 20 };

/// Number of chunks in flight on a device. Two more chunks are filled and read meanwhile.
const IN_FLIGHT: usize = 3;

/// Cores, device and memory of a join.
struct Means {
    isa: Isa,
    plan: VerifyPlan,
    session: DeviceSession,
    cores: usize,
    memory: Allowance,
}

impl OperatorSpec for SetSimilarityJoin {
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

    fn demand(&self, _: usize, output: &Demand) -> Demand {
        let whole = match self.mode {
            JoinMode::Deduplicate => output.clone().unconditional(),
            JoinMode::Join => carried_demand(&self.carry, Demand::none()),
        };
        let read = ColumnInput::demand(&self.set, IdInput::demand(self.id.as_deref(), whole));
        OnError::demand(self.on_error, read)
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        let CheckedSets { bounds, plan, memory, mut sources, window } =
            self.checked(inputs, &context)?;
        let isa = selected_isa()?;
        let rules = window.map(|window| StreamRules {
            bounds,
            isa,
            window,
            is_each_pair: self.mode == JoinMode::Join,
            on_error: self.on_error,
            size_min: self.size_min,
            memory: memory.clone(),
            tuning: self.tuning,
        });
        let rejected = OnError::rejected(self.on_error);
        let fragment = match rules {
            Some(rules) if self.mode == JoinMode::Deduplicate => {
                let source = sources.remove(0).with_unseen_ids(&inputs[0]);
                stream::deduplicate(rules, source, inputs)
            }
            Some(rules) => {
                let rows = self.rows(&sources);
                let producer = StreamProducer::new(rules, sources.remove(0));
                let session = DeviceSession::new(plan.device);
                self.in_waves(producer, rows, Means { isa, plan, session, cores: 1, memory })
            }
            None => {
                let rows = self.rows(&sources);
                let session = DeviceSession::new(plan.device);
                let cores = self.cores(context.threads);
                let means = Means { isa, plan, session, cores, memory };
                self.in_waves(self.producer(sources, &means), rows, means)
            }
        };
        Ok(fragment.with_early_outputs(rejected))
    }
}

/// Parameters that fit each other and the inputs.
struct CheckedSets {
    bounds: Bounds,
    plan: VerifyPlan,
    memory: Allowance,
    sources: Vec<SetSource>,
    /// The window of a streaming join; `None` if the sets are collected first.
    window: Option<Extent>,
}

impl SetSimilarityJoin {
    /// Checks all parameters.
    fn checked(
        &self,
        inputs: &[SchemaRef],
        context: &BindContext,
    ) -> Result<CheckedSets, BindError> {
        let mut mistakes = Mistakes::default();
        mistakes.check(self.check_ranges());
        let memory = Allowance::of_stage(self.memory_max, MEMORY_MAX, &context.memory);
        let memory = mistakes.check(memory);
        let bounds = Bounds::new(self.similarity, self.threshold);
        let bounds = bounds.map_err(|error| blame("threshold", error));
        let bounds = mistakes.check(bounds);
        let plan = mistakes.check(self.plan());
        // If the rows have no place for carried columns, the inputs are not searched for these
        // columns.
        let carries = mistakes.check(self.check_carry()).is_some();
        let no_columns = Names::default();
        let carry = if carries { &self.carry } else { &no_columns };
        let sources = SetSource::bind(inputs, self.id.as_deref(), &self.set, carry);
        let sources = mistakes.check(sources);
        let window = mistakes.check(self.streaming(inputs.len(), plan));
        mistakes.all(|| {
            let (bounds, plan, memory) = (bounds?, plan?, memory?);
            Some(CheckedSets { bounds, plan, memory, sources: sources?, window: window? })
        })
    }

    /// The window of a streaming join; `None` if the sets are collected first.
    fn streaming(
        &self,
        inputs: usize,
        plan: Option<VerifyPlan>,
    ) -> Result<Option<Extent>, BindError> {
        let is_each_pair = self.mode == JoinMode::Join;
        let (parameter, value) = match self.window {
            None if is_each_pair => return Ok(None),
            None => ("mode", "\"deduplicate\""),
            Some(_) => ("window", "a window"),
        };
        let mut mistakes = Mistakes::default();
        mistakes.refuse(inputs > 1, || {
            let value = format!("{value} with {inputs} inputs");
            let allowed = "a streaming join has one input, which it joins to itself";
            refuse(parameter, value, allowed)
        });
        mistakes.refuse(!is_each_pair && self.output == JoinOutput::Count, || {
            let allowed = "deduplication has no `output`: rows pass or are dropped, and the report \
                           counts them";
            refuse("output", "\"count\" with `mode`: \"deduplicate\"", allowed)
        });
        let is_asked_for = plan.is_some_and(VerifyPlan::is_device_asked_for);
        mistakes.refuse(!is_each_pair && is_asked_for, || {
            let allowed = "duplicates are found on the CPU: omit `device` and `verify`";
            refuse("mode", "\"deduplicate\" on a device", allowed)
        });
        mistakes.refuse(self.algorithm != JoinAlgorithm::Auto, || {
            let value = format!("{:?} with {value}", self.algorithm.name());
            let allowed = "a streaming join has only one algorithm: omit `algorithm`";
            refuse("algorithm", value, allowed)
        });
        let window = self.window.map_or(Ok(Extent::Endless), JoinWindow::resolve);
        let window = mistakes.check(window);
        mistakes.all(|| window.map(Some))
    }

    /// Refuses carried columns if the rows have no place for them.
    fn check_carry(&self) -> Result<(), BindError> {
        let refused = match (self.mode, self.output) {
            _ if self.carry.as_slice().is_empty() => return Ok(()),
            (JoinMode::Join, JoinOutput::Pairs) => return Ok(()),
            (JoinMode::Deduplicate, _) => {
                "with `mode`: \"deduplicate\", rows keep all their columns"
            }
            (JoinMode::Join, JoinOutput::Count) => "`output`: \"count\" has no other columns",
        };
        Err(refuse("carry", "columns to carry", refused))
    }

    /// Rows of the output.
    fn rows(&self, sources: &[SetSource]) -> ResultRows {
        match self.output {
            JoinOutput::Pairs => {
                let carried = SetSource::carried_of(sources);
                let batch_bytes = self.tuning.carried_batch_bytes;
                ResultRows::Pairs(SimilarRows::new(self.similarity, carried, batch_bytes))
            }
            JoinOutput::Count => ResultRows::Count(column_schema("count", DataType::UInt64)),
        }
    }

    /// Number of cores that share the work of a collection, if there are `threads` threads. The
    /// published algorithms find candidates on one core, as in their papers.
    fn cores(&self, threads: usize) -> usize {
        match self.algorithm {
            JoinAlgorithm::Auto | JoinAlgorithm::GpuSignatures => threads.clamp(1, KERNELS_MAX),
            _ => 1,
        }
    }

    /// PREPARE of the join of a collection.
    fn producer(
        &self,
        sources: Vec<SetSource>,
        &Means { isa, plan, ref session, cores, ref memory }: &Means,
    ) -> CollectionProducer {
        let mut collector = SetCollector::within(memory);
        if sources.len() == 2 {
            collector = collector.two_sided();
        }
        let Self { similarity, threshold, algorithm, tuning, .. } = *self;
        let question = JoinQuestion {
            similarity,
            threshold,
            algorithm,
            isa,
            cores,
            search_cores: cores,
            verifies_on_device: plan.is_device_asked_for(),
            tuning,
        };
        let tiling = plan.tiling(session);
        let opening = Opening::new(plan, session, cores);
        let (size_min, is_count) = (self.size_min, self.output == JoinOutput::Count);
        let bad = BadRows::new(self.on_error, sources.len());
        let producer =
            CollectionProducer::new(collector, sources, bad, question, size_min, (tiling, opening));
        let is_free = algorithm == JoinAlgorithm::Auto && !plan.is_device_asked_for();
        match is_count {
            true if is_free => producer.merging_copies(),
            true => producer,
            false => producer.telling_copies(),
        }
    }

    /// The parts of the operator, with a kernel for each core and for each device.
    fn in_waves(
        &self,
        producer: impl Producer<Chunk = JoinChunk>,
        rows: ResultRows,
        Means { isa, plan, session, cores, memory }: Means,
    ) -> Fragment {
        let kernels = Wave::kernels(plan.device, cores);
        let same = |bytes| ChunkBytes { on_cpu: bytes, on_device: bytes };
        let chunk_bytes = self.chunk_bytes.map_or(CHUNK_BYTES, same);
        let wave = Wave {
            session,
            device_price: plan.device_price(),
            chunks: Wave::chunks_of(kernels, IN_FLIGHT),
            chunk_bytes,
        };
        let bytes_max = chunk_bytes.on_cpu.max(chunk_bytes.on_device);
        let sets_max = memory.bytes();
        let kernel = JoinKernel::new(isa, plan.kernel, bytes_max, IN_FLIGHT, sets_max);
        // `auto` leaves few candidates to verify, so on two cores the reading part needs a core of
        // its own more than the kernel does.
        let kernel = kernel.load(match self.algorithm {
            _ if kernels > 1 => Load::Worker,
            JoinAlgorithm::Auto => Load::Moderate,
            _ => Load::Heavy,
        });
        let of_pairs = match &rows {
            ResultRows::Pairs(of_pairs) if cores > 1 => Some(of_pairs.clone()),
            ResultRows::Pairs(_) | ResultRows::Count(_) => None,
        };
        let kernel = kernel.making_rows(of_pairs);
        let outputs = vec![SchemaRef::clone(rows.schema())];
        let output = self.output;
        let consumer = PairConsumer::new(rows);
        let kernels = vec![kernel; kernels];
        let make = move || JoinChunk::new(output);
        wave::parallel(producer, kernels, consumer, make, wave, outputs)
    }

    /// Device and kernel of the verification.
    fn plan(&self) -> Result<VerifyPlan, BindError> {
        let refuse =
            |allowed: String| refuse("verify", format!("{:?}", self.verify.name()), allowed);
        self.device.check()?;
        let plan = self.verify.plan(self.device).map_err(|error| refuse(error.to_string()))?;
        let has_tiles_only = self.algorithm == JoinAlgorithm::GpuSignatures;
        if has_tiles_only && plan.kernel != PairKernel::BySize {
            let allowed = "`algorithm` \"gpu_signatures\" allows only \"auto\" and \"cpu\"";
            return Err(refuse(allowed.to_owned()));
        }
        Ok(plan)
    }
}

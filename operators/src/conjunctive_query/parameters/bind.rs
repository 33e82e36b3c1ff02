//! Checks the parameters of the operator and makes its parts.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow_schema::{Schema, SchemaRef};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{BindContext, Claim, Demand, Fragment, OperatorSpec};
use trommel_engine::registry::Configured;
use trommel_kernels::Isa;

use super::operator::{ConjunctiveQuery, MEMORY_MAX};
use super::options::IndexSource;
use crate::conjunctive_query::answer::chunk::QueryChunk;
use crate::conjunctive_query::answer::kernel::QueryKernel;
use crate::conjunctive_query::data::stored::{Destinations, IndexFileError, OpenedIndex, open};
use crate::conjunctive_query::device::choice::{BatchChoice, BatchRules};
use crate::conjunctive_query::device::flights::OpenFlights;
use crate::conjunctive_query::plan::buckets::BucketRules;
use crate::conjunctive_query::plan::limits::{ChunkLimits, DeviceRoom, IN_FLIGHT};
use crate::conjunctive_query::prepare::{Columns, QueryProducer, Rules};
use crate::conjunctive_query::rows::collect::{AnswerConsumer, AnswerRows};
use crate::expressions::ColumnInput;
use crate::shared::budget::Allowance;
use crate::shared::columns::carry::{carried_columns, carried_demand};
use crate::shared::items::result_type;
use crate::shared::names::ItemNames;
use crate::shared::parameters::{Mistakes, blame, refuse, selected_isa};
use crate::shared::rejected::{BadRows, OnError};
use crate::shared::sets::SetInput;
use crate::shared::state::{SnapshotFile, check_input};
use crate::wave::{self, Device, DeviceChoice, DeviceSession, Wave};

/// Names of the columns of answers.
const ANSWER: [&str; 4] = ["query", "documents", "count", "latency_us"];

impl OperatorSpec for ConjunctiveQuery {
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
        // Documents have the names, and queries the carried columns.
        let carried = carried_demand(&self.carry, Demand::none());
        let named = self.name.iter().fold(carried, |all, name| ColumnInput::demand(name, all));
        OnError::demand(self.on_error, ColumnInput::demand(&self.set, named.of_words()))
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        let queries = &inputs[inputs.len() - 1];
        let CheckedQueries { columns, names, memory, begin, destinations, claims } =
            self.checked(inputs, &context)?;
        let is_reused = begin.is_some() && self.restore.is_none();
        let kernels = Wave::kernels(self.device, context.cores);
        let isa = selected_isa()?;
        let rules = self.rules(kernels, isa, is_reused, memory);
        let rows = self.rows(queries, &columns);
        let session = DeviceSession::new(self.device);
        let (choice, open) = self.choice(&session, kernels);
        let mut producer = QueryProducer::new(rules, columns, names, choice, destinations);
        if let Some(OpenedIndex { names, segment, .. }) = begin {
            let begun = producer.begin_with(names, segment);
            begun.map_err(|error| blame("memory_max", error))?;
        }
        let outputs = vec![SchemaRef::clone(rows.schema())];
        let in_flight = if self.device == Device::Cpu { 0 } else { IN_FLIGHT };
        let chunks = Wave::chunks_of(kernels, in_flight);
        let wave = Wave::new(session, chunks, 0);
        let (output, tuning) = (self.output, self.tuning);
        let kernel = |_| QueryKernel::new(isa, output, open.clone());
        let kernels = (0..kernels).map(kernel).collect();
        let consumer = AnswerConsumer::new(rows, tuning);
        let make = QueryChunk::default;
        let fragment = wave::parallel(producer, kernels, consumer, make, wave, outputs);
        Ok(fragment.with_early_outputs(OnError::rejected(self.on_error)).claiming(claims))
    }
}

/// Parameters that fit each other and the inputs.
struct CheckedQueries {
    columns: Columns,
    names: ItemNames,
    memory: Allowance,
    /// The index that the operator begins with, if there is one.
    begin: Option<OpenedIndex>,
    destinations: Destinations,
    claims: Vec<Claim>,
}

impl ConjunctiveQuery {
    /// Checks all parameters.
    fn checked(
        &self,
        inputs: &[SchemaRef],
        context: &BindContext,
    ) -> Result<CheckedQueries, BindError> {
        let mut mistakes = Mistakes::default();
        let has_documents = inputs.len() == 2;
        let fits = mistakes.check(self.check()).is_some();
        mistakes.check(check_input(self.restore.as_deref(), self.snapshot.as_deref(), context));
        let sets = mistakes.check(SetInput::bind(inputs, &self.set));
        let documents_names = if has_documents { self.names(&inputs[0]) } else { Ok(None) };
        let documents_names = mistakes.check(documents_names);
        let queries = &inputs[inputs.len() - 1];
        let carry = mistakes.check(carried_columns(&self.carry, queries, &ANSWER));
        let memory = Allowance::of_stage(self.memory_max, MEMORY_MAX, &context.memory);
        let memory = mistakes.check(memory);
        let names = sets
            .as_ref()
            .map(|sets| ItemNames::new(sets[0].item_type()).expect("items of sets have names"));
        // The file of an index is opened only after the parameters that name it and its terms are
        // known to be valid.
        let (mut begin, mut files) = (None, None);
        if let (true, Some(names), Some(memory)) = (fits, &names, &memory) {
            begin = mistakes.check(self.begin(has_documents, names, memory.bytes()));
            let is_reused = self.restore.is_none() && begin.as_ref().is_some_and(Option::is_some);
            files = mistakes.check(self.destinations(has_documents && !is_reused));
        }
        mistakes.all(|| {
            let (mut sets, carry) = (sets?, carry?);
            let queries = sets.remove(inputs.len() - 1);
            let documents = sets.pop().zip(documents_names);
            let bad = BadRows::new(self.on_error, inputs.len());
            let columns = Columns { documents, queries, carry, bad };
            let ((destinations, claims), begin) = (files?, begin?);
            let (names, memory) = (names?, memory?);
            Some(CheckedQueries { columns, names, memory, begin, destinations, claims })
        })
    }

    fn check(&self) -> Result<(), BindError> {
        let is_reused = self.index == IndexSource::Reuse;
        let reuse = |is_wrong: bool, allowed: &str| match is_reused && is_wrong {
            true => Err(refuse("index", "\"reuse\"", allowed)),
            false => Ok(()),
        };
        BindError::collect([
            self.check_ranges(),
            self.device.check(),
            reuse(self.index_path.is_none(), "name the file as `index_path`"),
            reuse(self.restore.is_some(), "omit `restore`"),
        ])
    }

    /// The names of documents, which are texts.
    fn names(&self, input: &SchemaRef) -> Result<Option<ColumnInput>, BindError> {
        let Some(name) = &self.name else { return Ok(None) };
        let (column, found) = ColumnInput::bind(input, name, "name")?;
        if result_type(&found).is_string() {
            return Ok(Some(column));
        }
        let (column, expected) = (name.clone(), "a text");
        Err(BindErrorKind::ColumnType { column, found, expected }.at("name"))
    }

    /// The index that the operator begins with, if there is one.
    fn begin(
        &self,
        has_documents: bool,
        names: &ItemNames,
        memory_max: usize,
    ) -> Result<Option<OpenedIndex>, BindError> {
        let restore = self.missing.present(self.restore.as_deref());
        let (path, parameter) = match (restore, self.index_path.as_deref()) {
            (Some(path), _) => (path, "restore"),
            (None, Some(path)) if !has_documents => (path, "index_path"),
            (None, Some(path)) if self.index == IndexSource::Reuse && path.exists() => {
                (path, "index_path")
            }
            (None, _) if has_documents => return Ok(None),
            (None, _) => {
                let allowed = "with queries as the only input, name the file of an index";
                return Err(refuse("index_path", "no file", allowed));
            }
        };
        let opened = self.open(path, names, memory_max).and_then(|opened| match parameter {
            // A state of `restore` may have only a part of the documents.
            "index_path" if opened.is_stopped => {
                Err(IndexFileError::Stopped(opened.segment.lists.documents()))
            }
            _ => Ok(opened),
        });
        Ok(Some(opened.map_err(|error| match error {
            IndexFileError::Full(_) => blame("memory_max", named(path, error)),
            _ => blame(parameter, named(path, error)),
        })?))
    }

    fn open(
        &self,
        path: &Path,
        names: &ItemNames,
        memory_max: usize,
    ) -> Result<OpenedIndex, IndexFileError> {
        let opened = open(path, names.item_type(), memory_max)?;
        match (&self.name, &opened.segment.names) {
            _ if opened.segment.lists.documents() == 0 => Ok(opened),
            (Some(_), None) => Err(IndexFileError::Names("no names")),
            (None, Some(_)) => Err(IndexFileError::Names("names")),
            _ => Ok(opened),
        }
    }

    /// The files for the index, and claims on these files.
    fn destinations(&self, has_documents: bool) -> Result<(Destinations, Vec<Claim>), BindError> {
        let index = self.index_path.as_ref().filter(|_| has_documents);
        let mut claims = Vec::new();
        let mut file = |path: Option<&PathBuf>, parameter| {
            let Some(path) = path else { return Ok::<_, BindError>(None) };
            let file = SnapshotFile::new(path).map_err(|error| blame(parameter, error))?;
            claims.extend(file.claim_as(parameter));
            Ok(Some(file))
        };
        let index = file(index, "index_path")?;
        let snapshot = file(self.snapshot.as_ref(), "snapshot")?;
        Ok((Destinations::new(index, snapshot), claims))
    }

    fn rules(&self, kernels: usize, isa: Isa, is_reused: bool, memory: Allowance) -> Rules {
        let buckets = BucketRules {
            queries: self.batch_queries,
            deadline: Duration::from_secs_f64(self.deadline_ms / 1_000.0),
            answer_documents: self.tuning.answer_documents,
        };
        let Self { over, tuning, .. } = *self;
        Rules { over, buckets, kernels, memory, is_reused, isa, tuning }
    }

    /// The choice between the device and the CPU, and the values that open the device.
    pub(crate) fn choice(
        &self,
        session: &DeviceSession,
        kernels: usize,
    ) -> (BatchChoice, Option<OpenFlights>) {
        let Self { device, output, tuning, batch_queries, .. } = *self;
        let limits = ChunkLimits::new(output, batch_queries, &tuning);
        let most = self.device_memory_max.unwrap_or(usize::MAX);
        let choice = DeviceChoice::new(session.clone(), tuning.device_price);
        let room = DeviceRoom::new(session.clone(), &limits, most, tuning.device_list_words);
        let open = (device != Device::Cpu).then(|| OpenFlights::new(output, limits, room.clone()));
        (BatchChoice::new(choice, BatchRules { output, limits, kernels }, room), open)
    }

    /// Rows of the output.
    fn rows(&self, queries: &Schema, columns: &Columns) -> AnswerRows {
        let carried = queries.project(&columns.carry).expect("columns of the input");
        AnswerRows::new(self.output, &carried, self.name.is_some(), self.latency)
    }
}

fn named(path: &Path, error: IndexFileError) -> String {
    format!("{}: {error}", path.display())
}

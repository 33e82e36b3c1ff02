//! From the parameters of the operator to its parts.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use arrow_schema::{DataType, Field, SchemaRef};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::memory::MemoryBudget;
use trommel_engine::operator::{
    BindContext, Body, Claim, Demand, Division, Fragment, Load, Operator, OperatorSpec, Part,
};
use trommel_engine::registry::Configured;

use super::operator::{Algorithm, Emit, FrequentItems, Parallel};
use crate::expressions::{Chosen, ColumnInput, choose, demand_of};
use crate::frequent_items::counting::memory::StateMemory;
use crate::frequent_items::counting::partial::{Merge, Read, Worker};
use crate::frequent_items::counting::partial_windows::{Cut, MergePanes, PaneWorker};
use crate::frequent_items::counting::scope::{Scope, check_bytes};
use crate::frequent_items::counting::state::{Counter, Counting, restore_like};
use crate::frequent_items::counting::window_rows::{WindowRows, window_schema};
use crate::frequent_items::counting::windows::Windows;
use crate::frequent_items::input::columns::{Input, ItemInput, WeightsFull};
use crate::frequent_items::published::parallel_filter as pipeline;
use crate::frequent_items::rows::batches::Saving;
use crate::frequent_items::rows::emission::Emission;
use crate::frequent_items::rows::labels::{label_of, parts_of};
use crate::frequent_items::rows::questions::Report;
use crate::frequent_items::rows::ranked::ranked_schema;
use crate::shared::items::{Column, Text, native_type, result_type};
use crate::shared::parameters::{Mistakes, blame, refuse, selected_isa};
use crate::shared::rejected::OnError;
use crate::shared::state::{SnapshotFile, Stamp, check_input, read_file};
use crate::shared::window::borders::Borders;
use crate::shared::window::cutter::WindowCutter;
use crate::shared::window::slides::Slides;
use crate::summary::{
    CapacityError, Decayed, EndedPanes, Fading, Filter, PaneQueue, Sieve, SpaceSaving, Stored,
    Summary,
};

/// The operator's shares of the cores and of the memory of the pipeline.
pub(crate) struct Sharing {
    /// Whether several workers may count, each with a summary of its own.
    pub(crate) divides: bool,
    pub(crate) memory: MemoryBudget,
}

impl Sharing {
    /// The memory of a summary that takes `bytes` without text.
    fn state(&self, bytes: usize) -> Result<StateMemory, BindError> {
        StateMemory::new(&self.memory, bytes).map_err(|error| blame("counters", error))
    }
}

impl OperatorSpec for FrequentItems {
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
        let weight = self.weight.iter();
        let demand = weight.fold(Demand::none(), |demand, text| ColumnInput::demand(text, demand));
        let read = match self.item.as_slice() {
            several if several.iter().any(|text| has_all(text)) => Demand::all(),
            [one] => ColumnInput::demand(one, demand),
            several => several.iter().fold(demand, |demand, text| demand_of(text, demand)),
        };
        OnError::demand(self.on_error, read)
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        let algorithm = self.chosen_algorithm();
        let CheckedItems { item, item_type, weight, divides } =
            self.checked(&inputs[0], algorithm, &context)?;
        let input = Input::new((item, item_type.clone()), weight, self.item_bytes_max);
        let input = input.on_error(self.on_error);
        let input = if self.fades() { input.fading() } else { input };
        let sharing = Sharing { divides, memory: context.memory };
        let fragment = match native_type(&result_type(&item_type)) {
            Some(DataType::UInt32) => self.bind_items::<u32>(input, algorithm, &sharing),
            Some(DataType::UInt64) => self.bind_items::<u64>(input, algorithm, &sharing),
            // Texts are counted as texts, and so are rows of several columns.
            _ => self.bind_items::<Text>(input, algorithm, &sharing),
        };
        Ok(fragment?.with_early_outputs(OnError::rejected(self.on_error)))
    }
}

/// Columns of the output in addition to the items.
const TAKEN: [&str; 6] = ["rank", "count", "error", "window_start", "window_end", "complete"];

/// Whether an item stands for all columns: `*`, or `* except (a)`.
fn has_all(item: &str) -> bool {
    item.trim_start().starts_with('*')
}

/// The type of items in results, if items of that type can be counted.
fn countable(column: &str, found: DataType) -> Result<DataType, BindError> {
    let kind = result_type(&found);
    if native_type(&kind).is_some() {
        return Ok(kind);
    }
    let expected = "a number, a text, a date, a point in time or a truth value";
    Err(BindErrorKind::ColumnType { column: column.to_owned(), found, expected }.at("item"))
}

/// Parameters that fit each other and the input.
struct CheckedItems {
    item: ItemInput,
    item_type: DataType,
    weight: Option<ColumnInput>,
    divides: bool,
}

impl FrequentItems {
    /// Checks all parameters, except the sizes of summaries and the content of files.
    fn checked(
        &self,
        input: &SchemaRef,
        algorithm: Algorithm,
        context: &BindContext,
    ) -> Result<CheckedItems, BindError> {
        let mut mistakes = Mistakes::default();
        mistakes.check(check_input(self.restore.as_deref(), self.snapshot.as_deref(), context));
        mistakes.check(self.check_ranges());
        let item = mistakes.check(self.item_input(input));
        let weight = mistakes.check(self.weight_input(input));
        let divides = mistakes.check(self.divides(algorithm, context));
        let emission = mistakes.check(self.check_emission());
        let emits = emission.is_some() && self.emit == Emit::Every;
        mistakes.check(self.check_fading(algorithm, emits));
        if let Some(bytes) = self.state_bytes_max {
            mistakes.refuse(algorithm != Algorithm::Sieve, || {
                refuse("state_bytes_max", bytes.to_string(), "for the algorithm `sieve` only")
            });
        }
        mistakes.all(|| {
            let (item, item_type) = item?;
            Some(CheckedItems { item, item_type, weight: weight?, divides: divides? })
        })
    }

    /// Refuses parameters that do not go together with `window` or `decay`. `emits` says that rows
    /// are emitted before the end.
    fn check_fading(&self, algorithm: Algorithm, emits: bool) -> Result<(), BindError> {
        let mut mistakes = Mistakes::default();
        mistakes.check(Scope::new(self.window.as_ref(), self.decay.as_ref()));
        let given = [("window", self.window.is_some()), ("decay", self.decay.is_some())];
        let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) else {
            return mistakes.none();
        };
        mistakes.check(self.refuse_files(name));
        mistakes.refuse(algorithm == Algorithm::ParallelFilter, || {
            let value = format!("\"parallel_filter\" beside `{name}`");
            refuse("algorithm", value, "use another algorithm; they run on one core")
        });
        mistakes.refuse(self.window.is_some() && emits, || {
            let allowed = "a window emits when it closes; leave `emit` out";
            refuse("emit", "\"every\" beside `window`", allowed)
        });
        mistakes.none()
    }

    /// The items, and their type in results: the type of a column, or a struct of several columns.
    fn item_input(&self, schema: &SchemaRef) -> Result<(ItemInput, DataType), BindError> {
        let texts = match self.item.as_slice() {
            [] => return Err(refuse("item", "no column", "name at least one")),
            [one] if !has_all(one) => {
                let (column, found) = ColumnInput::bind(schema, one, "item")?;
                return Ok((ItemInput::One(column), countable(one, found)?));
            }
            several => several,
        };
        let mut mistakes = Mistakes::default();
        let (mut columns, mut fields) = (Vec::new(), Vec::<Field>::new());
        let mut names: HashSet<String> = TAKEN.map(str::to_owned).into();
        for text in texts {
            let chosen = choose(text, schema).map_err(|error| blame("item", error));
            for Chosen { name, expression, is_unnested } in
                mistakes.check(chosen).into_iter().flatten()
            {
                if is_unnested {
                    let allowed = "make rows of the list by `select` before";
                    mistakes.refuse(true, || refuse("item", format!("`{text}`"), allowed));
                    continue;
                }
                mistakes.refuse(!names.insert(name.clone()), || {
                    let allowed = "a column of the rows has this name; rename it: \"x as name\"";
                    refuse("item", format!("`{name}`"), allowed)
                });
                let kind = mistakes.check(countable(text, expression.data_type().clone()));
                fields.extend(kind.map(|kind| Field::new(name, kind, false)));
                columns.push(expression);
            }
        }
        mistakes.none()?;
        Ok((ItemInput::Several(columns), DataType::Struct(fields.into())))
    }

    /// The weights: whole numbers.
    fn weight_input(&self, schema: &SchemaRef) -> Result<Option<ColumnInput>, BindError> {
        let Some(text) = &self.weight else { return Ok(None) };
        match ColumnInput::bind(schema, text, "weight")? {
            (weight, kind) if kind.is_integer() => Ok(Some(weight)),
            (_, found) => {
                let (column, expected) = (text.clone(), "a whole number");
                Err(BindErrorKind::ColumnType { column, found, expected }.at("weight"))
            }
        }
    }

    /// Refuses `emit`, `every` and `every_seconds` that do not go together.
    fn check_emission(&self) -> Result<(), BindError> {
        match (self.emit, self.every, self.every_seconds) {
            (Emit::End, None, None) => Ok(()),
            (Emit::End, Some(every), _) => {
                let allowed = "set `emit` to \"every\", or leave `every` out";
                Err(refuse("every", every.to_string(), allowed))
            }
            (Emit::End, None, Some(seconds)) => {
                let allowed = "set `emit` to \"every\", or leave `every_seconds` out";
                Err(refuse("every_seconds", seconds.to_string(), allowed))
            }
            (Emit::Every, None, None) => {
                let allowed = "set `every` to the number of items between two emissions, or \
                               `every_seconds` to the time";
                Err(refuse("emit", "\"every\" without a number", allowed))
            }
            (Emit::Every, _, _) => Ok(()),
        }
    }

    /// The times at which rows are emitted, and the choice of the rows; the parameters are checked.
    fn emission(&self) -> Emission {
        let period = self.every_seconds.map(Duration::from_secs_f64);
        let share = self.threshold.unwrap_or_default();
        let report = Report { n: self.n.unwrap_or(usize::MAX), share };
        Emission::new(report, self.every, period)
    }

    /// The algorithm that counts.
    fn chosen_algorithm(&self) -> Algorithm {
        match (self.algorithm, self.parallel) {
            (Algorithm::Auto, Parallel::Pipeline) => Algorithm::ParallelFilter,
            (Algorithm::Auto, _) if self.decay.is_some() => Algorithm::SpaceSaving,
            (Algorithm::Auto, _) => Algorithm::Sieve,
            (Algorithm::Filter, Parallel::Pipeline) => Algorithm::ParallelFilter,
            (chosen, _) => chosen,
        }
    }

    /// Whether several workers may count, each with a summary of its own.
    pub(crate) fn divides(
        &self,
        algorithm: Algorithm,
        context: &BindContext,
    ) -> Result<bool, BindError> {
        let conflict = |value: &str, allowed: &str| {
            let (value, allowed) = (value.to_owned(), allowed.to_owned());
            Err(BindErrorKind::Value { value, allowed }.at("parallel"))
        };
        let is_pipeline = algorithm == Algorithm::ParallelFilter;
        match self.parallel {
            Parallel::Auto if is_pipeline => Ok(false),
            Parallel::Auto => {
                let is_asked = context.cores > 1 || context.workers.is_some();
                Ok(context.threads > 1 && (self.may_differ() || is_asked))
            }
            Parallel::Off if is_pipeline => {
                conflict("\"off\"", "`parallel_filter` has two parts; `filter` is the same in one")
            }
            Parallel::Off => Ok(false),
            Parallel::Pipeline if is_pipeline => Ok(false),
            Parallel::Pipeline => {
                conflict("\"pipeline\"", "set `algorithm` to \"filter\", or leave it out")
            }
            Parallel::Partition if is_pipeline => {
                conflict("\"partition\"", "set `algorithm` to another one than \"parallel_filter\"")
            }
            Parallel::Partition => Ok(true),
        }
    }

    /// Whether counts may differ from run to run within their bounds. Other counts are those of one
    /// worker, unless several are asked for.
    fn may_differ(&self) -> bool {
        self.seed.is_none() && matches!(self.algorithm, Algorithm::Sieve | Algorithm::Auto)
    }

    /// Whether counts fade, by a window or by decay.
    fn fades(&self) -> bool {
        self.window.is_some() || self.decay.is_some()
    }

    pub(crate) fn bind_items<K: Column>(
        &self,
        input: Input,
        algorithm: Algorithm,
        sharing: &Sharing,
    ) -> Result<Fragment, BindError> {
        let isa = selected_isa;
        let filter = || -> Result<Filter<K>, BindError> {
            Filter::new(isa()?, self.counters, self.filter_bins).map_err(capacity)
        };
        let bytes = match algorithm {
            Algorithm::Sieve | Algorithm::Auto => Sieve::<K>::bytes_max(self.counters),
            _ => SpaceSaving::<K>::bytes_max(self.counters),
        };
        if self.state_bytes_max.is_none() {
            // Making counters can take seconds, so the memory is checked first.
            drop(sharing.state(bytes)?);
        }
        match algorithm {
            Algorithm::SpaceSaving => {
                let summary = SpaceSaving::<K>::new(self.counters).map_err(capacity)?;
                self.counting(summary, input, sharing)
            }
            Algorithm::ParallelFilter => self.pipeline(filter()?, input, sharing),
            Algorithm::Filter => self.counting(filter()?, input, sharing),
            Algorithm::Sieve | Algorithm::Auto => {
                let summary = match self.state_bytes_max {
                    None => Sieve::<K>::new(isa()?, self.counters),
                    Some(bytes) => Sieve::<K>::within(isa()?, self.counters, bytes),
                };
                let summary = summary.map_err(capacity)?;
                let summary = match self.seed {
                    None => summary,
                    Some(seed) => summary.with_seed(seed),
                };
                self.counting(summary, input, sharing)
            }
        }
    }

    /// The parts with one summary, or with several summaries on several cores.
    fn counting<K: Column>(
        &self,
        summary: impl Stored<K>,
        input: Input,
        sharing: &Sharing,
    ) -> Result<Fragment, BindError> {
        let emission = self.emission();
        let bytes = summary.state_bytes_max();
        let scope = Scope::new(self.window.as_ref(), self.decay.as_ref())?;
        let item = input.item_type().clone();
        let ranked = vec![ranked_schema(&item)];
        match scope {
            Scope::All => {
                let summary = self.restored(summary, &item)?;
                let (saving, claim) = self.saving::<K>(&item)?;
                // Batches in turn make rows before the end those of a batch boundary, and counts
                // with a seed repeatable, as the counts of the other algorithms are.
                let reads_first = emission.is_periodic() || !self.may_differ();
                let fragment = if sharing.divides {
                    let reader = reads_first.then_some(None);
                    partial((summary, reader), &input, emission, saving, sharing)?
                } else {
                    let memory = sharing.state(bytes)?;
                    let counter = Counter::<K, _>::new(summary, &item, emission, saving, memory);
                    Fragment::operator(Load::Heavy, Counting::new(input, counter), ranked)
                };
                Ok(fragment.claiming(claim))
            }
            Scope::Decay(half_life) => {
                if sharing.divides {
                    let reader = Some(Some(Fading::new(half_life)));
                    let saving = Saving::default();
                    return partial::<K, _>((summary, reader), &input, emission, saving, sharing);
                }
                let decayed = Decayed::new(summary, half_life);
                let memory = sharing.state(bytes)?;
                let counter =
                    Counter::<K, _>::new(decayed, &item, emission, Saving::default(), memory);
                Ok(Fragment::operator(Load::Heavy, Counting::new(input, counter), ranked))
            }
            Scope::Window { panes, borders } => match borders.pane_items() {
                // With one counter more than items, a pane is exact.
                Some(items) if items < self.counters => {
                    let live = SpaceSaving::<K>::new(items + 1).map_err(capacity)?;
                    self.windows(live, self.counters, (panes, borders), input, sharing)
                }
                _ => {
                    let monitored_max = summary.monitored_max();
                    self.windows(summary, monitored_max, (panes, borders), input, sharing)
                }
            },
        }
    }

    /// Windows whose live pane is counted by `live`.
    fn windows<K: Column>(
        &self,
        live: impl Summary<K>,
        monitored_max: usize,
        (panes, borders): (usize, Borders),
        input: Input,
        sharing: &Sharing,
    ) -> Result<Fragment, BindError> {
        let emission = self.emission();
        let pane_items = borders.pane_items().unwrap_or(usize::MAX);
        let of_live = live.state_bytes_max();
        let of_ended = EndedPanes::<K>::bytes_max(panes, monitored_max, pane_items);
        check_bytes(panes, of_live.saturating_add(of_ended))?;
        let report = emission.report;
        let schema = window_schema(input.item_type(), borders);
        if !sharing.divides {
            let memory = sharing.state(of_live + of_ended)?;
            let queue = PaneQueue::new(live, panes, monitored_max);
            let windows = Windows::<K, _>::new(queue, panes, borders, input, report, memory);
            return Ok(Fragment::operator(Load::Heavy, windows, vec![schema]));
        }
        let item = input.item_type().clone();
        let rows = WindowRows::new(&item, borders, report);
        let memory = sharing.state(of_ended)?;
        let merge = MergePanes::<K>::new((panes, monitored_max), &item, rows, memory);
        let cut = Cut::<K>::new(input, WindowCutter::new(Slides { panes, borders }), panes);
        let budget = sharing.memory.clone();
        let mut numbers = 0..;
        let mut worker = move || -> Result<Body, BindError> {
            let memory = StateMemory::new(&budget, of_live);
            let memory = memory.map_err(|error| blame("counters", error))?;
            let number = numbers.next().expect("there are fewer workers than numbers");
            Ok(Body::Operator(Box::new(PaneWorker::<K, _>::new(number, live.to_empty(), memory))))
        };
        let parts = vec![
            Part { load: Load::Light, ..part("cut", cut) },
            Part { name: "count".into(), load: Load::Heavy, body: worker()? },
            Part { load: Load::Light, ..part("merge", merge) },
        ];
        let fragment = Fragment::new(parts, vec![schema]);
        Ok(fragment.divided(Division::Partial, 1, usize::MAX, worker))
    }

    /// The two halves of the filter.
    fn pipeline<K: Column>(
        &self,
        filter: Filter<K>,
        input: Input,
        sharing: &Sharing,
    ) -> Result<Fragment, BindError> {
        let (saving, claim) = self.saving::<K>(input.item_type())?;
        let emission = self.emission();
        let memory = sharing.state(Summary::state_bytes_max(&filter))?;
        let filter = self.restored(filter, input.item_type())?;
        let schema = ranked_schema(input.item_type());
        let (filter, counter) = pipeline::parts(filter, input, emission, saving, memory);
        let parts = vec![part("filter", filter), part("counter", counter)];
        Ok(Fragment::new(parts, vec![schema]).claiming(claim))
    }

    /// The summary of the files, if there are files; else the empty summary `configured`.
    fn restored<K: Column, S: Stored<K>>(
        &self,
        configured: S,
        item: &DataType,
    ) -> Result<S, BindError> {
        let first = self.missing.present(self.restore.as_deref());
        let first = first.map(|path| ("restore", path));
        let others = self.merge.iter().map(|path| ("merge", path.as_path()));
        let mut files = first.into_iter().chain(others);
        let Some((parameter, path)) = files.next() else { return Ok(configured) };
        let mut sum = self.state_of::<K, S>(&configured, item, parameter, path)?;
        for (parameter, path) in files {
            let other = self.state_of::<K, S>(&configured, item, parameter, path)?;
            if sum.observed().checked_add(other.observed()).is_none() {
                return Err(blame(parameter, WeightsFull));
            }
            Summary::merge(&mut sum, &other).map_err(|error| {
                let error = format!("{}: {error}", path.display());
                blame(parameter, error)
            })?;
        }
        Ok(sum)
    }

    /// The summary in the file that `parameter` names.
    fn state_of<K: Column, S: Stored<K>>(
        &self,
        configured: &S,
        item: &DataType,
        parameter: &'static str,
        path: &Path,
    ) -> Result<S, BindError> {
        let state = read_file(path).map_err(|error| blame(parameter, error))?;
        let named = |error: String| {
            let error = format!("{}: {error}", path.display());
            blame(parameter, error)
        };
        let restored = restore_like(configured, &state);
        let restored = restored.map_err(|error| named(error.to_string()))?;
        let found = Stamp::of(&state).map_err(|error| named(error.to_string()))?.label;
        let expected = self.state_label::<K>(item);
        let ((found_label, found_type), (label, kind)) = (parts_of(&found), parts_of(&expected));
        let is_other = !found_label.is_empty() && !label.is_empty() && found_label != label;
        if is_other || found_type != kind {
            return Err(named(format!("the state has the counts of {found}, not of {expected}")));
        }
        Ok(restored)
    }

    /// The name of the counted things; with the type of the items, if the items are counted as
    /// another type.
    fn state_label<K: Column>(&self, item: &DataType) -> String {
        label_of(&self.label, item, &K::TYPE)
    }

    /// The name of the counted things, with the file for the state at the end, and the claim to
    /// that file.
    fn saving<K: Column>(&self, item: &DataType) -> Result<(Saving, Option<Claim>), BindError> {
        let label = self.state_label::<K>(item);
        let file = self.snapshot.as_deref().map(SnapshotFile::new).transpose();
        let file = file.map_err(|error| blame("snapshot", error))?;
        let file = file.map(|file| file.labelled(&label));
        let claim = file.as_ref().and_then(SnapshotFile::claim);
        Ok((Saving { label, file }, claim))
    }

    fn refuse_files(&self, beside: &str) -> Result<(), BindError> {
        let mut mistakes = Mistakes::default();
        let allowed = "only counts of the whole stream are kept in files";
        for (file, parameter) in [(&self.restore, "restore"), (&self.snapshot, "snapshot")] {
            if let Some(file) = file {
                let value = format!("{:?} beside `{beside}`", file.display().to_string());
                mistakes.refuse(true, || refuse(parameter, value, allowed));
            }
        }
        mistakes.refuse(!self.merge.is_empty(), || {
            refuse("merge", format!("states beside `{beside}`"), allowed)
        });
        mistakes.none()
    }
}

/// The parts with a summary for each worker. The first worker goes on with `summary`. With a
/// `reader`, one part in front gives batches to the workers in turn; its items may fade.
fn partial<K: Column, S: Stored<K>>(
    (summary, reader): (S, Option<Option<Fading>>),
    input: &Input,
    emission: Emission,
    saving: Saving,
    sharing: &Sharing,
) -> Result<Fragment, BindError> {
    let (bytes, rows_max) = (summary.state_bytes_max(), summary.monitored_max());
    let is_behind_read = reader.is_some();
    let fades = matches!(reader, Some(Some(_)));
    let item = input.item_type().clone();
    // All summaries have the seed of the first summary, so that their cells merge.
    let empty = summary.to_empty();
    let (of_worker, memory) = (input.clone(), sharing.memory.clone());
    let of_state = Saving { label: saving.label.clone(), file: saving.file.clone() };
    let worker = move |number: usize, summary: S| {
        let memory = StateMemory::new(&memory, bytes).map_err(|error| blame("counters", error))?;
        let input = (of_worker.clone(), is_behind_read, fades);
        Ok(Worker::<K, S>::new(number, (summary, memory), input, &of_state))
    };
    let first = part("count", worker(0, summary)?);
    let merge = Merge::<K, S>::new(&item, (emission.report, fades), saving, rows_max);
    let merge = Part { load: Load::Light, ..part("merge", merge) };
    let mut numbers = 1..;
    let copy = move || {
        let number = numbers.next().expect("there are fewer workers than numbers");
        let worker: Result<_, BindError> = worker(number, empty.clone());
        Ok(Body::Operator(Box::new(worker?)))
    };
    let mut parts = vec![first, merge];
    if let Some(fading) = reader {
        let read = part("read", Read::<K>::new(input.clone(), emission, fading));
        parts.insert(0, Part { load: Load::Light, ..read });
    }
    let copied = parts.len() - 2;
    let fragment = Fragment::new(parts, vec![ranked_schema(&item)]);
    Ok(fragment.divided(Division::Partial, copied, usize::MAX, copy))
}

fn part(name: impl Into<Cow<'static, str>>, operator: impl Operator + 'static) -> Part {
    Part { name: name.into(), load: Load::Heavy, body: Body::Operator(Box::new(operator)) }
}

fn capacity(error: CapacityError) -> BindError {
    let parameter = match error {
        CapacityError::Bins { .. } | CapacityError::NoBackCounters { .. } => "filter_bins",
        CapacityError::Counters { .. } => "counters",
        CapacityError::StateBytes { .. } => "state_bytes_max",
    };
    blame(parameter, error)
}

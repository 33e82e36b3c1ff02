//! From the parameters of the operator to its parts.

use arrow_schema::DataType;
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{BindContext, Body, Fragment, Load, Operator, OperatorError, Part};
use trommel_kernels::Isa;

use super::column::{Column, ranked_schema};
use super::counting::Counting;
use super::decay::Decayed;
use super::files::{self, SnapshotFile};
use super::input::Input;
use super::scope::Scope;
use super::summary::{Stored, restore_like};
use super::windows::{Windows, window_schema};
use super::{Algorithm, CapacityError, Filter, FrequentItems, Sieve, SpaceSaving, parallel};

impl FrequentItems {
    /// The algorithm for items of this type.
    pub(super) fn algorithm_for(&self, item: &DataType, context: BindContext) -> Algorithm {
        let is_whole = self.window.is_none() && self.decay.is_none();
        match self.algorithm {
            Algorithm::Auto if context.cores > 1 && is_whole => Algorithm::ParallelFilter,
            Algorithm::Auto if *item == DataType::Utf8 || self.weight.is_some() => {
                Algorithm::SpaceSaving
            }
            Algorithm::Auto if self.decay.is_some() => Algorithm::SpaceSaving,
            Algorithm::Auto => Algorithm::Sieve,
            chosen => chosen,
        }
    }

    pub(super) fn bind_items<K: Column>(
        &self,
        input: Input,
        algorithm: Algorithm,
    ) -> Result<Fragment, BindError> {
        let isa = || Isa::selected().map_err(|error| BindErrorKind::Other(error.into()));
        let filter = || -> Result<Filter<K>, BindError> {
            Filter::new(isa()?, self.counters, self.filter_bins).map_err(capacity)
        };
        match algorithm {
            Algorithm::SpaceSaving => {
                self.one_part(SpaceSaving::<K>::new(self.counters).map_err(capacity)?, input)
            }
            Algorithm::ParallelFilter => self.two_parts(filter()?, input),
            Algorithm::Filter => self.one_part(filter()?, input),
            Algorithm::Sieve | Algorithm::Auto => {
                self.one_part(Sieve::<K>::new(isa()?, self.counters).map_err(capacity)?, input)
            }
        }
    }

    fn one_part<K: Column>(
        &self,
        summary: impl Stored<K>,
        input: Input,
    ) -> Result<Fragment, BindError> {
        let emission = self.emission()?;
        let scope = Scope::new(self.window.as_ref(), self.decay.as_ref())?;
        scope.check_bytes(summary.state_bytes_max())?;
        let ranked = vec![ranked_schema(K::TYPE)];
        match scope {
            Scope::All => {
                let (summary, file) = (self.restored(summary)?, self.snapshot_file()?);
                let counting = Counting::<K, _>::new(summary, input, emission, file);
                Ok(Fragment::operator(Load::Heavy, counting, ranked))
            }
            Scope::Decay(half_life) => {
                self.refuse_files("decay")?;
                let decayed = Decayed::new(summary, half_life);
                let counting = Counting::<K, _>::new(decayed, input, emission, None);
                Ok(Fragment::operator(Load::Heavy, counting, ranked))
            }
            Scope::Window { panes, borders } => {
                self.refuse_files("window")?;
                if emission.every.is_some() {
                    let value = "\"every\" beside `window`".to_owned();
                    let allowed = "a window emits when it closes; leave `emit` out".to_owned();
                    return Err(BindErrorKind::Value { value, allowed }.at("emit"));
                }
                let report = emission.report;
                let windows = Windows::<K, _>::new(summary, panes, borders, input, report);
                Ok(Fragment::operator(Load::Heavy, windows, vec![window_schema(K::TYPE, borders)]))
            }
        }
    }

    fn two_parts<K: Column>(&self, filter: Filter<K>, input: Input) -> Result<Fragment, BindError> {
        for (is_set, name) in [(self.window.is_some(), "window"), (self.decay.is_some(), "decay")] {
            if is_set {
                let value = format!("\"parallel_filter\" beside `{name}`");
                let allowed = "use another algorithm; they run on one core".to_owned();
                return Err(BindErrorKind::Value { value, allowed }.at("algorithm"));
            }
        }
        let (emission, file) = (self.emission()?, self.snapshot_file()?);
        let (filter, counter) = parallel::parts(self.restored(filter)?, input, emission, file);
        let part = |name, operator: Box<dyn Operator>| Part {
            name,
            load: Load::Heavy,
            body: Body::Operator(operator),
        };
        Ok(Fragment {
            parts: vec![part("filter", Box::new(filter)), part("counter", Box::new(counter))],
            outputs: vec![ranked_schema(K::TYPE)],
        })
    }

    /// The summary of the file, if there is one, and else the empty one that is configured.
    fn restored<K: Column, S: Stored<K>>(&self, configured: S) -> Result<S, BindError> {
        let Some(path) = &self.restore else { return Ok(configured) };
        let state = files::read(path).map_err(|error| blame("restore", error.into()))?;
        restore_like(&configured, &state).map_err(|error| {
            let error = format!("{}: {error}", path.display());
            blame("restore", error.into())
        })
    }

    fn snapshot_file(&self) -> Result<Option<SnapshotFile>, BindError> {
        let file = self.snapshot.as_deref().map(SnapshotFile::new).transpose();
        file.map_err(|error| blame("snapshot", error.into()))
    }

    fn refuse_files(&self, beside: &str) -> Result<(), BindError> {
        for (file, parameter) in [(&self.restore, "restore"), (&self.snapshot, "snapshot")] {
            if let Some(file) = file {
                let value = format!("{:?} beside `{beside}`", file.display().to_string());
                let allowed = "only counts of the whole stream are kept in files".to_owned();
                return Err(BindErrorKind::Value { value, allowed }.at(parameter));
            }
        }
        Ok(())
    }
}

fn blame(parameter: &'static str, error: OperatorError) -> BindError {
    BindErrorKind::Other(error).at(parameter)
}

fn capacity(error: CapacityError) -> BindError {
    let parameter = match error {
        CapacityError::Bins { .. } | CapacityError::NoBackCounters { .. } => "filter_bins",
        CapacityError::Counters { .. } | CapacityError::StateBytes { .. } => "counters",
    };
    blame(parameter, error.into())
}

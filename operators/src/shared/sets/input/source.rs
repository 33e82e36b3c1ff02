//! The rows of an input of a join of sets: ids, sets and carried columns.

use std::sync::Arc;

use arrow_array::{ListArray, RecordBatch};
use arrow_schema::SchemaRef;
use trommel_engine::error::BindError;
use trommel_engine::operator::OperatorError;

use super::carrier::Carrier;
use super::column::{SetInput, hide};
use crate::shared::columns::carry::{CarriedColumns, carried_by_all};
use crate::shared::columns::ids::{IdInput, RowIds};
use crate::shared::parameters::{Mistakes, Names};
use crate::shared::rejected::BadRows;

/// The columns of an input that a join reads.
#[derive(Debug, Clone)]
pub(crate) struct SetSource {
    ids: IdInput,
    set: SetInput,
    carried: CarriedColumns,
}

impl SetSource {
    /// The ids, sets and carried columns of each of `inputs`.
    ///
    /// # Errors
    /// If an input lacks a column, or if the sets of the inputs cannot be joined.
    pub(crate) fn bind(
        inputs: &[SchemaRef],
        id: Option<&str>,
        set: &str,
        carry: &Names,
    ) -> Result<Vec<Self>, BindError> {
        let mut mistakes = Mistakes::default();
        let ids = mistakes.check(IdInput::bind(inputs, id));
        let sets = mistakes.check(SetInput::bind(inputs, set));
        let carried = mistakes.check(carried_by_all(carry, inputs, &[]));
        let (ids, sets, carried) = mistakes.all(|| Some((ids?, sets?, carried?)))?;
        let columns = inputs.iter().zip(ids).zip(sets).zip(carried);
        let source = |(((schema, ids), set), columns): (((&SchemaRef, IdInput), _), _)| {
            let carried = CarriedColumns::new(schema, &ids, columns);
            Self { ids, set, carried }
        };
        Ok(columns.map(source).collect())
    }

    /// Reads ids that are not in the output.
    pub(crate) fn with_unseen_ids(self, schema: &SchemaRef) -> Self {
        let ids = self.ids.unseen();
        let carried = CarriedColumns::new(schema, &ids, Vec::new());
        Self { ids, carried, ..self }
    }

    /// The sets.
    pub(crate) fn set(&self) -> &SetInput {
        &self.set
    }

    /// The carried columns.
    pub(crate) fn carried(&self) -> &CarriedColumns {
        &self.carried
    }

    /// The carried columns of left sets and of right sets.
    pub(crate) fn carried_of(sources: &[Self]) -> [&CarriedColumns; 2] {
        [0, sources.len() - 1].map(|input| &sources[input].carried)
    }

    /// A carrier for the carried columns, if columns are carried.
    pub(crate) fn carrier(sources: &[Self]) -> Option<Carrier> {
        let carried = Self::carried_of(sources);
        let schemas = carried.map(|carried| Arc::clone(carried.schema()));
        carried.iter().any(|carried| !carried.is_empty()).then(|| Carrier::new(schemas))
    }

    /// The ids and sets of the next batch of `input`. The sets of rows that `bad` takes are null.
    ///
    /// # Errors
    /// If a row has a fault that ends the run, or if there are too many rows.
    pub(crate) fn read(
        &mut self,
        input: usize,
        records: &RecordBatch,
        bad: &mut BadRows,
    ) -> Result<(RowIds, ListArray), OperatorError> {
        let mut faults = bad.faults();
        let ids = self.ids.of(records, &mut faults)?;
        let sets = self.set.of(records, &mut faults)?;
        bad.settle(input, records, &faults)?;
        Ok((ids, hide(sets, &faults)))
    }
}

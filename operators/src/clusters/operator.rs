//! The state of the operator, and the rows that the operator sends.

use std::mem;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, NamedInputs, Operator, OperatorError, Output};

use super::Keep;
use super::components::{Components, Groups};
use crate::expressions::ColumnInput;
use crate::shared::budget::{Allowance, Budget, BudgetFull, bytes_with};
use crate::shared::items::to_native;
use crate::shared::names::ItemNames;
use crate::shared::parameters::BATCH_ITEMS;
use crate::shared::rejected::{BadRows, PORT};

const CLUSTERS: &str = "the clusters";

/// Columns of the output, for ids of this type.
pub(super) fn output_schema(kind: &DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", kind.clone(), false),
        Field::new("cluster", kind.clone(), false),
        Field::new("size", DataType::UInt32, false),
        Field::new("kept", DataType::Boolean, false),
    ]))
}

/// The ids of the pairs, and the number of each id.
pub(super) struct Ids {
    pub(super) columns: [ColumnInput; 2],
    pub(super) names: ItemNames,
    pub(super) memory: Allowance,
    pub(super) bad: BadRows,
}

/// The clusters of the pairs so far, and, after the end of the input, their rows.
pub(super) struct Clustering {
    ids: Ids,
    keep: Keep,
    schema: SchemaRef,
    components: Components,
    /// Whether each id has been the right id of a pair.
    are_right: Vec<bool>,
    /// Numbers of the ids of a batch.
    numbers: [Vec<u32>; 2],
    pairs: u64,
    clusters: u64,
    rows: Option<UnsentRows>,
}

/// Rows that have not been sent.
struct UnsentRows {
    groups: Groups,
    /// The next group, and the next place in the group.
    group: usize,
    place: usize,
}

impl Clustering {
    pub(super) fn new(ids: Ids, keep: Keep) -> Self {
        Self {
            schema: output_schema(ids.names.item_type()),
            ids,
            keep,
            components: Components::default(),
            are_right: Vec::new(),
            numbers: [Vec::new(), Vec::new()],
            pairs: 0,
            clusters: 0,
            rows: None,
        }
    }

    /// The memory budget of the state, in which all memory but the memory of the ids is taken.
    fn budget(&self) -> Result<Budget, BudgetFull> {
        let mut budget = self.ids.memory.budget();
        let numbers: usize = self.numbers.iter().map(|numbers| size_of_val(&numbers[..])).sum();
        budget.take(CLUSTERS, self.components.bytes() + self.are_right.capacity() + numbers)?;
        Ok(budget)
    }

    /// Gives numbers to the ids of one side of the pairs.
    fn number(&mut self, side: usize, ids: &ArrayRef) -> Result<(), OperatorError> {
        let native = to_native(&cast(ids, self.ids.names.item_type())?)?;
        let budget = self.budget()?;
        let mut numbers = mem::take(&mut self.numbers[side]);
        self.ids.names.number(&native, &mut numbers, budget)?;
        self.numbers[side] = numbers;
        Ok(())
    }

    fn take(&mut self, records: &RecordBatch, out: &mut Output) -> Result<(), OperatorError> {
        let mut faults = self.ids.bad.faults();
        let mut sides = Vec::with_capacity(2);
        for column in &self.ids.columns {
            let ids = faults.values(column, records)?;
            let name = column.text(records.schema_ref());
            faults.note_nulls(ids.logical_nulls().as_ref(), name, "the id");
            sides.push(ids);
        }
        self.ids.bad.settle(0, records, &faults)?;
        self.ids.bad.take_rejected().into_iter().for_each(|rows| out.send_to(PORT, rows));
        for (side, ids) in sides.iter().enumerate() {
            let usable = faults.usable(records.num_rows());
            let ids =
                usable.map(|usable| arrow_select::filter::filter(ids, &usable)).transpose()?;
            self.number(side, ids.as_ref().unwrap_or(&sides[side]))?;
        }
        self.grow()?;
        let [left, right] = &self.numbers;
        for (&left, &right) in left.iter().zip(right) {
            // A row that is paired with itself has no earlier partner, so such a pair does not
            // count as a match.
            self.components.join(left, right);
            self.are_right[right as usize] |= left != right;
        }
        self.pairs += left.len() as u64;
        Ok(())
    }

    /// Makes room for the new ids.
    fn grow(&mut self) -> Result<(), BudgetFull> {
        let (known, len) = (self.components.len(), self.ids.names.len());
        let more = len - known;
        let mut budget = self.budget()?;
        budget.take("the ids", self.ids.names.bytes())?;
        let now = self.components.bytes() + self.are_right.capacity();
        let parents =
            bytes_with(self.components.bytes() / Components::BYTES, known, more, Components::BYTES);
        let flags = bytes_with(self.are_right.capacity(), known, more, 1);
        budget.take(CLUSTERS, (parents + flags).saturating_sub(now))?;
        self.components.grow(len);
        self.are_right.resize(len, false);
        Ok(())
    }

    /// Groups the ids by clusters, in the order of the ids.
    fn group(&mut self) -> Result<UnsentRows, BudgetFull> {
        let len = self.components.len();
        let mut budget = self.budget()?;
        budget.take("the ids", self.ids.names.bytes())?;
        budget.take(CLUSTERS, len * Components::GROUPED_BYTES)?;
        let len = u32::try_from(len).expect("numbers of items have 32 bits");
        let mut order: Vec<u32> = (0..len).collect();
        self.ids.names.sort(&mut order);
        // The order of the ids makes the rows independent of the order of the pairs.
        let groups = mem::take(&mut self.components).grouped(&order);
        self.clusters = groups.len() as u64;
        Ok(UnsentRows { groups, group: 0, place: 0 })
    }

    /// The next rows; `None` if all rows have been sent.
    fn next_rows(&mut self) -> Option<RecordBatch> {
        let UnsentRows { groups, group, place } = self.rows.as_mut()?;
        let (mut firsts, mut sizes, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let begin = *place;
        while *group < groups.len() && firsts.len() < BATCH_ITEMS {
            let places = groups.places(*group);
            let first = groups.members()[places.start];
            let taken = *place..places.end.min(*place + BATCH_ITEMS - firsts.len());
            let size = u32::try_from(places.len()).expect("numbers of items have 32 bits");
            // The rows of a large cluster continue in the next batch.
            firsts.extend(taken.clone().map(|_| first));
            sizes.extend(taken.clone().map(|_| size));
            kept.extend(taken.clone().map(|at| match self.keep {
                Keep::First => at == places.start,
                Keep::Last => at + 1 == places.end,
                Keep::Unmatched => !self.are_right[groups.members()[at] as usize],
            }));
            *place = taken.end;
            *group += usize::from(taken.end == places.end);
        }
        let members = &groups.members()[begin..*place];
        let columns: Vec<ArrayRef> = vec![
            self.ids.names.column(members),
            self.ids.names.column(&firsts),
            Arc::new(UInt32Array::from(sizes)),
            Arc::new(BooleanArray::from(kept)),
        ];
        let rows = RecordBatch::try_new(SchemaRef::clone(&self.schema), columns);
        Some(rows.expect("columns of the schema")).filter(|rows| rows.num_rows() > 0)
    }
}

impl Operator for Clustering {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.take(&input.into_records(), out)?;
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.rows = Some(self.group()?);
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let Some(rows) = self.next_rows() else { return Ok(Flow::NeedInput) };
        out.send(rows);
        Ok(Flow::HaveOutput)
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![
            ("pairs", self.pairs),
            ("ids", self.ids.names.len() as u64),
            ("clusters", self.clusters),
        ];
        counters.extend(self.ids.bad.counters());
        counters
    }

    fn named_inputs(&self) -> NamedInputs {
        self.ids.bad.named()
    }
}

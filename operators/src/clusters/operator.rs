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
use super::rows::{Place, RowColumns, Rows, UnsentRows, usable_rows};
use crate::expressions::ColumnInput;
use crate::shared::budget::{Allowance, Budget, BudgetFull, bytes_with};
use crate::shared::items::to_native;
use crate::shared::names::ItemNames;
use crate::shared::parameters::BATCH_ITEMS;
use crate::shared::rejected::{BadRows, Faults, PORT};

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
    /// The rows of the second input, if there is one.
    rows: Option<Rows>,
    unsent: Option<Unsent>,
}

/// Rows that have not been sent.
enum Unsent {
    Ids(UnsentIds),
    Rows(UnsentRows),
}

/// Rows of ids that have not been sent.
struct UnsentIds {
    groups: Groups,
    /// The next group, and the next place in the group.
    group: usize,
    place: usize,
}

impl Clustering {
    pub(super) fn new(ids: Ids, keep: Keep, rows: Option<RowColumns>) -> Self {
        Self {
            schema: output_schema(ids.names.item_type()),
            ids,
            keep,
            components: Components::default(),
            are_right: Vec::new(),
            numbers: [Vec::new(), Vec::new()],
            pairs: 0,
            clusters: 0,
            rows: rows.map(Rows::new),
            unsent: None,
        }
    }

    /// The memory budget of the state, in which all memory but the memory of the ids is taken.
    fn budget(&self) -> Result<Budget, BudgetFull> {
        let mut budget = self.ids.memory.budget();
        let numbers: usize = self.numbers.iter().map(|numbers| size_of_val(&numbers[..])).sum();
        budget.take(CLUSTERS, self.components.bytes() + self.are_right.capacity() + numbers)?;
        budget.take("the rows", self.rows.as_ref().map_or(0, Rows::bytes))?;
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

    /// Takes a batch of pairs.
    fn take_pairs(&mut self, records: &RecordBatch, out: &mut Output) -> Result<(), OperatorError> {
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

    /// Takes a batch of rows of the second input.
    fn take_rows(&mut self, records: &RecordBatch, out: &mut Output) -> Result<(), OperatorError> {
        let mut rows = self.rows.take().expect("there is a second input");
        let mut faults = self.ids.bad.faults();
        let read = rows.read(records, self.ids.names.item_type(), &mut faults)?;
        let usable = faults.usable(records.num_rows());
        let ids = usable.as_ref().map(|usable| arrow_select::filter::filter(&read.ids, usable));
        let ids = ids.transpose()?;
        self.rows = Some(rows);
        self.number(0, ids.as_ref().unwrap_or(&read.ids))?;
        self.grow()?;
        let mut rows = self.rows.take().expect("there is a second input");
        rows.note_copies(&self.numbers[0], usable.as_ref(), &mut faults);
        self.ids.bad.settle(1, records, &faults)?;
        self.ids.bad.take_rejected().into_iter().for_each(|rows| out.send_to(PORT, rows));
        let numbers = match &usable {
            _ if faults.are_none() => mem::take(&mut self.numbers[0]),
            usable => self.numbers_of_usable(usable.as_ref(), &faults, records.num_rows()),
        };
        let usable = faults.usable(records.num_rows());
        let values = read.usable_values(usable.as_ref())?;
        let records = usable_rows(records, usable.as_ref())?;
        self.rows = Some(rows);
        let budget = self.budget_with_ids()?;
        self.rows.as_mut().expect("set above").keep(&records, numbers, values, budget)
    }

    /// The numbers of the rows without a fault, of the numbers of the rows that were `numbered`.
    fn numbers_of_usable(
        &self,
        numbered: Option<&BooleanArray>,
        faults: &Faults,
        rows: usize,
    ) -> Vec<u32> {
        let rows = (0..rows).filter(|&row| numbered.is_none_or(|numbered| numbered.value(row)));
        let numbers = rows.zip(&self.numbers[0]).filter(|(row, _)| !faults.has(*row));
        numbers.map(|(_, number)| *number).collect()
    }

    /// The memory budget of the state, in which all memory is taken.
    fn budget_with_ids(&self) -> Result<Budget, BudgetFull> {
        let mut budget = self.budget()?;
        budget.take("the ids", self.ids.names.bytes())?;
        Ok(budget)
    }

    /// Makes room for the new ids.
    fn grow(&mut self) -> Result<(), BudgetFull> {
        let (known, len) = (self.components.len(), self.ids.names.len());
        let more = len - known;
        let mut budget = self.budget_with_ids()?;
        let now = self.components.bytes() + self.are_right.capacity();
        let parents =
            bytes_with(self.components.bytes() / Components::BYTES, known, more, Components::BYTES);
        let flags = bytes_with(self.are_right.capacity(), known, more, 1);
        budget.take(CLUSTERS, (parents + flags).saturating_sub(now))?;
        self.components.grow(len);
        self.are_right.resize(len, false);
        self.rows.as_mut().map_or(Ok(()), |rows| rows.grow(len, budget))
    }

    /// Groups the ids by clusters, in the order of the ids.
    fn group(&mut self) -> Result<Unsent, OperatorError> {
        let len = self.components.len();
        let mut budget = self.budget_with_ids()?;
        budget.take(CLUSTERS, len * Components::GROUPED_BYTES)?;
        let rows = self.rows.take();
        let mut order: Vec<u32> = match &rows {
            Some(rows) => rows.ids().collect(),
            None => (0..u32::try_from(len).expect("numbers of items have 32 bits")).collect(),
        };
        self.ids.names.sort(&mut order);
        // The order of the ids makes the rows independent of the order of the pairs.
        let groups = mem::take(&mut self.components).grouped(&order);
        self.clusters = groups.len() as u64;
        let Some(rows) = rows else {
            return Ok(Unsent::Ids(UnsentIds { groups, group: 0, place: 0 }));
        };
        budget.take(CLUSTERS, Rows::places_bytes(len))?;
        let mut places = vec![Place::default(); len];
        let best = rows.best(self.keep, &mut budget)?;
        for group in 0..groups.len() {
            let members = &groups.members()[groups.places(group)];
            let size = u32::try_from(members.len()).expect("numbers of items have 32 bits");
            let chosen = match &best {
                Some(best) => best.of(&rows, members),
                None => self.chosen(members),
            };
            for &member in members {
                let is_kept = self.is_kept(member, chosen);
                places[member as usize] = Place { first: members[0], size, is_kept };
            }
        }
        Ok(Unsent::Rows(rows.with_places(places)))
    }

    /// The member of a cluster that stays by its place; none if each unmatched one stays.
    fn chosen(&self, members: &[u32]) -> Option<u32> {
        match self.keep {
            Keep::Last => members.last().copied(),
            Keep::Unmatched => None,
            Keep::First | Keep::Largest | Keep::Smallest => members.first().copied(),
        }
    }

    /// Whether a member of a cluster, of which `chosen` stays, stays.
    fn is_kept(&self, member: u32, chosen: Option<u32>) -> bool {
        chosen.map_or_else(|| !self.are_right[member as usize], |chosen| chosen == member)
    }

    /// The next rows; `None` if all rows have been sent.
    fn next_rows(&mut self) -> Option<RecordBatch> {
        let mut unsent = self.unsent.take()?;
        let rows = match &mut unsent {
            Unsent::Rows(rows) => rows.next(&self.ids.names),
            Unsent::Ids(ids) => self.next_ids(ids),
        };
        self.unsent = Some(unsent);
        rows
    }

    /// The next rows of ids; `None` if all rows have been sent.
    fn next_ids(&self, UnsentIds { groups, group, place }: &mut UnsentIds) -> Option<RecordBatch> {
        let (mut firsts, mut sizes, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let begin = *place;
        while *group < groups.len() && firsts.len() < BATCH_ITEMS {
            let places = groups.places(*group);
            let members = &groups.members()[places.clone()];
            let taken = *place..places.end.min(*place + BATCH_ITEMS - firsts.len());
            let size = u32::try_from(members.len()).expect("numbers of items have 32 bits");
            let chosen = self.chosen(members);
            // The rows of a large cluster continue in the next batch.
            firsts.extend(taken.clone().map(|_| members[0]));
            sizes.extend(taken.clone().map(|_| size));
            kept.extend(taken.clone().map(|at| self.is_kept(groups.members()[at], chosen)));
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
        port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let records = input.into_records();
        match port {
            0 => self.take_pairs(&records, out)?,
            _ => self.take_rows(&records, out)?,
        }
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.unsent = Some(self.group()?);
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

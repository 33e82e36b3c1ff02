//! All data that comes in from Python: one importer for every function, object and pipeline.
//!
//! | file | contents |
//! |---|---|
//! | `rows` | the columns of an object, and its chunks, of which only the used columns are read |
//! | `accept` | the table of Arrow types: what is accepted as what |
//! | `convert` | columns in the types of that table |
//! | `values` | Python values as columns |
//! | `types` | questions about Arrow types |
//! | `fault` | why data is refused |
//!
//! An [`Importer`] lives as long as the source that it fills: the first data that has a type
//! settles the types of all. Data is checked and converted as a whole before a part of it goes on,
//! except for one call that reads a stream.

mod accept;
mod convert;
mod fault;
mod rows;
mod types;
mod values;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use arrow_array::new_empty_array;
use arrow_array::{Array as _, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use trommel::sets::{DICTIONARY, SetReader};

use self::accept::Kind;
use self::convert::Converting;
pub(crate) use self::fault::Fault;
pub(crate) use self::rows::{Rows, chosen, table};
pub(crate) use self::values::column;
use crate::errors::invalid;
use crate::live::lock;

/// The rows of a batch: some thousand, so that a run can be stopped between two.
const ROWS: usize = 8_192;
/// The same for items, which take a few nanoseconds each.
const ITEM_ROWS: usize = 65_536;
/// Ids of 32 bits.
const ID_COUNT: u64 = 1 << 32;

/// The form of the data of one source, as Python asks for it.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Form {
    /// `items`, `texts`, `sets`, `transactions`, `terms`, `vectors` or `rows`.
    kind: String,
    /// The column; if it is left out, the only one, or the one named as in the configuration.
    column: Option<String>,
    /// The column of weights of items.
    weight: Option<String>,
    /// The column of names of documents.
    name: Option<String>,
    /// More columns, and the names that they get.
    carry: Vec<(String, String)>,
    /// The name that the column gets.
    into: String,
    /// Whether a vector with a number beyond those of float32 is refused here.
    is_strict: bool,
}

/// Common state of the sources of one pipeline.
#[derive(Default)]
pub(crate) struct Shared {
    /// Numbers the texts of sets: equal texts of all sources get equal numbers.
    sets: SetReader,
    /// The dictionary that has numbered the tokens, once one was named.
    dictionary: Option<String>,
    /// The type that a source has settled, for those whose data has none.
    settled: Option<DataType>,
}

impl Shared {
    pub(crate) fn new() -> Arc<Mutex<Self>> {
        Arc::default()
    }
}

/// A column that is imported.
#[derive(Clone)]
struct Column {
    kind: Kind,
    /// Its name in the data, as the caller gave it, and in the pipeline.
    from: String,
    into: String,
    /// Its name in messages, where the data has several columns.
    label: Option<String>,
    /// The field of all batches, once one was settled.
    settled: Option<Field>,
}

/// Imports the data of one source.
#[derive(Clone)]
pub(crate) struct Importer {
    form: Form,
    /// The columns in their order; the first one is that of the form. None for rows as they are.
    columns: Vec<Column>,
    shared: Arc<Mutex<Shared>>,
    /// Rows so far, of all calls.
    rows: u64,
}

/// A part of a chunk: its columns, and the number of its first row in the call.
struct Part {
    columns: Vec<ArrayRef>,
    fields: Arc<Vec<Field>>,
    rows: usize,
    first: u64,
}

impl Importer {
    pub(crate) fn new(form: Form, shared: Arc<Mutex<Shared>>) -> Self {
        let column = |kind, from: &String, into: &str| Column {
            kind,
            from: from.clone(),
            into: into.to_owned(),
            label: None,
            settled: None,
        };
        let mut columns = Vec::new();
        if let Some(kind) = Kind::of(&form.kind) {
            let from = form.column.as_ref().unwrap_or(&form.into);
            columns.push(column(kind, from, &form.into));
            columns.extend(form.weight.iter().map(|from| column(Kind::Weights, from, "weight")));
            columns.extend(form.name.iter().map(|from| column(Kind::Names, from, "name")));
            let carry = form.carry.iter();
            columns.extend(carry.map(|(from, into)| column(Kind::Carried, from, into)));
        }
        Self { form, columns, shared, rows: 0 }
    }

    /// The places of the columns that are used.
    fn places(&self, rows: &Rows) -> Result<Vec<usize>, Fault> {
        let names = rows.names();
        if self.columns.is_empty() {
            return Ok((0..names.len()).collect());
        }
        let find = |name: &str| names.iter().position(|found| found == name);
        let first = match (&self.form.column, find(&self.form.into)) {
            (None, _) if names.len() == 1 => Some(0),
            (None, None) => return Err(Fault::Several { columns: names.to_vec() }),
            (None, found) => found,
            (Some(name), _) => find(name),
        };
        let others = self.columns[1..].iter().map(|column| find(&column.from));
        let missing = |column: &Column| {
            let column = column.from.clone();
            Fault::Missing { column, columns: names.to_vec() }
        };
        let places = std::iter::once(first).chain(others).zip(&self.columns);
        places.map(|(place, column)| place.ok_or_else(|| missing(column))).collect()
    }

    /// The rows of a batch that are imported at once.
    fn rows_max(&self) -> usize {
        if self.columns.first().is_some_and(|column| column.kind == Kind::Items) {
            ITEM_ROWS
        } else {
            ROWS
        }
    }

    /// The columns of all batches, once each has a type; `None` for rows as they are.
    pub(crate) fn schema(&self) -> Option<SchemaRef> {
        let settled: Option<Vec<Field>> =
            self.columns.iter().map(|column| column.settled.clone()).collect();
        let mut fields = settled.filter(|fields| !fields.is_empty())?;
        if let Some(name) = &lock(&self.shared).dictionary {
            let entry = (DICTIONARY.to_owned(), name.clone());
            fields[0].set_metadata(HashMap::from([entry]));
        }
        if self.columns[0].kind.has_ids() {
            fields.insert(0, Field::new("id", DataType::UInt32, true));
        }
        Some(Arc::new(Schema::new(fields)))
    }

    /// Whether rows are imported as they are, with all their columns.
    pub(crate) fn takes_all(&self) -> bool {
        self.columns.is_empty()
    }

    /// Whether each column has a type.
    pub(crate) fn is_settled(&self) -> bool {
        self.columns.iter().all(|column| column.settled.is_some())
    }

    /// Gives the columns that have no type yet the one of another source, or the usual one.
    pub(crate) fn settle(&mut self) {
        let other = lock(&self.shared).settled.clone();
        for column in self.columns.iter_mut().filter(|column| column.settled.is_none()) {
            let other = other.clone().filter(|_| column.kind.is_shared());
            column.settle(other.unwrap_or_else(|| column.kind.usual()));
        }
    }

    /// Settles the types of all columns by those of a schema.
    pub(crate) fn settle_by(&mut self, schema: &SchemaRef) {
        for column in &mut self.columns {
            let found = schema.column_with_name(&column.into);
            column.settled = found.map(|(_, field)| field.clone());
        }
    }

    /// Settles the types of the columns that have one in this part.
    fn settle_with(&mut self, part: &Part) -> Result<(), Fault> {
        for (column, found) in self.columns.iter_mut().zip(&part.columns) {
            let settled = accept::settled(column.kind, found);
            let settled = settled.map_err(|fault| fault.of_column(column.label.as_ref()))?;
            if let (None, Some(settled)) = (&column.settled, settled) {
                if column.kind.is_shared() {
                    lock(&self.shared).settled = Some(settled.clone());
                }
                column.settle(settled);
            }
        }
        Ok(())
    }

    /// The batch of a part.
    fn import(&mut self, part: &Part) -> Result<RecordBatch, Fault> {
        if self.columns.is_empty() {
            return convert::rows(&part.fields, &part.columns, part.rows);
        }
        self.settle_with(part)?;
        self.settle();
        self.check_dictionary(&part.fields[0])?;
        let mut columns = Vec::with_capacity(part.columns.len() + 1);
        if self.columns[0].kind.has_ids() {
            columns.push(ids(self.rows, part.rows)?);
        }
        for (column, found) in self.columns.iter().zip(&part.columns) {
            let converting = Converting {
                kind: column.kind,
                first: part.first,
                is_strict: self.form.is_strict,
                shared: &self.shared,
            };
            let settled = column.settled.as_ref().map_or(&DataType::Null, Field::data_type);
            let converted = converting.convert(found, settled);
            columns.push(converted.map_err(|fault| fault.of_column(column.label.as_ref()))?);
        }
        let schema = self.schema().expect("each column has a type");
        let options = RecordBatchOptions::new().with_row_count(Some(part.rows));
        let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
        self.rows += part.rows as u64;
        Ok(batch)
    }

    /// The columns of rows that are imported as they are.
    pub(crate) fn columns_of(&self, py: Python<'_>, rows: &Rows) -> PyResult<SchemaRef> {
        let places = self.places(rows).map_err(invalid)?;
        let fields = rows.fields(py, &places)?;
        let columns: Vec<ArrayRef> =
            fields.iter().map(|field| new_empty_array(field.data_type())).collect();
        let none = convert::rows(&fields, &columns, 0).map_err(invalid)?;
        Ok(none.schema())
    }

    /// Refuses tokens that two dictionaries have numbered.
    fn check_dictionary(&self, field: &Field) -> Result<(), Fault> {
        let Some(name) = field.metadata().get(DICTIONARY) else { return Ok(()) };
        let mut shared = lock(&self.shared);
        if shared.dictionary.get_or_insert_with(|| name.clone()) == name {
            Ok(())
        } else {
            Err(Fault::Dictionaries)
        }
    }

    /// All rows as batches; nothing of them counts if one is refused.
    pub(crate) fn import_all(&mut self, py: Python<'_>, rows: Rows) -> PyResult<Vec<RecordBatch>> {
        let mut trial = self.clone();
        let mut reading = Reading::new(rows, &mut trial)?;
        reading.settle(py, &mut trial)?;
        let mut batches = Vec::new();
        while let Some(batch) = reading.next(py, &mut trial)? {
            batches.push(batch);
        }
        *self = trial;
        Ok(batches)
    }
}

impl Column {
    fn settle(&mut self, kind: DataType) {
        self.settled = Some(Field::new(&self.into, kind, true));
    }
}

fn ids(begin: u64, rows: usize) -> Result<ArrayRef, Fault> {
    let end = begin + rows as u64;
    if end > ID_COUNT {
        return Err(Fault::Ids);
    }
    // None of them is lost.
    let ids = (begin..end).filter_map(|id| u32::try_from(id).ok());
    Ok(Arc::new(UInt32Array::from_iter_values(ids)))
}

/// Rows on their way through an importer.
pub(crate) struct Reading {
    rows: Rows,
    places: Vec<usize>,
    fields: Arc<Vec<Field>>,
    /// Parts that were read and are not imported yet, and those that settling has looked at.
    waiting: VecDeque<Part>,
    ahead: usize,
    /// Rows of the call that were read.
    read: u64,
}

impl Reading {
    pub(crate) fn new(rows: Rows, importer: &mut Importer) -> PyResult<Self> {
        let places = importer.places(&rows).map_err(invalid)?;
        let is_named = rows.names().len() > 1 || importer.form.column.is_some();
        for (column, &place) in importer.columns.iter_mut().zip(&places) {
            column.label = is_named.then(|| rows.names()[place].clone());
        }
        Ok(Self {
            rows,
            places,
            fields: Arc::default(),
            waiting: VecDeque::new(),
            ahead: 0,
            read: 0,
        })
    }

    /// Reads until each column has a type, or there are no more rows.
    pub(crate) fn settle(&mut self, py: Python<'_>, importer: &mut Importer) -> PyResult<()> {
        self.fields = Arc::new(self.rows.fields(py, &self.places)?);
        // A type that is not accepted is refused even if there are no rows of it.
        let columns: Vec<ArrayRef> =
            self.fields.iter().map(|field| new_empty_array(field.data_type())).collect();
        let fields = Arc::clone(&self.fields);
        let none = Part { columns, fields, rows: 0, first: 0 };
        importer.settle_with(&none).map_err(invalid)?;
        if !importer.columns.is_empty() {
            importer.check_dictionary(&self.fields[0]).map_err(invalid)?;
        }
        while !importer.is_settled() {
            if self.ahead == self.waiting.len() && !self.read(py, importer.rows_max())? {
                break;
            }
            let part = &self.waiting[self.ahead];
            py.detach(|| importer.settle_with(part)).map_err(invalid)?;
            self.ahead += 1;
        }
        Ok(())
    }

    /// The next batch; `None` at the end.
    pub(crate) fn next(
        &mut self,
        py: Python<'_>,
        importer: &mut Importer,
    ) -> PyResult<Option<RecordBatch>> {
        if self.waiting.is_empty() && !self.read(py, importer.rows_max())? {
            return Ok(None);
        }
        self.ahead = self.ahead.saturating_sub(1);
        let Some(part) = self.waiting.pop_front() else { return Ok(None) };
        py.detach(|| importer.import(&part)).map(Some).map_err(invalid)
    }

    /// Reads a chunk with rows; false if there is none.
    fn read(&mut self, py: Python<'_>, rows_max: usize) -> PyResult<bool> {
        loop {
            let Some(chunk) = self.rows.next(py, &self.places)? else { return Ok(false) };
            for begin in (0..chunk.rows).step_by(rows_max) {
                let rows = rows_max.min(chunk.rows - begin);
                let columns = chunk.columns.iter().map(|column| column.slice(begin, rows));
                let (columns, fields) = (columns.collect(), Arc::clone(&self.fields));
                self.waiting.push_back(Part { columns, fields, rows, first: self.read });
                self.read += rows as u64;
            }
            if chunk.rows > 0 {
                return Ok(true);
            }
        }
    }
}

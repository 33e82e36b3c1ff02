//! The rows of windows, and answers about the window that closed last.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_json::Value;
use trommel_engine::operator::Output;
use trommel_engine::query::{QueryError, Request, Response};

use crate::frequent_items::rows::batches::{Budget, Rows};
use crate::frequent_items::rows::questions::{Question, Report};
use crate::frequent_items::rows::ranked::ranked_schema;
use crate::shared::items::Column;
use crate::shared::window::borders::{Borders, WindowSpan};
use crate::summary::Counted;

/// The rows that are emitted: the columns of the window, and the columns of [`ranked_schema`].
pub(crate) fn window_schema(item: &DataType, borders: Borders) -> SchemaRef {
    spanned_schema(&ranked_schema(item), borders)
}

/// The columns of the window, then the columns of `others`.
fn spanned_schema(others: &Schema, borders: Borders) -> SchemaRef {
    let fields = borders.fields().into_iter().chain(others.fields().iter().map(Arc::clone));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Rows of `schema`: the columns of the window, and the columns of `rows`.
fn spanned(
    schema: &SchemaRef,
    borders: Borders,
    span: WindowSpan,
    rows: &RecordBatch,
) -> RecordBatch {
    let window = borders.columns(span, rows.num_rows()).into_iter();
    let columns = window.chain(rows.columns().iter().map(Arc::clone)).collect();
    RecordBatch::try_new(SchemaRef::clone(schema), columns).expect("built to this schema")
}

const NO_WINDOW: &str = "no window with items has closed";

/// The window that a query asks about.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asked {
    /// The open window.
    #[default]
    Open,
    /// The last closed window with items.
    Closed,
}

impl Asked {
    /// Takes the parameter `window` out of a request.
    pub(crate) fn split_off(request: Request) -> Result<(Self, Request), QueryError> {
        let (window, request) = request.split_off("window");
        let asked = window.map_or(Ok(Self::Open), |window| {
            let read = |window: Value| Self::deserialize(window.into_deserializer());
            read(window).map_err(|source: serde_json::Error| QueryError::Parameters {
                request: request.name().to_owned(),
                source,
            })
        });
        Ok((asked?, request))
    }
}

/// A closed window.
pub(crate) struct ClosedWindow<K> {
    pub(crate) span: WindowSpan,
    pub(crate) counted: Vec<Counted<K>>,
    pub(crate) observed: u64,
    pub(crate) count_min: u64,
}

impl<K: Column> ClosedWindow<K> {
    fn bytes(&self) -> usize {
        let items = self.counted.iter().map(|counted| counted.item.column_bytes());
        size_of_val(&self.counted[..]) + items.sum::<usize>()
    }

    /// The answer to a question, with the columns of the window.
    fn answer(
        &self,
        question: &Question<K>,
        request: &Request,
        ranked: &SchemaRef,
        borders: Borders,
    ) -> Result<Response, QueryError> {
        let monitored = self.counted.iter().map(Counted::as_ref);
        let response =
            question.answer(request, ranked, monitored, self.observed, || self.count_min)?;
        let span = self.span;
        // The thread that asked adds the columns, because the same thread may have to rank the
        // rows.
        Ok(Response::Compute(Box::new(move || {
            let rows = response.compute()?;
            let schema = spanned_schema(rows.schema_ref(), borders);
            Ok(spanned(&schema, borders, span, &rows))
        })))
    }
}

/// The rows of closed windows on their way out.
pub(crate) struct WindowRows<K> {
    borders: Borders,
    report: Report,
    schema: SchemaRef,
    ranked: SchemaRef,
    /// Number of windows that had rows.
    pub(crate) closed: u64,
    /// Rows of the last closed window that are still to be sent, and the extent of that window.
    rows: Rows<K>,
    span: WindowSpan,
    last: Option<ClosedWindow<K>>,
}

impl<K: Column> WindowRows<K> {
    pub(crate) fn new(item: &DataType, borders: Borders, report: Report) -> Self {
        Self {
            borders,
            report,
            schema: window_schema(item, borders),
            ranked: ranked_schema(item),
            closed: 0,
            rows: Rows::default(),
            span: WindowSpan::default(),
            last: None,
        }
    }

    /// The schema of rows without the columns of the window.
    pub(crate) fn ranked(&self) -> &SchemaRef {
        &self.ranked
    }

    /// Sends rows as far as `budget` allows; true if no row is left.
    pub(crate) fn send(&mut self, budget: &mut Budget, out: &mut Output) -> bool {
        while let Some(rows) = self.rows.next_batch(&self.ranked, budget) {
            out.send(spanned(&self.schema, self.borders, self.span, &rows));
        }
        self.rows.is_empty()
    }

    /// Takes the rows of a window of these counts. All rows of the window before have been sent.
    pub(crate) fn put(&mut self, counted: &[Counted<K>], observed: u64, span: WindowSpan) {
        let counted = counted.iter().map(Counted::as_ref);
        let selected = self.report.select(counted, observed);
        if !selected.is_empty() {
            self.closed += 1;
            self.span = span;
            self.rows = Rows::new(selected);
        }
    }

    /// Keeps the window that closed last for queries.
    pub(crate) fn keep(&mut self, window: ClosedWindow<K>) {
        self.last = Some(window);
    }

    /// Bytes of the window that is kept.
    pub(crate) fn bytes(&self) -> usize {
        self.last.as_ref().map_or(0, ClosedWindow::bytes)
    }

    /// Answers a question about the window that closed last.
    pub(crate) fn answer_closed(
        &self,
        question: &Question<K>,
        request: &Request,
    ) -> Result<Response, QueryError> {
        let Some(closed) = &self.last else {
            let request = request.name().to_owned();
            return Err(QueryError::NotYet { request, awaited: NO_WINDOW });
        };
        closed.answer(question, request, &self.ranked, self.borders)
    }
}

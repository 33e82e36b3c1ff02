// A source and a sink for the examples of the documentation, which include this file.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::SchemaRef;
use trommel_engine::batch::Payload;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output, Source,
    SourceFlow,
};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response};

/// A batch of one column of numbers.
pub fn numbers(numbers: impl IntoIterator<Item = u64>) -> RecordBatch {
    let column: ArrayRef = Arc::new(UInt64Array::from_iter_values(numbers));
    RecordBatch::try_from_iter([("number", column)]).expect("one column")
}

/// The numbers below the second one, from the first one on.
pub struct Numbers(pub u64, pub u64);

impl Source for Numbers {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        let begin = self.0;
        self.0 = self.1.min(begin + 100);
        out.send(numbers(begin..self.0));
        Ok(if self.0 < self.1 { SourceFlow::HaveOutput } else { SourceFlow::Finished })
    }
}

impl OperatorSpec for Numbers {
    fn operator(&self) -> &'static str {
        "numbers"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        Ok(Fragment::source(Load::Light, *self, numbers([]).schema()))
    }
}

/// A sink that answers the query `sum`.
pub struct Sum(pub u64);

impl Operator for Sum {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        _out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let records = input.into_records();
        let column = records.column(0).as_any().downcast_ref::<UInt64Array>().expect("numbers");
        self.0 += column.values().iter().sum::<u64>();
        Ok(Flow::NeedInput)
    }

    fn query(&self, request: &Request, _: Option<QueryPayload>) -> Result<Response, QueryError> {
        match request.name() {
            "sum" => Ok(Response::Answer(numbers([self.0]))),
            _ => Err(QueryError::unsupported(request, &["sum"])),
        }
    }
}

impl OperatorSpec for Sum {
    fn operator(&self) -> &'static str {
        "sum"
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        Ok(Fragment::operator(Load::Heavy, *self, Vec::new()))
    }
}

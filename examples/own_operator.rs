//! An operator of your own: lets every n-th row pass.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use trommel::arrow::schema::SchemaRef;
use trommel::batch::Payload;
use trommel::error::{BindError, BindErrorKind};
use trommel::operator::{BindContext, Flow, Fragment, Load, Output};
use trommel::prelude::*;
use trommel::{Operator, OperatorError, OperatorSpec};

/// Lets row `n`, `2 n`, .. of the stream pass.
struct EachNth {
    n: usize,
    /// Rows to drop before the next one that passes.
    skip: usize,
}

impl Operator for EachNth {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let records = input.into_records();
        while self.skip < records.num_rows() {
            out.send(records.slice(self.skip, 1));
            self.skip += self.n;
        }
        self.skip -= records.num_rows();
        Ok(Flow::NeedInput)
    }
}

impl OperatorSpec for EachNth {
    fn operator(&self) -> &'static str {
        "each_nth"
    }

    fn bind(self: Box<Self>, inputs: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        if self.n == 0 {
            let allowed = "at least 1".to_owned();
            return Err(BindErrorKind::Value { value: "0".to_owned(), allowed }.at("n"));
        }
        Ok(Fragment::operator(Load::Light, *self, inputs.to_vec()))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut graph = Graph::new();
    let items = graph.add("items", Generate::zipf(100, 1.0).items(1_000).batch(64));
    let tenth = graph.add_after(items, "tenth", EachNth { n: 10, skip: 9 });
    let (sink, rows) = Collect::new();
    graph.add_after(tenth, "rows", sink);
    graph.build()?.run(RunOptions::new())?;
    println!("{} of 1000 rows passed", rows.rows());
    Ok(())
}

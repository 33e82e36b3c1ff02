//! A sink of your own: sends rows over a connection.
//!
//! A function of each batch needs less: `ForEach::new(|batch| ...)`.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::error::Error;
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use trommel::arrow::array::cast::AsArray;
use trommel::arrow::array::types::UInt32Type;
use trommel::arrow::schema::SchemaRef;
use trommel::batch::Payload;
use trommel::error::BindError;
use trommel::operator::{BindContext, Flow, Fragment, Load, Output};
use trommel::prelude::*;
use trommel::{Operator, OperatorError, OperatorSpec};

/// Sends numbers to a connection, a line each.
struct Lines(TcpStream);

impl Operator for Lines {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        let records = input.into_records();
        let numbers = records.column(0).as_primitive::<UInt32Type>().values().iter();
        let text: String = numbers.map(|number| format!("{number}\n")).collect();
        self.0.write_all(text.as_bytes())?;
        Ok(Flow::NeedInput)
    }
}

impl OperatorSpec for Lines {
    fn operator(&self) -> &'static str {
        "lines"
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        // An operator without an output is a sink.
        Ok(Fragment::operator(Load::Light, *self, Vec::new()))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let stream = TcpStream::connect(listener.local_addr()?)?;
    let reader = thread::Builder::new().spawn(move || io::read_to_string(listener.accept()?.0))?;
    let mut graph = Graph::new();
    let items = graph.add("items", Generate::zipf(100, 1.0).items(1_000));
    graph.add_after(items, "lines", Lines(stream));
    graph.build()?.run(RunOptions::new())?;
    let text = reader.join().expect("the thread does not panic")?;
    println!("{} lines arrived", text.lines().count());
    Ok(())
}

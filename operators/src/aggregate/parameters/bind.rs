//! From the parameters of the operator to its parts.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Body, Demand, Division, Fragment, Load, Operator, OperatorError, OperatorSpec,
    Part,
};
use trommel_engine::registry::Configured;

use super::operator::Aggregate;
use super::plan::Plan;
use crate::aggregate::input::Input;
use crate::aggregate::memory::Memory;
use crate::aggregate::state::State;
use crate::aggregate::whole::{Merge, OnePlace, Worker};
use crate::aggregate::windows::{Windows, window_schema};
use crate::expressions::demand_of;
use crate::shared::parameters::{Mistakes, blame};
use crate::shared::rejected::OnError;
use crate::shared::window::Window;

impl OperatorSpec for Aggregate {
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
        let by = self.by.as_slice();
        if by.iter().any(|text| text.trim_start().starts_with('*')) {
            return Demand::all();
        }
        let texts = by.iter().chain(self.compute.as_slice());
        let read = texts.fold(Demand::none(), |demand, text| demand_of(text, demand));
        OnError::demand(self.on_error, read)
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        let mut mistakes = Mistakes::default();
        mistakes.check(self.check_ranges());
        let slides = mistakes.check(self.window.as_ref().map(Window::slides).transpose());
        let plan = mistakes.check(Plan::new(&self, &inputs[0]));
        let (slides, plan) = mistakes.all(|| slides.zip(plan))?;
        let plan = Arc::new(plan);
        let memory = Memory::new(self.memory_max, &context.memory)?;
        let rejected = OnError::rejected(self.on_error);
        let input = Input::new(&plan, self.on_error);
        if let Some(slides) = slides {
            let schema = window_schema(&plan.schema, slides.borders);
            let windows = Windows::new(input, &plan, slides, memory).map_err(full)?;
            let fragment = Fragment::operator(Load::Heavy, windows, vec![schema]);
            return Ok(fragment.with_early_outputs(rejected));
        }
        let outputs = vec![Arc::clone(&plan.schema)];
        if plan.is_of_order {
            let state = State::new(&plan, memory.budget()).map_err(full)?;
            let one = OnePlace::new(Worker::new(input, state));
            let fragment = Fragment::operator(Load::Heavy, one, outputs);
            return Ok(fragment.with_early_outputs(rejected));
        }
        let on_error = self.on_error;
        let worker = move || -> Result<Body, BindError> {
            let state = State::new(&plan, memory.budget()).map_err(full)?;
            Ok(body(Worker::new(Input::new(&plan, on_error), state)))
        };
        let parts = vec![
            Part { name: "group".into(), load: Load::Heavy, body: worker()? },
            Part { name: "merge".into(), load: Load::Light, body: body(Merge::default()) },
        ];
        let fragment = Fragment::new(parts, outputs).with_early_outputs(rejected);
        Ok(fragment.divided(Division::Partial, 0, usize::MAX, worker))
    }
}

fn full(error: OperatorError) -> BindError {
    blame("memory_max", error)
}

fn body(operator: impl Operator + 'static) -> Body {
    Body::Operator(Box::new(operator))
}

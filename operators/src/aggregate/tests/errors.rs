//! Messages of mistakes, and rows for which an expression has no value.

use super::{Aggregate, Cell, Row, batch, cells, run};
use crate::shared::rejected::OnError;
use crate::shared::window::Window;
use crate::testing::{bind, bind_operator, run_operator};

fn refused(spec: Aggregate) -> String {
    let mistakes = bind(spec, &[batch(&[]).schema()]).unwrap_err().flatten();
    let shown = mistakes.iter().map(|error| format!("{}: {error}", error.parameter.unwrap()));
    shown.collect::<Vec<_>>().join("\n")
}

#[test]
fn calls_that_cannot_be_computed_are_refused() {
    let cases = [
        ("sum(ms) + 1", "expected one call such as `sum(x)` or `count(*) as n`"),
        ("ms", "expected one call such as"),
        ("*", "expected one call such as"),
        ("summ(ms)", "there is no aggregate `summ`; there are count, sum, avg, min, max, first, "),
        ("summ(ms)", "did you mean `sum`?"),
        ("lower(host)", "there is no aggregate `lower`"),
        ("sum(host)", "expected a number or a duration, and this is Utf8; a `cast` makes one"),
        ("avg(host)", "expected a number or a duration"),
        ("quantile(host, 0.5)", "expected a number, and this is Utf8"),
        ("quantile(ms, 1.5)", "expected a constant from 0 to 1, such as 0.99"),
        ("quantile(ms, code)", "expected a constant from 0 to 1"),
        ("quantile(ms)", "it is called as `quantile(x, 0.99)`, and here with 1 arguments"),
        ("sum()", "it is called as `sum(x)`, and here with 0 arguments"),
        ("count()", "it is called as `count(*)` or `count(x)`, and here with 0 arguments"),
        ("sum(*)", "`*` stands in `count(*)` alone"),
        ("sum(distinct code)", "`distinct` stands in `count(distinct x)` alone"),
        ("sum(avg(ms))", "there is no function `avg`"),
        ("sum(mz)", "the input has no column `mz`"),
        ("sum(mz)", "did you mean `ms`?"),
        ("sum(ms) over (order by ms)", "expected one call such as"),
        ("count(*) filter (where ms > 1)", "an operator or the end of the expression is expected"),
        ("sum(ms", "`sum(ms`, at character"),
    ];
    for (call, expected) in cases {
        let error = refused(Aggregate::new(call));
        assert!(error.contains(expected) && error.starts_with("compute: "), "{call}: {error}");
    }
}

#[test]
fn other_mistakes_are_refused_all_at_once() {
    let spec = Aggregate::new(["sum(mz)", "count(*) as n", "count(code) as n"]).by("hosd");
    let error = refused(spec.window(Window::items(0)));
    for expected in ["`hosd`", "`mz`", "a second column `n`", "window"] {
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let error = refused(Aggregate::new([""; 0]));
    assert!(error.contains("name one call at least, such as `count(*)`"), "{error}");
    let error = refused(Aggregate::new("count(*)").by("unnest(words(host))"));
    assert!(error.contains("a `select` before this stage makes rows"), "{error}");
    let spec = Aggregate::new("count(*) as complete").by("host as window_end");
    let error = refused(spec.window(Window::items(5)));
    assert!(error.contains("`window_end`") && error.contains("`complete`"), "{error}");
}

fn rows() -> Vec<Row> {
    let row = |host: &str, code| Row { host: Some(host.to_owned()), code: Some(code), ms: None };
    vec![row("1", 10), row("x", 11), row("2", 0), row("1", 13)]
}

#[test]
fn rows_without_a_value_are_rejected() {
    let spec = |on_error| {
        let calls = ["sum(100 // code) as q", "count(*)"];
        Aggregate::new(calls).by("cast(host as int) as h").on_error(on_error)
    };
    let mut strict = bind_operator_of(spec(OnError::Fail));
    let error = run_operator(&mut *strict, [batch(&rows())]).unwrap_err().to_string();
    assert!(error.starts_with("row 2 of the input"), "{error}");
    let expected = [vec![Cell::Whole(1), Cell::Whole(17), Cell::Whole(2)]];
    let found = run(spec(OnError::Skip), vec![batch(&rows())], Some(2)).unwrap();
    assert_eq!(cells(&found), expected);
    let mut rejecting = bind_operator_of(spec(OnError::Reject));
    let found = run_operator(&mut *rejecting, [batch(&rows())]).unwrap();
    let rejected: usize =
        found.iter().filter(|rows| rows.num_columns() == 6).map(|rows| rows.num_rows()).sum();
    assert_eq!(rejected, 2);
}

/// The operator in one place, which a call of `first` asks for.
fn bind_operator_of(spec: Aggregate) -> Box<dyn trommel_engine::operator::Operator> {
    let calls: Vec<String> = spec.compute.as_slice().to_vec();
    let spec = Aggregate {
        compute: calls.into_iter().chain(["first(code)".to_owned()]).collect(),
        ..spec
    };
    bind_operator(spec, &batch(&[]).schema())
}

#[test]
fn a_sum_that_does_not_fit_is_an_error_that_names_the_column() {
    let row = |code| Row { host: None, code: Some(code), ms: None };
    let large = [row(i64::MAX), row(1), row(i64::MIN), row(-7)];
    for workers in [1, 2] {
        let found = run(Aggregate::new("sum(code)"), super::batches(&large, 1), Some(workers));
        assert_eq!(cells(&found.unwrap()), [[Cell::Whole(-7)]], "the sum of all fits");
        let found = run(Aggregate::new("sum(code)"), super::batches(&large[..2], 1), Some(workers));
        let error = found.unwrap_err();
        let expected = "`sum(code)`: the sum of a group does not fit Int64";
        assert!(error.contains(expected), "{error}");
        let mean = run(Aggregate::new("avg(code)"), super::batches(&large[..2], 1), Some(workers));
        assert_eq!(cells(&mean.unwrap()), [[Cell::Float(2_f64.powi(62))]]);
    }
}

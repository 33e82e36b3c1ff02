//! What the attribute makes of a declaration: constructors, setters, defaults, JSON and ranges.

use std::path::PathBuf;

use serde_json::{Value, from_value, json};
use trommel_macros::parameters;

use crate::shared::parameters::Names;

/// The things of `trommel-operators` that the code of the attribute calls.
mod shared {
    pub(crate) mod parameters {
        use std::ops::RangeInclusive;

        use serde::Deserialize;

        pub(crate) type BindError = Vec<String>;

        #[derive(Default)]
        pub(crate) struct Mistakes(Vec<String>);

        impl Mistakes {
            pub(crate) fn check(&mut self, checked: Result<(), String>) {
                self.0.extend(checked.err());
            }

            pub(crate) fn none(self) -> Result<(), BindError> {
                if self.0.is_empty() { Ok(()) } else { Err(self.0) }
            }
        }

        pub(crate) fn check_range<T: PartialOrd + ToString>(
            parameter: &str,
            value: &T,
            allowed: &RangeInclusive<T>,
        ) -> Result<(), String> {
            if allowed.contains(value) {
                return Ok(());
            }
            Err(format!(
                "{parameter}: {} is not in {}..={}",
                value.to_string(),
                allowed.start().to_string(),
                allowed.end().to_string()
            ))
        }

        #[derive(Debug, Clone, Default, PartialEq, Deserialize, schemars::JsonSchema)]
        pub(crate) struct Names(Vec<String>);

        impl From<&str> for Names {
            fn from(name: &str) -> Self {
                Self(vec![name.to_owned()])
            }
        }

        impl<T: Into<String>> FromIterator<T> for Names {
            fn from_iter<I: IntoIterator<Item = T>>(names: I) -> Self {
                Self(names.into_iter().map(Into::into).collect())
            }
        }
    }
}

const LARGEST: u32 = 9;

/// An operator.
#[parameters]
#[derive(PartialEq)]
pub(crate) struct Join {
    /// Files of the sets,
    /// in their order.
    files: Vec<PathBuf>,
    /// Minimum similarity.
    threshold: f64,
    /// Column of the sets.
    #[default("set")]
    set: String,
    /// Columns that go along.
    #[default]
    #[setter(each)]
    carry: Names,
    /// Columns of the item.
    #[default("item")]
    item: Names,
    /// Items of a result.
    #[default(2)]
    #[range(2..=3)]
    itemset: usize,
    /// Coordinates.
    #[range(1..=LARGEST)]
    dims: Option<u32>,
    /// Bytes of all.
    #[range(1..)]
    memory_max: Option<u64>,
    /// Whether a time goes along.
    #[default]
    latency: bool,
    /// Whether there is a header.
    header: Option<bool>,
    /// Character between fields.
    #[setter(char)]
    delimiter: Option<String>,
    /// Numbers of measures.
    #[default(vec![7])]
    measures: Vec<u8>,
    /// Kind of the rows.
    #[default]
    #[setter(none)]
    kind: u8,
    /// Places, from a keyword of Rust.
    #[default]
    r#where: String,
    #[serde(skip)]
    tuning: u8,
}

#[test]
fn the_constructor_takes_what_is_required_and_sets_the_defaults() {
    let join = Join::new(["a", "b"], 0.5);
    let expected = Join {
        files: vec!["a".into(), "b".into()],
        threshold: 0.5,
        set: "set".to_owned(),
        carry: Names::default(),
        item: Names::from("item"),
        itemset: 2,
        dims: None,
        memory_max: None,
        latency: false,
        header: None,
        delimiter: None,
        measures: vec![7],
        kind: 0,
        r#where: String::new(),
        tuning: 0,
    };
    assert_eq!(join, expected);
}

#[test]
fn json_has_the_same_defaults_and_refuses_other_names() {
    let join: Join = from_value(json!({ "files": ["a"], "threshold": 0.5 })).unwrap();
    assert_eq!(join, Join::new(["a"], 0.5));
    let refused = |json: Value| from_value::<Join>(json).unwrap_err().to_string();
    assert!(refused(json!({ "files": [] })).contains("missing field `threshold`"));
    let unknown = json!({ "files": [], "threshold": 1.0, "tuning": 1 });
    assert!(refused(unknown).contains("unknown field `tuning`"));
}

#[test]
fn a_setter_takes_what_is_natural_for_its_type() {
    let join = Join::new([PathBuf::from("a")], 0.5)
        .set("x")
        .carry(vec!["c", "d"])
        .item("y")
        .itemset(3)
        .dims(4)
        .memory_max(5)
        .latency()
        .header(false)
        .delimiter(';')
        .measures([1, 2])
        .r#where("z");
    let same = json!({
        "files": ["a"], "threshold": 0.5, "set": "x", "carry": ["c", "d"], "item": ["y"],
        "itemset": 3, "dims": 4, "memory_max": 5, "latency": true, "header": false,
        "delimiter": ";", "measures": [1, 2], "where": "z"
    });
    assert_eq!(join, from_value(same).unwrap());
    assert_eq!((join.kind, join.tuning), (0, 0));
}

#[test]
fn the_schema_has_documentation_defaults_and_ranges() {
    let schema = serde_json::to_value(schemars::schema_for!(Join)).unwrap();
    assert_eq!(schema["required"], json!(["files", "threshold"]));
    assert_eq!(schema["additionalProperties"], json!(false));
    let of = |name: &str| schema["properties"][name].clone();
    let itemset = json!({
        "description": "Items of a result.", "type": "integer", "format": "uint", "default": 2,
        "minimum": 2, "maximum": 3
    });
    assert_eq!(of("itemset"), itemset);
    assert_eq!((&of("dims")["maximum"], &of("dims")["default"]), (&json!(9), &Value::Null));
    assert_eq!((&of("memory_max")["minimum"], of("memory_max").get("maximum")), (&json!(1), None));
    assert_eq!((of("set")["default"].clone(), of("tuning")), (json!("set"), Value::Null));
}

#[test]
fn all_values_out_of_their_ranges_are_told() {
    let join = Join::new(["a"], 0.5);
    assert_eq!(join.check_ranges(), Ok(()));
    assert_eq!(join.clone().dims(9).memory_max(u64::MAX).check_ranges(), Ok(()));
    let mistakes = join.itemset(4).dims(10).memory_max(0).check_ranges().unwrap_err();
    let max = u64::MAX;
    let expected = [
        "itemset: 4 is not in 2..=3".to_owned(),
        "dims: 10 is not in 1..=9".to_owned(),
        format!("memory_max: 0 is not in 1..={max}"),
    ];
    assert_eq!(mistakes, expected);
}

/// Limit of a file, the value of a parameter.
#[parameters(own_new, errors_at = "rotate")]
#[derive(Copy)]
pub(crate) struct Rotate {
    /// Bytes of a file.
    #[range(1..)]
    #[setter(none)]
    bytes: Option<u64>,
    /// Files that are kept.
    #[default(5)]
    #[range(1..=9)]
    keep: u8,
}

impl Rotate {
    fn bytes(bytes: u64) -> Self {
        Self { bytes: Some(bytes), ..Self::defaults() }
    }
}

#[test]
fn a_value_of_a_parameter_has_its_own_constructors_and_the_errors_of_the_parameter() {
    assert_eq!(Rotate::bytes(1).check_ranges(), Ok(()));
    let expected = ["rotate: 0 is not in 1..=18446744073709551615", "rotate: 10 is not in 1..=9"];
    assert_eq!(Rotate::bytes(0).keep(10).check_ranges().unwrap_err(), expected);
}

/// Nothing is required.
#[parameters]
#[derive(PartialEq)]
pub(crate) struct Plain {
    /// A number.
    #[default(3)]
    n: u8,
}

#[test]
fn a_struct_without_required_parameters_has_a_default() {
    assert_eq!(Plain::default(), Plain::new());
    assert_eq!(Plain::new().n, 3);
}

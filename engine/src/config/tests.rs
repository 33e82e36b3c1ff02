use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::check::KEYWORDS;
use super::{ConfigErrors, Override, Pipeline, Supplied, load, load_supplied, schema};
use crate::batch::Payload;
use crate::error::{BindError, BindErrorKind};
use crate::operator::{
    BindContext, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output, Source,
    SourceFlow,
};
use crate::registry::{Configured, Registry};

/// A source with a parameter of every kind that the checks know.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Count {
    /// The last number.
    #[schemars(range(min = 1, max = 100))]
    to: u32,
    #[serde(default)]
    by: Option<u64>,
    #[serde(default)]
    #[expect(dead_code, reason = "only its check matters")]
    order: Order,
    #[serde(default)]
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    share: Option<f64>,
    #[serde(default)]
    #[expect(dead_code, reason = "only its check matters")]
    scale: Option<f64>,
    #[serde(default)]
    #[expect(dead_code, reason = "only its check matters")]
    names: BTreeMap<String, u8>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Order {
    #[default]
    Ascending,
    Descending,
}

struct Nothing;

impl Source for Nothing {
    fn next(&mut self, _out: &mut Output) -> Result<SourceFlow, OperatorError> {
        Ok(SourceFlow::Finished)
    }
}

impl Operator for Nothing {
    fn process(
        &mut self,
        _port: usize,
        _input: Payload,
        _out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        Ok(Flow::NeedInput)
    }
}

impl OperatorSpec for Count {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let refuse = |value: String, allowed: String, parameter: &'static str| {
            Err(BindErrorKind::Value { value, allowed }.at(parameter))
        };
        let by = match self.by {
            Some(by) if by > u64::from(self.to) => {
                refuse(by.to_string(), format!("at most `to`, which is {}", self.to), "by")
            }
            _ => Ok(()),
        };
        let share = match self.share {
            Some(share) if share * f64::from(self.to) < 1.0 => {
                refuse(share.to_string(), "at least one of `to`".to_owned(), "share")
            }
            _ => Ok(()),
        };
        BindError::collect([by, share])?;
        let schema = Arc::new(Schema::new(vec![Field::new("item", DataType::UInt32, false)]));
        Ok(Fragment::source(Load::Heavy, Nothing, schema))
    }
}

impl Configured for Count {
    const NAME: &'static str = "count";
    const SUMMARY: &'static str = "Counts.";
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Swallow {}

impl OperatorSpec for Swallow {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        Ok(Fragment::operator(Load::Light, Nothing, Vec::new()))
    }
}

impl Configured for Swallow {
    const NAME: &'static str = "swallow";
    const SUMMARY: &'static str = "Takes everything.";
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Split {}

impl OperatorSpec for Split {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn output_ports(&self) -> &'static [&'static str] {
        &["even", "odd"]
    }

    fn bind(self: Box<Self>, inputs: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let outputs = vec![SchemaRef::clone(&inputs[0]); 2];
        Ok(Fragment::operator(Load::Light, Nothing, outputs))
    }
}

impl Configured for Split {
    const NAME: &'static str = "split";
    const SUMMARY: &'static str = "Parts the even from the odd.";
}

/// A source that no configuration can make.
struct Other;

impl OperatorSpec for Other {
    fn operator(&self) -> &'static str {
        "other"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        Ok(Fragment::source(Load::Light, Nothing, Arc::new(Schema::empty())))
    }
}

fn registry() -> Registry {
    let mut registry = Registry::new();
    registry.register::<Count>().register::<Split>().register::<Swallow>();
    registry
}

fn read(text: &str) -> Result<Pipeline, ConfigErrors> {
    load(text, "test.json", &registry(), &[])
}

/// Each error as `line:column path message`.
fn errors(text: &str) -> Vec<String> {
    let errors = read(text).expect_err("the text has mistakes");
    errors.0.iter().map(|e| format!("{}:{} {}: {}", e.line, e.column, e.path, e.message)).collect()
}

const GOOD: &str = r#"{
  "name": "good",
  "stages": [
    { "id": "numbers", "operator": "count", "with": { "to": 10, "order": "descending", "by": null } },
    { "id": "end", "operator": "swallow", "inputs": ["numbers"] }
  ]
}"#;

#[test]
fn a_good_pipeline_is_read() {
    let pipeline = read(GOOD).unwrap();
    assert_eq!(pipeline.name, "good");
    let ids: Vec<_> = pipeline.topology.stages().iter().map(|s| s.id.as_str()).collect();
    assert_eq!(ids, ["numbers", "end"]);
}

#[test]
fn every_mistake_is_reported_at_once_with_its_place() {
    let text = r#"{
  "nam": "x",
  "placement": "Auto",
  "stages": [
    { "id": "a", "operator": "cuont", "with": {} },
    { "id": "b", "operator": "count", "with": { "to": 101, "to": 0, "order": 5, "share": 0.0, "by": 18446744073709551616, "scale": -1e999 } },
    { "id": "c", "operator": "count", "with": { "to": 1, "names": { "x": 255, "y": 256, "z": "a" } } },
    { "id": "b", "operator": "swallow", "inputs": ["bb", 7] },
    { "operator": "count", "with": { "Order": "up" } }
  ]
}"#;
    let expected = [
        "2:3 nam: there is no key `nam` here; allowed: `$schema`, `memory_max`, `name`, `pin`, `placement`, `queue`, `rejected`, `stages`; did you mean `name`?",
        "3:16 placement: \"Auto\" is not allowed here; allowed: \"auto\", \"fused\"; did you mean `auto`?",
        "5:30 stages[0].operator: \"cuont\" is not allowed here; allowed: \"count\", \"split\", \"swallow\"; did you mean `count`?",
        "6:55 stages[1].with.to: 101 is out of range; allowed: 1 to 100",
        "6:60 stages[1].with.to: duplicate key `to`",
        "6:66 stages[1].with.to: 0 is out of range; allowed: 1 to 100",
        "6:78 stages[1].with.order: 5 is not allowed here; allowed: \"ascending\", \"descending\"",
        "6:90 stages[1].with.share: 0.0 is out of range; allowed: more than 0.0, at most 1.0",
        "6:101 stages[1].with.by: 18446744073709551616 is out of range; allowed: 0 to 18446744073709551615",
        "6:132 stages[1].with.scale: -1e999 is out of the range of float64",
        "7:84 stages[2].with.names.y: 256 is out of range; allowed: 0 to 255",
        "7:94 stages[2].with.names.z: \"a\" is not an integer",
        "8:13 stages[3].id: the id \"b\" is already used by stages[1]",
        "8:52 stages[3].inputs[0]: there is no stage \"bb\"; stages: a, b, c, b; did you mean `b`?",
        "8:58 stages[3].inputs[1]: 7 is not a string",
        "9:5 stages[4]: `id` is missing",
        "9:36 stages[4].with: `to` is missing",
        "9:38 stages[4].with.Order: there is no key `Order` here; allowed: `by`, `names`, `order`, `scale`, `share`, `to`; did you mean `order`?",
    ];
    assert_eq!(errors(text), expected);
}

#[test]
fn mistakes_of_the_graph_point_into_the_file() {
    let text = r#"{ "stages": [
  { "id": "a", "operator": "count", "with": { "to": 3, "by": 4 } },
  { "id": "b", "operator": "count", "with": { "to": 3 } , "inputs": ["a"] },
  { "id": "c", "operator": "swallow", "inputs": ["a"], "cores": [4000] }
] }"#;
    let errors = errors(text);
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert_eq!(
        errors[0],
        "2:62 stages[0].with.by: `by`: 4 is not allowed here; at most `to`, which is 3"
    );
    assert_eq!(errors[1], "3:69 stages[1].inputs: `count` takes no inputs, found 1");
    assert!(
        errors[2].starts_with("4:65 stages[2].cores: core 4000 is not available"),
        "{errors:?}"
    );
}

/// A pipeline whose last stage reads `input`; everything else is read.
fn splitting(input: &str) -> String {
    format!(
        r#"{{ "stages": [ {{ "id": "n.1", "operator": "count", "with": {{ "to": 3 }} }},
            {{ "id": "s", "operator": "split", "inputs": ["n.1"] }},
            {{ "id": "a", "operator": "swallow", "inputs": ["s.even", "s.odd"] }},
            {{ "id": "b", "operator": "swallow", "inputs": [{input:?}] }} ] }}"#
    )
}

/// `c` is wrong by the schema, so `d`, which reads it, cannot be bound; `a` and `b` can.
#[test]
fn mistakes_of_binding_are_told_beside_those_of_the_schema() {
    let text = r#"{ "stages": [
  { "id": "a", "operator": "count", "with": { "to": 3, "by": 4 } },
  { "id": "b", "operator": "swallow", "inputs": ["a"], "cores": [4000] },
  { "id": "c", "operator": "count", "with": { "to": 0 } },
  { "id": "d", "operator": "swallow", "inputs": ["c"] },
  { "id": "e\u0007", "operator": "count", "with": { "to": 1 } }
] }"#;
    let errors = errors(text);
    let path = |error: &String| error.split([' ', ':']).nth(2).expect("a path").to_owned();
    let paths: Vec<_> = errors.iter().map(path).collect();
    let expected = ["stages[0].with.by", "stages[1].cores", "stages[2].with.to", "stages[4].id"];
    assert_eq!(paths, expected, "{errors:#?}");
}

/// One round tells mistakes of the schema, of a reference, of ports, of binding (two of one stage,
/// which stands before its input), and a cycle.
#[test]
fn mistakes_of_all_steps_are_told_in_one_round() {
    let text = r#"{ "stages": [
  { "id": "first", "operator": "swallow", "inputs": ["ok"], "cores": [4000] },
  { "id": "ok", "operator": "count", "with": { "to": 3 } },
  { "id": "two", "operator": "count", "with": { "to": 3, "by": 4, "share": 0.25 } },
  { "id": "range", "operator": "count", "with": { "to": 0 } },
  { "id": "nobody", "operator": "swallow", "inputs": ["nil"] },
  { "id": "halves", "operator": "split", "inputs": ["ok"] },
  { "id": "half", "operator": "swallow", "inputs": ["halves"] },
  { "id": "x", "operator": "swallow", "inputs": ["y"] },
  { "id": "y", "operator": "swallow", "inputs": ["x"] },
  { "id": "after", "operator": "swallow", "inputs": ["two"] }
] }"#;
    let path = |error: &String| error.split([' ', ':']).nth(2).expect("a path").to_owned();
    let paths: Vec<_> = errors(text).iter().map(path).collect();
    let expected = [
        "stages[0].cores",
        "stages[2].with.by",
        "stages[2].with.share",
        "stages[3].with.to",
        "stages[4].inputs[0]",
        "stages[6].inputs[0]",
        "stages[7].inputs",
    ];
    assert_eq!(paths, expected, "{:#?}", errors(text));
}

#[test]
fn many_cycles_and_wrong_stages_take_linear_time() {
    let stage = |i: usize| {
        format!(r#"{{ "id": "s{i}", "operator": "swallow", "inputs": ["s{}", "s0"] }}"#, i + 1)
    };
    let stages: Vec<_> = (0..3_000).map(stage).collect();
    let text = format!("{{ \"stages\": [{}] }}", stages.join(","));
    assert_eq!(errors(&text.replace("\"s3000\"", "\"s1\"")).len(), 1);
    assert_eq!(errors(&text).len(), 1, "the last input names no stage");
}

#[test]
fn a_long_line_is_shown_around_its_mistake() {
    let text = format!("{{ \"stages\": [{}], \"nmae\": 1 }}", " ".repeat(500));
    let shown = read(&text).unwrap_err().to_string();
    let lines: Vec<&str> = shown.lines().collect();
    let at = lines.iter().position(|line| line.contains("nmae`")).expect("the mistake");
    let (line, marks) = (lines[at + 1], lines[at + 2]);
    assert!(line.chars().count() < 140 && line.contains('…'), "{shown}");
    let begin = marks.chars().position(|c| c == '^').expect("marks");
    assert_eq!(line.chars().skip(begin).take(6).collect::<String>(), "\"nmae\"");
    assert_eq!(marks.matches('^').count(), 6);
}

#[test]
fn an_output_of_several_is_named_by_its_port() {
    let pipeline = read(&splitting("s.odd")).unwrap();
    let reads: Vec<_> = pipeline.topology.stages().iter().map(|s| s.inputs.join(" ")).collect();
    assert_eq!(reads, ["", "n.1", "s.even s.odd", "s.odd"]);
    let said = |input: &str| errors(&splitting(input)).remove(0);
    let place = "4:60 stages[3].inputs[0]: ";
    let choices = "\"s.even\", \"s.odd\"";
    for (input, expected) in [
        ("s", format!("stage \"s\" has several outputs; name one: {choices}")),
        (
            "s.ood",
            format!("stage \"s\" has no output \"ood\"; outputs: {choices}; did you mean `s.odd`?"),
        ),
        ("n.1.odd", "stage \"n.1\" has one output, and no \"odd\"; write \"n.1\"".to_owned()),
    ] {
        assert_eq!(said(input), format!("{place}{expected}"));
    }
    assert!(said("t.odd").contains("there is no stage \"t.odd\""), "{}", said("t.odd"));
    let unread = splitting("s.odd").replace("\"s.even\", \"s.odd\"", "\"s.odd\"");
    assert!(errors(&unread)[0].contains("nothing reads its output `even`"), "{unread}");
}

#[test]
fn cycles_and_unread_outputs_are_refused() {
    let cycle = r#"{ "stages": [ { "id": "a", "operator": "swallow", "inputs": ["b"] },
                                 { "id": "b", "operator": "swallow", "inputs": ["a"] } ] }"#;
    assert!(errors(cycle)[0].contains("cycle: a -> b -> a"), "{:?}", errors(cycle));
    let unread = r#"{ "stages": [ { "id": "a", "operator": "count", "with": { "to": 1 } } ] }"#;
    assert!(errors(unread)[0].contains("nothing reads its output"));
}

#[test]
fn text_that_is_not_json_is_placed() {
    assert_eq!(errors("")[0], "1:1 not valid JSON: the file is empty; expected an object");
    for text in ["{", "[1,]", "{\"a\": 1,}", "{'a': 1}", "{a: 1}", "// x\n{}", "{} {}", "{\"a\" 1}"]
    {
        let errors = errors(text);
        assert_eq!(errors.len(), 1, "{text}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(errors(&deep).len(), 1);
}

#[test]
fn an_error_shows_its_line() {
    let errors = read("{\n  \"stages\": [],\n  \"nmae\": 1\n}").expect_err("two mistakes");
    let shown = errors.to_string();
    assert!(
        shown.contains("test.json:3:3: nmae: there is no key `nmae` here")
            && shown.contains("  3 |   \"nmae\": 1\n    |   ^^^^^^"),
        "{shown}"
    );
}

#[test]
fn overrides_replace_and_add_values() {
    let overrides: Vec<Override> =
        ["stages.numbers.with.to=7", "stages[0].with.by=7", "name=other", "queue.batches=2"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
    let pipeline = load(GOOD, "test.json", &registry(), &overrides).unwrap();
    assert_eq!(pipeline.name, "other");
    assert_eq!(pipeline.options.queue.batches, 2);
    let wrong: Override = "stages.numbers.with.to=700".parse().unwrap();
    let errors = load(GOOD, "test.json", &registry(), &[wrong]).expect_err("out of range");
    assert_eq!(
        errors.to_string(),
        "--set stages.numbers.with.to=700: stages[0].with.to: 700 is out of range; allowed: 1 to 100"
    );
    let nowhere: Override = "stages.nobody.id=x".parse().unwrap();
    let errors = load(GOOD, "test.json", &registry(), &[nowhere]).expect_err("no such stage");
    assert!(errors.to_string().contains("there is no element `nobody`"), "{errors}");
    assert!("to".parse::<Override>().is_err() && "a..b=1".parse::<Override>().is_err());
}

#[test]
fn stages_that_the_program_supplies_are_checked_and_run() {
    let text = r#"{ "stages": [
      { "id": "own", "operator": "other" },
      { "id": "end", "operator": "swallow", "inputs": ["own"] } ] }"#;
    let supplied = |id: &str| Supplied::new().stage(id, Other);
    let read = |text: &str, supplied| load_supplied(text, "own.json", &registry(), &[], supplied);
    let pipeline = read(text, supplied("own")).unwrap();
    assert_eq!(pipeline.topology.stages()[0].operator, "other");
    let faults = |text: &str, supplied| -> Vec<String> {
        read(text, supplied)
            .unwrap_err()
            .0
            .iter()
            .map(|e| format!("{}: {}", e.path, e.message))
            .collect()
    };
    assert_eq!(
        faults(text, supplied("owm")),
        [
            "stages: the program supplies `other` for \"owm\", which is no stage; stages: own, end; \
             did you mean `own`?",
            "stages[0].operator: the program supplies no `other` for this stage, only for `owm`",
        ]
    );
    let said = "stages[1].operator: the program supplies `other` for this stage";
    assert!(faults(text, supplied("end").stage("own", Other)).contains(&said.to_owned()));
    let with = text.replace("\"other\"", "\"other\", \"with\": {}");
    assert!(faults(&with, supplied("own"))[0].contains("there is no key `with` here"));
}

#[test]
fn the_schema_uses_no_keyword_that_is_not_checked() {
    fn visit(value: &Value, is_schema: bool) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let holds_names = is_schema && matches!(name.as_str(), "properties" | "$defs");
                    assert!(!is_schema || KEYWORDS.contains(&name.as_str()), "{name}");
                    let is_data =
                        matches!(name.as_str(), "default" | "enum" | "const" | "required");
                    if !(is_schema && is_data) {
                        visit(value, !holds_names);
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| visit(value, true)),
            _ => {}
        }
    }
    visit(&schema(&registry()), true);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}") {
        drop(read(&text));
    }

    #[test]
    fn no_damaged_pipeline_makes_it_panic(at in 0..GOOD.len(), len in 0..40_usize, insert in "[\\]\\[{}\",:0-9a-z]{0,4}") {
        let end = (at + len).min(GOOD.len());
        let text = format!("{}{insert}{}", &GOOD[..at], &GOOD[end..]);
        drop(read(&text));
    }
}

//! The rows of all inputs, compared with a naive oracle that names every value; and refused
//! inputs.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int8Type, UInt64Type};
use arrow_cast::display::array_value_to_string;
use proptest::prelude::*;
use trommel_engine::batch::{Batch, Origin};
use trommel_engine::operator::Body;

use super::*;
use crate::testing::bind;

/// Columns that inputs may have.
fn field(column: usize) -> Field {
    match column {
        0 => Field::new("item", DataType::UInt32, false),
        1 => Field::new("word", DataType::Utf8, true),
        2 => Field::new("count", DataType::UInt64, false),
        _ => Field::new("hot", DataType::Boolean, false),
    }
}

fn values(column: usize, seeds: &[u8]) -> ArrayRef {
    match column {
        0 => Arc::new(seeds.iter().map(|&seed| Some(u32::from(seed))).collect::<UInt32Array>()),
        1 => {
            let word = |&seed: &u8| (seed % 3 > 0).then(|| format!("word {seed}"));
            Arc::new(seeds.iter().map(word).collect::<StringArray>())
        }
        2 => {
            Arc::new(seeds.iter().map(|&seed| Some(u64::from(seed) << 40)).collect::<UInt64Array>())
        }
        _ => Arc::new(seeds.iter().map(|&seed| Some(seed % 2 == 0)).collect::<BooleanArray>()),
    }
}

fn schema(columns: &[usize]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|&column| field(column)).collect::<Vec<_>>()))
}

fn batch(columns: &[usize], seeds: &[u8]) -> RecordBatch {
    let arrays = columns.iter().map(|&column| values(column, seeds)).collect();
    RecordBatch::try_new(schema(columns), arrays).unwrap()
}

/// A row as the texts of its columns, by name; nulls are left out.
type Row = BTreeMap<String, String>;

fn rows(records: &RecordBatch) -> Vec<Row> {
    let text = |row, column: usize, name: &String| {
        let array = records.column(column);
        let value = || array_value_to_string(array, row).unwrap();
        array.is_valid(row).then(|| (name.clone(), value()))
    };
    let schema = records.schema();
    let row = |row| {
        schema.fields().iter().enumerate().filter_map(|(at, f)| text(row, at, f.name())).collect()
    };
    (0..records.num_rows()).map(row).collect()
}

fn operator(spec: Union, inputs: &[SchemaRef]) -> (Box<dyn Operator>, SchemaRef) {
    let fragment = bind(spec, inputs).unwrap();
    let output = SchemaRef::clone(&fragment.outputs[0]);
    let Some(Body::Operator(operator)) = fragment.parts.into_iter().map(|part| part.body).next()
    else {
        panic!("one operator")
    };
    (operator, output)
}

/// Output for these batches, each of which arrives at its port.
fn run(spec: Union, inputs: &[SchemaRef], batches: Vec<(usize, RecordBatch)>) -> Vec<RecordBatch> {
    let (mut operator, output) = operator(spec, inputs);
    let mut out = Output::new();
    let origin = Origin { sequence: 0, entered: std::time::Instant::now() };
    for (port, records) in batches {
        let payload = Payload::Batch(Batch { records, origin });
        assert_eq!(operator.process(port, payload, &mut out).unwrap(), Flow::NeedInput);
    }
    operator.finish(&mut out).unwrap();
    let sent: Vec<_> = out.drain_sent().map(|(_, sent)| sent.into_records()).collect();
    assert!(sent.iter().all(|records| records.schema() == output));
    sent
}

fn refusal(spec: Union, inputs: &[SchemaRef]) -> String {
    let error = bind(spec, inputs).unwrap_err();
    format!("{}: {error}", error.parameter.unwrap_or("inputs"))
}

/// The columns of each input, in its own order, with batches of its rows.
fn inputs() -> impl Strategy<Value = Vec<(Vec<usize>, Vec<Vec<u8>>)>> {
    let columns = proptest::sample::subsequence(vec![0, 1, 2, 3], 1..=4).prop_shuffle();
    let rows = proptest::collection::vec(any::<u8>(), 0..20);
    let batches = proptest::collection::vec(rows, 0..6);
    proptest::collection::vec((columns, batches), 1..7)
}

proptest! {
    #[test]
    fn every_row_comes_out_once_with_the_values_of_all_columns(inputs in inputs()) {
        let schemas: Vec<_> = inputs.iter().map(|(columns, _)| schema(columns)).collect();
        let is_known = |column: usize| inputs.iter().any(|(columns, _)| columns.contains(&column));
        let constants = [Value::from(7), Value::Null, Value::from(1), Value::from(true)];
        let known = (0..4).filter(|&column| is_known(column));
        let known: Vec<_> = known.map(|column| (column, constants[column].clone())).collect();
        let fill = |spec: Union, (column, value): &(usize, Value)| spec.fill(field(*column).name(), value.clone());
        let spec = known.iter().fold(Union::new(), fill);
        // The inputs send their batches in turn; `expected` is the naive answer.
        let mut batches = Vec::new();
        let mut expected = Vec::new();
        for turn in 0..6 {
            for (port, (columns, seeds)) in inputs.iter().enumerate() {
                let Some(seeds) = seeds.get(turn) else { continue };
                let records = batch(columns, seeds);
                let lacking = known.iter().filter(|(column, _)| !columns.contains(column));
                let filled = lacking.filter(|(_, value)| !value.is_null());
                let filled = filled.map(|(column, value)| (field(*column).name().clone(), value.to_string()));
                let filled: Row = filled.collect();
                for mut row in rows(&records) {
                    row.extend(filled.clone());
                    expected.push(row);
                }
                batches.push((port, records));
            }
        }
        let found: Vec<Row> = run(spec, &schemas, batches).iter().flat_map(rows).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn the_columns_are_those_of_the_first_input_and_then_others_as_they_come() {
    let inputs = [schema(&[2, 0]), schema(&[0, 3, 2]), schema(&[1, 3, 2, 0])];
    let spec = Union::new().fill("hot", false).fill("word", Value::Null);
    let (_, output) = operator(spec, &inputs);
    let names: Vec<_> = output.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["count", "item", "hot", "word"]);
    let nullable: Vec<_> = output.fields().iter().map(|field| field.is_nullable()).collect();
    assert_eq!(nullable, [false, false, false, true]);
}

#[test]
fn one_input_passes_as_it_is() {
    let records = batch(&[1, 2], &[1, 2, 3]);
    let sent = run(Union::new(), &[records.schema()], vec![(0, records.clone())]);
    assert_eq!(sent, [records]);
}

#[test]
fn a_column_that_is_null_in_one_input_may_be_null_in_the_output() {
    let with_nulls = Arc::new(Schema::new(vec![Field::new("item", DataType::UInt32, true)]));
    let nulls = new_null_array(&DataType::UInt32, 2);
    let nulls = RecordBatch::try_new(SchemaRef::clone(&with_nulls), vec![nulls]).unwrap();
    let inputs = [schema(&[0]), with_nulls];
    let sent = run(Union::new(), &inputs, vec![(0, batch(&[0], &[5])), (1, nulls)]);
    assert_eq!(
        sent.iter().map(|records| records.column(0).null_count()).collect::<Vec<_>>(),
        [0, 2]
    );
}

#[test]
fn constants_take_the_type_of_their_column() {
    let filled = |name: &str, data_type: DataType, value: Value| {
        let typed = Arc::new(Schema::new(vec![Field::new(name, data_type, false)]));
        let inputs = [schema(&[0]), typed];
        let sent = run(
            Union::new().fill("item", 0).fill(name, value),
            &inputs,
            vec![(0, batch(&[0], &[1, 2])), (0, batch(&[0], &[1])), (0, batch(&[0], &[1, 2, 3]))],
        );
        assert_eq!(sent.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 1, 3]);
        ArrayRef::clone(sent[2].column(1))
    };
    let counts = filled("x", DataType::UInt64, Value::from(u64::MAX));
    assert_eq!(counts.as_primitive::<UInt64Type>().values(), &[u64::MAX; 3]);
    let small = filled("x", DataType::Int8, Value::from(-128));
    assert_eq!(small.as_primitive::<Int8Type>().values(), &[-128; 3]);
    let shares = filled("x", DataType::Float32, Value::from(0.5));
    assert_eq!(shares.as_primitive::<Float32Type>().values(), &[0.5; 3]);
    let words = filled("x", DataType::Utf8, Value::from("none"));
    assert_eq!(words.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["none"; 3]);
}

#[test]
fn inputs_that_do_not_fit_are_named_with_column_and_types() {
    let wide = Arc::new(Schema::new(vec![
        Field::new("count", DataType::UInt64, false),
        Field::new("item", DataType::UInt64, false),
    ]));
    assert_eq!(
        refusal(Union::new(), &[schema(&[2, 0]), schema(&[2, 0]), SchemaRef::clone(&wide)]),
        "inputs: column `item` of input 3, of type UInt64, is not allowed here; it is UInt32 in input 1"
    );
    assert_eq!(
        refusal(Union::new(), &[schema(&[0]), schema(&[0, 2])]),
        "fill: input 1 without the column `count` (UInt64) is not allowed here; name a value for \
         it, such as {\"count\": null}"
    );
    let twice = Arc::new(Schema::new(vec![field(0), field(0)]));
    assert_eq!(
        refusal(Union::new(), &[schema(&[0]), twice]),
        "inputs: a second column `item` in input 2 is not allowed here; columns are matched by name"
    );
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let inputs = [schema(&[0]), schema(&[2, 1])];
    let spec = || Union::new().fill("word", "").fill("item", 0);
    for value in [Value::from(-1), Value::from(1.5), Value::from("1"), Value::from(true)] {
        let shown = value.to_string();
        assert_eq!(
            refusal(spec().fill("count", value), &inputs),
            format!("fill: {shown} for the column `count` is not allowed here; its type is UInt64")
        );
    }
    assert_eq!(
        refusal(spec().fill("count", 1).fill("cuont", 1), &inputs),
        "fill: the input has no column `cuont`; it has `item` (UInt32), `count` (UInt64), `word` \
         (Utf8); did you mean `count`?"
    );
    assert!(refusal(spec().fill("item", u64::MAX).fill("count", 1), &inputs).contains("UInt32"));
}

//! The operator over the CUDA kernels, in child processes that find the stand-in driver: that
//! driver runs the kernels on a CPU and fails when a test says so.

use trommel_engine::operator::Counters;
use trommel_shim::{Form, StandIn};

use super::growing::Parts;
use super::*;
use crate::conjunctive_query::answer::chunk::{QueryChunk, QueryWork};
use crate::testing::children::{self, Child, has};
use crate::wave::{Device, DevicePrice, Target, WaveChunk};

const CHILD: Child = Child { module: module_path!() };

/// Buckets of any size are sent, and answers find room.
const LARGE: Tuning = Tuning {
    answer_documents: 1 << 20,
    device_documents: 1 << 20,
    batch_rows: 1000,
    ..Tuning::SMALL
};

fn counted(metrics: &Metrics, name: &str) -> u64 {
    children::counted(metrics, "search", name)
}

/// Compares documents and counts with sets; returns the metrics of the documents.
#[track_caller]
fn check(
    (documents, queries): (&[Terms], &[Terms]),
    spec: &ConjunctiveQuery,
    how: Run,
) -> [Metrics; 2] {
    let expected = by_hand(documents, queries);
    let (rows, ended) = run(Some(documents), queries, spec.clone(), how);
    let found = ended.unwrap();
    assert_eq!(documents_of(&rows, queries.len()), expected, "{how:?}");
    let spec = spec.clone().output(QueryOutput::Count);
    let (rows, ended) = run(Some(documents), queries, spec, how);
    let counts: Vec<usize> = expected.iter().map(Vec::len).collect();
    let metrics = ended.unwrap();
    assert_eq!(counts_of(&rows, queries.len()), counts, "{how:?}");
    [found, metrics]
}

/// Documents and queries of any number, in batches of any size.
fn answers(device: Device) {
    for (documents, batch_queries) in [(0, 3), (1, 1), (60, 7), (400, 1000)] {
        let (documents, queries) = (corpus(documents), questions(40));
        let sets = (&documents[..], &queries[..]);
        for (batch, kernels, are_texts) in [(7, 2, true), (1000, 1, false)] {
            let how = Run { batch, kernels, are_texts };
            let spec = ConjunctiveQuery::new().tuning(LARGE).device(device);
            for metrics in check(sets, &spec.batch_queries(batch_queries), how) {
                let batches = counted(&metrics, "batches");
                let expected = if documents.is_empty() { 0 } else { batches };
                assert_eq!(counted(&metrics, "waves_on_device"), expected, "{how:?}");
            }
        }
    }
}

/// Names of documents, carried columns and a file of the index.
fn names(device: Device) {
    let folder = tempfile::tempdir().unwrap();
    let (documents, queries) = (corpus(90), questions(30));
    let spec = spec().name("label").carry(["label"]).latency().device(device);
    let spec = spec.index_path(folder.path().join("index"));
    for documents in [Some(&documents[..]), None] {
        let (rows, ended) = run(documents, &queries, spec.clone(), RUN);
        assert!(counted(&ended.unwrap(), "waves_on_device") > 0);
        let name = |document: &u32| format!("row {document}");
        let named = |found: &Vec<u32>| found.iter().map(name).collect();
        let expected: Vec<Vec<String>> = by_hand(&corpus(90), &queries).iter().map(named).collect();
        assert_eq!(names_of(&rows, queries.len()), expected);
    }
}

/// Room for the documents of few queries: the other queries are submitted again.
fn room(device: Device) {
    let (documents, queries) = (corpus(300), questions(60));
    let sets = (&documents[..], &queries[..]);
    for (room, is_enough) in [(300, false), (1 << 20, true)] {
        let tuning = Tuning { device_documents: room, ..LARGE };
        let spec = ConjunctiveQuery::new().tuning(tuning).device(device);
        let [found, counts] = check(sets, &spec, RUN);
        let [batches, waves] = ["batches", "waves_on_device"].map(|name| counted(&found, name));
        assert_eq!(waves > batches, !is_enough, "{waves} waves of {batches} batches");
        assert_eq!(counted(&counts, "waves_on_device"), counted(&counts, "batches"));
    }
    // The CPU answers a query with more terms than a batch has room for.
    let long = [Some((0..3_000).collect()), Some(vec![1])];
    let spec = ConjunctiveQuery::new().tuning(LARGE).device(device).batch_queries(1);
    let [found, _] = check((&documents, &long), &spec, RUN);
    assert_eq!(["batches", "waves_on_device"].map(|name| counted(&found, name)), [2, 1]);
    // A single query may find more documents than there is room for: the CPU answers the batch of
    // that query.
    let tuning = Tuning { device_documents: 20, ..LARGE };
    let [found, _] = check(sets, &ConjunctiveQuery::new().tuning(tuning).device(device), RUN);
    let [batches, waves] = ["batches", "waves_on_device"].map(|name| counted(&found, name));
    assert!(0 < waves && waves < batches, "{waves} waves of {batches} batches");
}

/// Lists that batches send because the index has no room: the lists of all queries at once, and the
/// lists of few queries at a time.
fn streamed(device: Device) {
    let (documents, queries) = (corpus(400), questions(60));
    let sets = (&documents[..], &queries[..]);
    for (list_words, is_enough) in [(1 << 14, true), (128, false)] {
        let tuning = Tuning { device_list_words: list_words, ..LARGE };
        let spec = ConjunctiveQuery::new().tuning(tuning).device(device).device_memory_max(1);
        for metrics in check(sets, &spec, RUN) {
            let names = ["batches", "waves_on_device", "bytes_to_device"];
            let [batches, waves, bytes] = names.map(|name| counted(&metrics, name));
            assert_eq!(waves > batches, !is_enough, "{waves} waves of {batches} batches");
            // The queries alone take 1,500 bytes.
            assert!(bytes > 2_000, "{bytes} bytes");
        }
    }
    // The CPU answers queries whose lists have no room: here, all lists that are not inline.
    let tuning = Tuning { device_list_words: 60, ..LARGE };
    let spec = ConjunctiveQuery::new().tuning(tuning).device(device).device_memory_max(1);
    for metrics in check(sets, &spec, RUN) {
        let [batches, waves] = ["batches", "waves_on_device"].map(|name| counted(&metrics, name));
        assert!(0 < waves && waves < batches, "{waves} waves of {batches} batches");
    }
}

/// An index that grows: segments are added and removed while batches are in flight. With less
/// memory, only a part of the segments stays on the device, or no segment.
fn growing(device: Device) {
    let (documents, queries) = (corpus(300), questions(60));
    let cases = [(3, 2, 4, usize::MAX), (10, 3, 1000, 6_000), (64, 1, 2, 3_000), (7, 2, 3, 1)];
    for (step, lag, batch_queries, memory) in cases {
        for output in [QueryOutput::Documents, QueryOutput::Count] {
            let spec = spec().over(AnswerOver::Arrived).output(output).device(device);
            let tuning = Tuning { answer_documents: 300, ..Tuning::SMALL };
            let spec = spec.tuning(tuning).device_memory_max(memory);
            let mut parts = Parts::of(&spec.batch_queries(batch_queries), 2);
            let (mut asked, mut expected) = (0, Answers::new());
            for (turn, part) in documents.chunks(step).enumerate() {
                parts.take(0, part);
                let end = (asked + turn % 3).min(queries.len());
                let until = (turn * step + part.len()).min(documents.len());
                expected.extend(by_hand(&documents[..until], &queries[asked..end]));
                parts.take(1, &queries[asked..end]);
                asked = end;
                while parts.flying.len() > lag {
                    parts.land(turn % parts.flying.len());
                }
                if turn % 4 == 0 {
                    parts.land_all_on_device();
                }
            }
            parts.end();
            let (batches, segments) = parts.on_device;
            assert!(batches > 2 && segments > 2, "{batches} of {segments} segments");
            match output {
                QueryOutput::Documents => assert_eq!(documents_of(&parts.rows, asked), expected),
                QueryOutput::Count => {
                    let counts: Vec<usize> = expected.iter().map(Vec::len).collect();
                    assert_eq!(counts_of(&parts.rows, asked), counts);
                }
            }
        }
    }
}

/// Many queries of one bucket, and few queries of other buckets.
fn mixed_queries() -> Vec<Terms> {
    let mut queries = vec![Some(vec![1, 2]); 400];
    queries.extend((0..9).map(|i| Some(vec![1_000_000 + i])));
    queries
}

/// Modelled costs send large batches to the device, and leave small batches on the CPU. While the
/// device is opened, all batches stay on the CPU.
fn costs(device: Device) {
    let (documents, queries) = (corpus(300), mixed_queries());
    let device_price = DevicePrice { opening_ns: 0.0, ..DevicePrice::MEASURED };
    let tuning = Tuning { device_price, ..LARGE };
    let spec = spec().over(AnswerOver::Arrived).tuning(tuning).device(device).batch_queries(400);
    let mut parts = Parts::of(&spec, 2);
    parts.take(0, &documents);
    while !parts.flying.is_empty() {
        parts.land(0);
    }
    // Number of chunks that open the device, and number of chunks for the device.
    let mut ask = || {
        parts.take(1, &queries);
        let count = |is_meant: fn(&QueryChunk) -> bool| {
            parts.flying.iter().filter(|chunk| is_meant(chunk)).count()
        };
        (
            count(|chunk| matches!(chunk.work, QueryWork::Open(_))),
            count(|chunk| chunk.target() == Target::Device),
        )
    };
    assert_eq!([ask(), ask()], [(1, 0), (1, 0)]);
    while !parts.flying.is_empty() {
        parts.land(0);
    }
    parts.take(1, &queries);
    assert_eq!(parts.flying.iter().filter(|chunk| chunk.target() == Target::Device).count(), 1);
    parts.end();
    assert_eq!(parts.on_device.0, 1, "the rare terms are a batch for the CPU");
    let asked = [queries.clone(), queries.clone(), queries].concat();
    assert_eq!(documents_of(&parts.rows, asked.len()), by_hand(&documents, &asked));
}

/// Batches of one case, whose device may fail.
fn batches_of(device: Device) -> Result<Counters, String> {
    let (documents, queries) = (corpus(300), questions(60));
    let spec = spec().device(device).batch_queries(4);
    let (rows, ended) = run(Some(&documents), &queries, spec, Run { kernels: 3, ..RUN });
    let metrics = ended?;
    assert_eq!(documents_of(&rows, queries.len()), by_hand(&documents, &queries));
    let names = [
        "waves_on_device",
        "devices",
        "devices_failed",
        "device_full",
        "device_lost",
        "device_refused",
    ];
    Ok(names.map(|name| (name, counted(&metrics, name))).into())
}

#[test]
fn child() {
    let Some((device, case)) = children::case() else { return };
    let check: fn(Device) = match case.as_str() {
        "answers" => answers,
        "names" => names,
        "room" => room,
        "streamed" => streamed,
        "growing" => growing,
        "costs" => costs,
        _ => |device| children::tell_end(batches_of(device)),
    };
    check(device);
    children::tell("right");
}

#[test]
fn a_device_answers_as_sets() {
    let stand_in = StandIn::new(Form::Plain);
    for (device, case) in [("cuda", "answers"), ("auto", "names"), ("cuda", "room")] {
        CHILD.on(&stand_in, device, case);
    }
}

#[test]
fn several_devices_answer_as_one() {
    for devices in 1..=3 {
        let stand_in = StandIn::new(Form::Plain).devices(devices);
        CHILD.on(&stand_in, "cuda:all", "answers");
    }
    CHILD.check_devices("batches");
    CHILD.on(&StandIn::new(Form::Plain).devices(2), "cuda:0,cuda:1", "streamed");
}

#[test]
fn a_lost_device_leaves_its_batches_to_the_others() {
    CHILD.check_losses("batches", &[1, 2, 8]);
}

#[test]
fn lists_without_room_come_along() {
    CHILD.on(&StandIn::new(Form::Plain), "cuda", "streamed");
}

#[test]
fn a_device_answers_over_segments_that_come_and_go() {
    CHILD.on(&StandIn::new(Form::Plain), "cuda", "growing");
}

#[test]
fn costs_decide_where_a_batch_is_answered() {
    CHILD.on(&StandIn::new(Form::Plain), "auto", "costs");
}

#[test]
fn failures_in_mid_stream_fall_back_if_they_may_and_are_told_if_not() {
    let failures = [
        ("kernel", 1, 719, "device_lost"),
        ("kernel", 8, 719, "device_lost"),
        ("cuLaunchKernel", 4, 2, "device_full"),
        ("cuMemcpyHtoDAsync_v2", 2, 2, "device_full"),
        ("cuMemcpyDtoHAsync_v2", 3, 700, "device_lost"),
        ("cuMemAlloc_v2", 2, 2, "device_full"),
        ("cuModuleLoadData", 1, 1, "device_refused"),
    ];
    for (call, nth, code, counter) in failures {
        let failing = StandIn::new(Form::Plain).failure(call, nth, code);
        let outcome = CHILD.on(&failing, "auto", "batches");
        assert!(has(&outcome, counter, 1), "{call} {nth} {code}: {outcome}");
        let outcome = CHILD.on(&failing, "cuda", "batches");
        let shown = format!("{call} {nth} {code}: {outcome}");
        let expected = "stage `search/answer` (conjunctive_query): `device` is \"cuda\"";
        assert!(
            outcome.starts_with(expected) && outcome.ends_with(&format!("({code})")),
            "{shown}"
        );
    }
}

#[test]
fn a_device_with_little_memory_gets_lists_along_or_nothing() {
    // Buffers take about 66,000 bytes, lists 12,000.
    let little = StandIn::new(Form::Plain).memory_bytes(80_000);
    for device in ["auto", "cuda"] {
        let outcome = CHILD.on(&little, device, "batches");
        assert!(has(&outcome, "device_full", 0), "{outcome}");
        assert!(!has(&outcome, "waves_on_device", 0), "{outcome}");
    }
    let less = StandIn::new(Form::Plain).memory_bytes(10_000);
    let outcome = CHILD.on(&less, "auto", "batches");
    assert!(has(&outcome, "device_full", 1) && has(&outcome, "waves_on_device", 0), "{outcome}");
    let error = CHILD.on(&less, "cuda", "batches");
    assert!(error.contains("`device` is \"cuda\", but cuMemAlloc"), "{error}");
}

#[test]
fn without_a_device_auto_is_the_cpu_and_cuda_is_an_error() {
    CHILD.check_without_device("batches");
}

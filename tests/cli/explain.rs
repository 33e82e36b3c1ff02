//! `explain`: the plan of a pipeline in its three forms.

use crate::support::trommel;

/// Explains a pipeline that runs on one thread on every machine.
fn explain(format: &str) -> String {
    let fused = "placement=fused";
    trommel(["explain", "configs/top-items.json", "--set", fused, "--format", format]).end().ok()
}

#[test]
fn text_shows_stages_threads_and_columns() {
    let text = explain("text");
    let (summary, rest) = text.split_once('\n').unwrap();
    assert!(summary.starts_with("top-items: 3 stages, 1 thread, on the CPU ("), "{summary}");
    let expected = "
stages
  items  read                     → item UInt32
  top    frequent_items  ← items  → rank UInt32, item UInt32, count UInt64, error UInt64
  print  write           ← top

threads
  1  any core  items, top, print

no queues: everything runs on one thread
";
    assert_eq!(rest, expected);
}

#[test]
fn threads_are_pinned_when_that_is_asked_for() {
    let pinned = ["explain", "configs/top-items.json", "--set", "pin=true"];
    let text = trommel(pinned).end().ok();
    assert!(text.contains("\n  1  core ") && !text.contains("any core"), "{text}");
}

#[test]
fn queues_join_stages_on_different_cores() {
    let cores = trommel(["devices"]).end().ok();
    let line = cores.lines().find(|line| line.starts_with("cores")).unwrap();
    let numbers = line.split_once(": ").unwrap().1;
    let Some((first, rest)) = numbers.split_once(", ") else {
        println!("skipped: there is one core");
        return;
    };
    let second = rest.split(", ").next().unwrap();
    let set = [
        format!("stages.items.cores=[{first}]"),
        format!("stages.top.cores=[{second}]"),
        format!("stages.print.cores=[{second}]"),
        "queue.batches=3".to_owned(),
    ];
    let set = set.iter().flat_map(|change| ["--set", change]);
    let explain: Vec<&str> = ["explain", "configs/top-items.json"].into_iter().chain(set).collect();
    let text = trommel(&explain).end().ok();
    assert!(
        text.contains("queues (limits of each: batches 3, bytes 64.00 MiB)\n  items → top\n"),
        "{text}"
    );
    assert!(text.contains(&format!("core {first}  items\n")), "{text}");
    let mermaid = trommel([&explain[..], &["--format", "mermaid"]].concat()).end().ok();
    assert!(mermaid.contains("p0 ==> p1"), "{mermaid}");
}

#[test]
fn parts_that_may_use_a_device_are_named() {
    let explain = |device: &str| {
        let change = format!("stages.similar.with.device={device}");
        trommel(["explain", "configs/set-join.json", "--set", &change]).end().ok()
    };
    let auto = explain("auto");
    let expected = "\ndevices\n  similar/verify  auto: a GPU where there is one and it pays\n";
    assert!(auto.contains(expected), "{auto}");
    assert!(explain("cuda:1").contains("\ndevices\n  similar/verify  cuda:1\n"));
    let both = explain(r#"["cuda:0", "cuda:3"]"#);
    let expected = "\ndevices\n  similar/verify    cuda\n  similar/verify 2  cuda:3\n";
    assert!(both.contains(expected), "{both}");
    assert!(!explain("cpu").contains("devices"));
}

#[test]
fn diagrams_have_a_box_a_part_and_a_frame_a_thread() {
    let mermaid = explain("mermaid");
    assert!(mermaid.starts_with("flowchart LR\n  subgraph t0[\"thread 1\"]\n"), "{mermaid}");
    assert!(mermaid.contains("    p1[\"top<br/>frequent_items\"]\n"), "{mermaid}");
    assert!(mermaid.ends_with("  end\n  p0 --> p1\n  p1 --> p2\n"), "{mermaid}");
    let dot = explain("dot");
    assert!(dot.starts_with("digraph pipeline {\n"), "{dot}");
    assert!(dot.contains("    p0 [label=\"items\\nread\"];\n"), "{dot}");
    assert!(dot.ends_with("  }\n  p0 -> p1;\n  p1 -> p2;\n}\n"), "{dot}");
}

#[test]
fn names_cannot_break_out_of_a_diagram() {
    let pipeline = r#"{ "stages": [
        { "id": "a\"]<b>\\", "operator": "generate", "with": { "items": 1 } },
        { "id": "end", "operator": "discard", "inputs": ["a\"]<b>\\"] } ] }"#;
    let explain = |format| trommel(["explain", "-", "--format", format]).input(pipeline).end().ok();
    assert!(explain("mermaid").contains("p0[\"a&quot;]&lt;b>\\<br/>generate\"]"));
    assert!(explain("dot").contains(r#"p0 [label="a\"]<b>\\\ngenerate"];"#));
}

//! `--listen`: a running pipeline over HTTP, queried by plain sockets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Files, Live, Trommel, trommel};

/// Endless pipeline without output, and its address.
fn serve() -> (Live, String) {
    let pipeline = r#"{ "name": "served", "stages": [
        { "id": "items", "operator": "generate", "with": { "alphabet": 50, "rate": 1e6 } },
        { "id": "top", "operator": "frequent_items", "inputs": ["items"], "with": { "counters": 100 } },
        { "id": "end", "operator": "discard", "inputs": ["top"] } ] }"#;
    listening(trommel(["run", "-", "--listen", ":0"]).input(pipeline))
}

/// Starts a pipeline that listens, and returns its address.
fn listening(command: Trommel) -> (Live, String) {
    let mut live = command.start();
    let line = live.error_line();
    let address = line.strip_prefix("listening at http://").and_then(|l| l.strip_suffix("/\n"));
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    (live, address)
}

/// Status, type and body of the answer to a request.
fn exchange(address: &str, request: &str, headers: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let host = if headers.contains("Host:") { "" } else { &format!("Host: {address}\r\n") };
    write!(stream, "{request} HTTP/1.1\r\n{host}Connection: close\r\n{headers}\r\n")
        .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
    (head[9..12].parse().expect(head), head.to_lowercase(), body.to_owned())
}

/// Status and body of the answer to a request, in JSON.
fn ask(address: &str, request: &str, headers: &str) -> (u16, Value) {
    let (status, head, body) = exchange(address, request, headers);
    assert!(head.contains("content-type: application/json"), "{head}");
    (status, serde_json::from_str(&body).expect(&body))
}

#[test]
fn a_running_pipeline_answers_and_stops() {
    let (live, address) = serve();
    let get = |path: &str| ask(&address, &format!("GET {path}"), "");
    let (status, help) = get("/");
    assert_eq!(
        (status, &help["pipeline"], &help["stages"][1]["id"]),
        (200, &json!("served"), &json!("top"))
    );

    let (status, metrics) = get("/api/metrics");
    assert_eq!((status, &metrics["stages"][0]["operator"]), (200, &json!("generate")));
    // The next answer is from later in the stream, up to the stage that is queried next.
    let items_in = |metrics: &Value| metrics["stages"][1]["items_in"].as_u64().unwrap();
    while items_in(&get("/api/metrics").1) <= items_in(&metrics) {}

    let (status, rows) = get("/stages/top/top?n=3");
    let rows = rows.as_array().unwrap();
    assert_eq!((status, rows.len()), (200, 3));
    assert_eq!(rows[0]["rank"], 1);
    assert!(rows[0]["count"].as_u64() >= rows[1]["count"].as_u64());
    let item = &rows[0]["item"];
    let (status, estimate) = get(&format!("/stages/top/estimate?item={item}"));
    assert_eq!((status, &estimate[0]["item"]), (200, item));
    assert!(estimate[0]["count"].as_u64() >= rows[0]["count"].as_u64());

    let (status, stopping) = ask(&address, "POST /stop", "");
    assert_eq!((status, stopping), (200, json!({ "stopping": true })));
    let ended = live.end();
    assert_eq!((ended.status, ended.stdout.as_str()), (0, ""), "{}", ended.stderr);
}

#[test]
fn what_cannot_be_answered_is_an_error_in_json() {
    let (live, address) = serve();
    let check = |request: &str, headers: &str, status: u16, message: &str| {
        let (found, answer) = ask(&address, request, headers);
        let error = answer["error"].as_str().unwrap_or_else(|| panic!("{request}: {answer}"));
        assert!(found == status && error.contains(message), "{request}: {found} {error}");
    };
    check("GET /nothing", "", 404, "there is no /nothing; see /");
    check("GET /stop", "", 405, "/stop does not take this method");
    check(
        "GET /stages/tip/top",
        "",
        404,
        "there is no stage `tip`; the stages are items, top, end",
    );
    check("GET /stages/top/tip", "", 404, "it answers top, at_least, estimate");
    check("GET /stages/end/top", "", 404, "it answers none");
    check("GET /stages/top/top?n=many", "", 400, "parameters of query `top`");
    check("GET /stages/top/top?n=many", "", 400, "expected a whole number from 0 on");
    check("GET /stages/top/top?n=5&n=1", "", 400, "the parameter `n` is given more than once");
    check("GET /stages/top/top?m=1", "", 400, "unknown field `m`");
    check("POST /stop", "Origin: http://example.org\r\n", 403, "a web page cannot change a run");
    check("POST /abort", "Origin: http://example.org\r\n", 403, "a web page cannot change a run");
    check("POST /reopen", "Origin: http://example.org\r\n", 403, "a web page cannot change a run");
    check("GET /", "Host: evil.example:80\r\n", 403, "\"evil.example:80\" is not served");
    check("POST /stop", "Content-Length: 50000000\r\n", 413, "50000000 bytes is too large");
    live.signal(Signal::INT);
    assert_eq!(live.end().status, 130);
}

#[test]
fn an_address_in_use_is_refused() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = trommel(["run", "configs/zipf-live.json", "--listen", &address]).end().refused(2);
    assert_eq!(
        said,
        format!("error: cannot listen at {address}: Address already in use (os error 98)\n")
    );
}

#[test]
fn prometheus_reads_the_metrics_of_a_running_pipeline() {
    let (live, address) = serve();
    // Operators publish their numbers after they have worked.
    let has_worked = || exchange(&address, "GET /metrics", "").2.contains("operator_state_bytes");
    while !has_worked() {
        std::thread::yield_now();
    }
    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
    let (status, head, text) = exchange(&address, "GET /metrics", accept);
    assert_eq!(status, 200);
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    for expected in [
        "# TYPE trommel_stage_items_in counter\n",
        // A stage has a series for each of its workers.
        "trommel_stage_items_in_total{pipeline=\"served\",stage=\"top\",operator=\"frequent_items\"",
        "# TYPE trommel_stage_busy_seconds counter\n",
        "trommel_stage_latency_seconds{pipeline=\"served\",stage=\"end\",operator=\"discard\",percentile=\"99\"} ",
        "trommel_operator_state_bytes{pipeline=\"served\",stage=\"top\",operator=\"frequent_items\"",
        "# TYPE trommel_operator_state_bytes gauge\n",
        "# TYPE trommel_operator_observed counter\n",
        "trommel_stopping{pipeline=\"served\"} 0\n",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    let (_, head, older) = exchange(&address, "GET /metrics", "");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(!older.contains("# EOF") && !older.contains("# UNIT"), "{older}");
    for kind in ["HELP", "TYPE"] {
        let total = format!("# {kind} trommel_stage_items_in_total ");
        assert!(older.contains(&total), "{older}");
        assert!(older.contains(&format!("# {kind} trommel_operator_state_bytes ")), "{older}");
    }
    for line in text.lines().chain(older.lines()).filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect(line);
        assert!(name.starts_with("trommel_") && value.parse::<f64>().is_ok(), "{line}");
    }
    live.signal(Signal::INT);
    assert_eq!(live.end().status, 130);
}

#[test]
fn counters_of_operators_are_live() {
    let (live, address) = serve();
    let observed = || ask(&address, "GET /api/metrics", "").1["stages"][1]["observed"].as_u64();
    let begin = Instant::now();
    while observed().is_none_or(|observed| observed < 100_000) {
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", observed());
    }
    live.signal(Signal::INT);
    assert_eq!(live.end().status, 130);
}

#[test]
fn a_request_opens_a_file_that_was_renamed_again_by_its_name() {
    let files = Files::new();
    let (rows, old) = (files.path("rows.jsonl"), files.path("rows.1.jsonl"));
    let pipeline = format!(
        r#"{{ "stages": [
            {{ "id": "items", "operator": "generate", "with": {{ "rate": 1e3, "batch": 1 }} }},
            {{ "id": "out", "operator": "write", "inputs": ["items"],
               "with": {{ "path": "{rows}", "append": true, "flush_seconds": 3600 }} }} ] }}"#
    );
    let (live, address) = listening(trommel(["run", "-", "--listen", ":0"]).input(pipeline));
    live.wait_for_open(&rows);
    std::fs::rename(&rows, &old).unwrap();
    let (status, answer) = ask(&address, "POST /reopen", "");
    assert_eq!((status, answer), (200, json!({ "reopening": true })));
    // The rows wait for an hour: nothing but the request makes the new file.
    live.wait_for_open(&rows);
    assert!(!live.has_open(&old));
    ask(&address, "POST /stop", "");
    assert_eq!(live.end().status, 0);
    assert_eq!(files.read("rows.1.jsonl"), "");
    assert!(files.read("rows.jsonl").ends_with("}\n"));
}

#[test]
fn stopping_twice_and_by_a_signal_too_loses_nothing() {
    let files = Files::new();
    let (rows, state) = (files.path("rows.jsonl"), files.path("state"));
    let pipeline = format!(
        r#"{{ "stages": [
            {{ "id": "items", "operator": "generate", "with": {{ "alphabet": 1000, "rate": 1e6 }} }},
            {{ "id": "top", "operator": "frequent_items", "inputs": ["items"],
               "with": {{ "counters": 100, "n": 100, "snapshot": "{state}" }} }},
            {{ "id": "out", "operator": "write", "inputs": ["top"], "with": {{ "path": "{rows}" }} }} ] }}"#
    );
    let (live, address) = listening(trommel(["run", "-", "--listen", ":0"]).input(pipeline));
    while ask(&address, "GET /stages/top/top?n=100", "").1.as_array().is_none_or(|r| r.len() < 100)
    {
    }
    let stop = "POST /stop HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(stop.repeat(2).as_bytes()).unwrap();
    live.signal(Signal::TERM);
    let ended = live.end();
    // The run may end before the signal.
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    assert_eq!(files.read("rows.jsonl").lines().count(), 100);
    assert!(std::fs::exists(&state).unwrap());
}

#[test]
fn an_abort_is_asked_for_by_its_name() {
    let (live, address) = serve();
    let (status, aborting) = ask(&address, "POST /abort", "");
    assert_eq!((status, aborting), (200, json!({ "aborting": true })));
    let ended = live.end();
    assert_eq!(ended.status, 1);
    assert!(ended.stderr.contains("aborting: batches in flight are lost\n"), "{}", ended.stderr);
}

/// Pipeline whose sink prints more than a pipe holds, without a reader.
fn blocked() -> (Live, String) {
    let pipeline = r#"{ "stages": [
        { "id": "items", "operator": "generate", "with": { "alphabet": 1000 } },
        { "id": "top", "operator": "frequent_items", "inputs": ["items"], "with": { "every": 1000, "emit": "every" } },
        { "id": "print", "operator": "write", "inputs": ["top"] } ] }"#;
    listening(trommel(["run", "-", "--listen", ":0"]).input(pipeline))
}

#[test]
fn requests_to_a_blocked_stage_hold_up_neither_signals_nor_other_requests() {
    let (mut live, address) = blocked();
    assert!(live.line().starts_with("{\"rank\":1,"));
    std::thread::park_timeout(Duration::from_millis(200));
    let request = "GET /stages/print/top HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(8);
    let clients: Vec<_> = (0..32)
        .map(|_| {
            let mut client = TcpStream::connect(&address).unwrap();
            client.write_all(request.as_bytes()).unwrap();
            client
        })
        .collect();
    let begin = Instant::now();
    assert_eq!(ask(&address, "GET /api/metrics", "").0, 200);
    live.signal(Signal::INT);
    assert!(live.error_line().starts_with("stopping"));
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    drop(clients);
    drop(live.end());
}

#[test]
fn connections_that_do_nothing_make_room() {
    let (live, address) = serve();
    let idle: Vec<_> = (0..200).map(|_| TcpStream::connect(&address).unwrap()).collect();
    for _ in 0..10 {
        assert_eq!(ask(&address, "GET /api/metrics", "").0, 200);
    }
    drop(idle);
    live.signal(Signal::INT);
    assert_eq!(live.end().status, 130);
}

#[test]
fn a_client_that_does_not_finish_its_request_is_cut_off() {
    let (live, address) = serve();
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(b"GET / HTT").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is closed, not kept");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    live.signal(Signal::INT);
    assert_eq!(live.end().status, 130);
}

#[test]
fn a_text_item_may_look_like_a_number() {
    let files = Files::new();
    let text = files.write("text", "404\n404\n1.0\n");
    let pipeline = format!(
        r#"{{ "stages": [
            {{ "id": "text", "operator": "read", "with": {{ "paths": ["{text}"] }} }},
            {{ "id": "live", "operator": "read", "with": {{ "paths": ["{pipe}"] }} }},
            {{ "id": "top", "operator": "frequent_items", "inputs": ["text", "live"], "with": {{ "item": "line" }} }},
            {{ "id": "end", "operator": "discard", "inputs": ["top"] }} ] }}"#,
        pipe = files.fifo("pipe"),
    );
    let (live, address) = listening(trommel(["run", "-", "--listen", ":0"]).input(pipeline));
    let count = |item: &str| {
        let (status, rows) = ask(&address, &format!("GET /stages/top/estimate?item={item}"), "");
        assert_eq!(status, 200, "{rows}");
        rows[0]["count"].as_u64().unwrap()
    };
    while count("404") < 2 {}
    assert_eq!((count("%22404%22"), count("1.0"), count("1")), (2, 1, 0));
    live.signal(Signal::INT);
    assert_eq!(live.end().status, 130);
}

#[test]
fn other_machines_need_a_token() {
    let files = Files::new();
    let said = trommel(["run", "configs/zipf-live.json", "--listen", "0.0.0.0:0"]).end().refused(2);
    assert!(
        said.starts_with("error: 0.0.0.0:0 can be reached from other machines: name"),
        "{said}"
    );
    let short = files.write("short", "secret\n");
    let listen = ["run", "configs/zipf-live.json", "--listen", ":0", "--token-file"];
    let said = trommel(listen.into_iter().chain([short.as_str()])).end().refused(2);
    assert!(said.contains("holds no token; expected one line of at least 16"), "{said}");

    let token = files.write("token", "correct-horse-battery\n");
    let arguments =
        ["--listen", ":0", "--token-file", &token, "--set", "stages.print.with.path=/dev/null"];
    let run = ["run", "configs/zipf-live.json"];
    let (live, address) = listening(trommel(run.into_iter().chain(arguments)));
    for headers in
        ["", "Authorization: Bearer correct-horse-batterx\r\n", "Authorization: Basic x\r\n"]
    {
        assert_eq!(ask(&address, "GET /", headers).0, 401);
        assert_eq!(ask(&address, "POST /stop", headers).0, 401);
    }
    let right = "Authorization: Bearer correct-horse-battery\r\nHost: trommel.example\r\n";
    assert_eq!(ask(&address, "GET /", right).0, 200);
    assert_eq!(ask(&address, "POST /stop", right).0, 200);
    assert_eq!(live.end().status, 0);
}

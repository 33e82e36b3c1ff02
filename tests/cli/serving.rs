//! `--listen`: a running pipeline over HTTP, asked with nothing but a socket.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::{Live, trommel};

/// An endless pipeline without output, and the address it listens at.
fn serve() -> (Live, String) {
    let pipeline = r#"{ "name": "served", "stages": [
        { "id": "items", "operator": "generate", "with": { "alphabet": 50, "rate": 1e6 } },
        { "id": "top", "operator": "frequent_items", "inputs": ["items"], "with": { "counters": 100 } },
        { "id": "end", "operator": "discard", "inputs": ["top"] } ] }"#;
    let mut live = trommel(["run", "-", "--listen", ":0"]).input(pipeline).start();
    let line = live.error_line();
    let address = line.strip_prefix("listening at http://").and_then(|l| l.strip_suffix("/\n"));
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    (live, address)
}

/// Status and body of the answer to a request.
fn ask(address: &str, request: &str, headers: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n")
        .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
    assert!(head.to_lowercase().contains("content-type: application/json"), "{head}");
    (head[9..12].parse().expect(head), serde_json::from_str(body).expect(body))
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

    let (status, metrics) = get("/metrics");
    assert_eq!((status, &metrics["stages"][0]["operator"]), (200, &json!("generate")));
    // Asked again, it has gone on, up to the stage that is asked next.
    let items_in = |metrics: &Value| metrics["stages"][1]["items_in"].as_u64().unwrap();
    while items_in(&get("/metrics").1) <= items_in(&metrics) {}

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
    check("GET /stages/top/top?m=1", "", 400, "unknown field `m`");
    check("POST /stop", "Origin: http://example.org\r\n", 403, "a web page cannot stop a pipeline");
    live.signal(rustix::process::Signal::INT);
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

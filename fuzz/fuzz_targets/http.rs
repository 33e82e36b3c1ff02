//! Sends arbitrary bytes to the HTTP server of a running pipeline: every connection is answered
//! or closed, and the server keeps answering.
//!
//! `cargo xtask fuzz http`
#![no_main]

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use trommel::placement::Placement;
use trommel::runtime::RunPhase;
use trommel::{Discard, FrequentItems, Generate, Graph, RunOptions, Running};
use trommel_cli::server::TestServer;

/// Time limit, far above the time of any answer.
const LIMIT: Duration = Duration::from_secs(8);
/// Inputs between two checks that the server still answers.
const INPUTS_PER_LOOK: u32 = 32;

struct Served {
    running: Running,
    server: TestServer,
    inputs: u32,
}

thread_local! {
    static SERVED: RefCell<Option<Served>> = const { RefCell::new(None) };
}

fn serve() -> Served {
    let mut graph = Graph::new();
    graph.placement(Placement::Fused);
    let items = graph.add("items", Generate::zipf(100, 1.0).rate(1_000.0));
    let top = graph.add_after(items, "top", FrequentItems::new().counters(10));
    graph.add_after(top, "end", Discard::new());
    let running = graph.build().expect("it is right").start(RunOptions::new()).expect("threads");
    let server = TestServer::start(running.handle()).expect("a port");
    Served { running, server, inputs: 0 }
}

/// Sends `bytes` and reads until the server closes the connection.
fn exchange(served: &Served, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(served.server.address()).expect("it listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a socket");
    // The server may have closed the connection already.
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("no end"),
        _ => answer,
    }
}

fuzz_target!(|bytes: &[u8]| {
    SERVED.with_borrow_mut(|slot| {
        let served = slot.get_or_insert_with(serve);
        let answer = exchange(served, bytes);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{answer:?}");
        assert!(answer.get(9..12) != Some(b"500"), "{}", String::from_utf8_lossy(&answer));
        served.inputs += 1;
        // The bytes may have requested the end of the run.
        if served.running.handle().phase() != RunPhase::Running {
            *slot = None;
        } else if served.inputs.is_multiple_of(INPUTS_PER_LOOK) {
            let request =
                b"GET /api/metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            assert!(exchange(served, request).starts_with(b"HTTP/1.1 200"));
        }
    });
});

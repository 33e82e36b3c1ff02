//! Files for a reader, and a driver of sources without an engine.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use arrow_array::RecordBatch;
use trommel::batch::Payload;
use trommel::operator::{BindContext, Body, OperatorSpec, Output, SourceFlow};

/// Files of one input; the next input replaces them.
pub struct Scratch {
    files: Vec<PathBuf>,
}

impl Scratch {
    /// Writes `files` with this extension.
    pub fn new(name: &str, files: &[&[u8]], extension: &str) -> Self {
        let folder = PathBuf::from("/dev/shm");
        let folder = if folder.is_dir() { folder } else { std::env::temp_dir() };
        let folder = folder.join(format!("trommel-fuzz-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let write = |(index, bytes): (usize, &&[u8])| {
            let file = folder.join(format!("{index}.{extension}"));
            fs::write(&file, bytes).expect("a file");
            file
        };
        Self { files: files.iter().enumerate().map(write).collect() }
    }

    pub fn paths(&self) -> impl Iterator<Item = String> + '_ {
        self.files.iter().map(|file| file.to_str().expect("text").to_owned())
    }
}

/// All batches of a source; `None` if it fails.
#[allow(dead_code, reason = "not every target reads without a limit")]
pub fn drain(spec: impl OperatorSpec + 'static) -> Option<Vec<RecordBatch>> {
    drain_in(spec, BindContext::new(0))
}

/// All batches of a source in this context; `None` if it fails.
pub fn drain_in(
    spec: impl OperatorSpec + 'static,
    context: BindContext,
) -> Option<Vec<RecordBatch>> {
    let fragment = Box::new(spec).bind(&[], context).ok()?;
    let part = fragment.parts.into_iter().next().expect("a part");
    let Body::Source(mut source) = part.body else { unreachable!("it has no inputs") };
    let (mut batches, mut out) = (Vec::new(), Output::new());
    loop {
        let flow = source.next(&mut out).ok()?;
        for (_, payload) in out.drain_sent() {
            match payload {
                Payload::Batch(batch) => batches.push(batch.records),
                Payload::Chunk(_) => unreachable!("sources send batches"),
            }
        }
        match flow {
            SourceFlow::Finished => return Some(batches),
            SourceFlow::AwaitReadable(Duration::MAX) => unreachable!("files are always readable"),
            _ => {}
        }
    }
}

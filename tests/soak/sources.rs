//! Sources of numbered items.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::ops::RangeInclusive;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use trommel::error::BindError;
use trommel::operator::{
    BindContext, Fragment, Load, OperatorError, OperatorSpec, Output, Source, SourceFlow,
};

/// Items that a source takes at once and sends in several calls.
const TAKEN: u64 = 500;
/// Bytes per write to a pipe; not a multiple of the size of an item.
const WRITTEN: usize = 1001;

/// Number of the first item of a source.
pub(super) fn first_item(source: usize) -> u64 {
    (source as u64) << 40
}

pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("item", DataType::UInt64, false)]))
}

pub(super) fn batch(items: impl IntoIterator<Item = u64>) -> RecordBatch {
    let column: ArrayRef = Arc::new(UInt64Array::from_iter_values(items));
    RecordBatch::try_new(schema(), vec![column]).unwrap()
}

/// Items from `first` on, `batch` per call; `taken` of them are out of its input.
pub(super) struct Numbers {
    pub(super) first: u64,
    pub(super) items: u64,
    pub(super) batch: u64,
    pub(super) pause: Option<Duration>,
    pub(super) reads_ahead: bool,
    pub(super) sent: u64,
    pub(super) taken: Arc<AtomicU64>,
}

impl Numbers {
    fn send(&mut self, out: &mut Output) {
        let until = (self.sent + self.batch).min(self.taken.load(Ordering::Relaxed));
        out.send(batch(self.first + self.sent..self.first + until));
        self.sent = until;
    }

    fn has_taken(&self) -> bool {
        self.sent < self.taken.load(Ordering::Relaxed)
    }
}

impl Source for Numbers {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        if !self.has_taken() {
            let take = if self.reads_ahead { TAKEN } else { self.batch };
            self.taken.store((self.sent + take).min(self.items), Ordering::Relaxed);
        }
        self.send(out);
        Ok(match self.pause {
            _ if self.sent == self.items => SourceFlow::Finished,
            Some(pause) => SourceFlow::Idle(pause),
            None => SourceFlow::HaveOutput,
        })
    }

    fn stop(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        self.send(out);
        Ok(if self.has_taken() { SourceFlow::HaveOutput } else { SourceFlow::Finished })
    }
}

impl OperatorSpec for Numbers {
    fn operator(&self) -> &'static str {
        "numbers"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        Ok(Fragment::source(Load::Heavy, *self, schema()))
    }
}

/// One of several sources that share the pieces of a stream of numbers.
#[derive(Clone)]
pub(super) struct Pieces {
    pub(super) first: u64,
    pub(super) items: u64,
    pub(super) batch: u64,
    /// Items of a piece.
    pub(super) piece: u64,
    /// The piece that the next copy takes.
    pub(super) next: Arc<AtomicU64>,
    /// Items of all pieces that copies have taken.
    pub(super) taken: Arc<AtomicU64>,
    /// The items of the open piece that have not been sent.
    pub(super) open: std::ops::Range<u64>,
}

impl Pieces {
    fn send(&mut self, out: &mut Output) {
        let until = self.open.end.min(self.open.start + self.batch);
        out.send(batch(self.first + self.open.start..self.first + until));
        self.open.start = until;
    }
}

impl Source for Pieces {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        if self.open.is_empty() {
            let piece = self.next.fetch_add(1, Ordering::Relaxed);
            let begin = (piece * self.piece).min(self.items);
            self.open = begin..(begin + self.piece).min(self.items);
            if self.open.is_empty() {
                return Ok(SourceFlow::Finished);
            }
            self.taken.fetch_add(self.open.end - self.open.start, Ordering::Relaxed);
            out.begin_piece(piece);
        }
        self.send(out);
        Ok(SourceFlow::HaveOutput)
    }

    fn stop(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        if self.open.is_empty() {
            return Ok(SourceFlow::Finished);
        }
        self.send(out);
        Ok(SourceFlow::HaveOutput)
    }
}

impl OperatorSpec for Pieces {
    fn operator(&self) -> &'static str {
        "pieces"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        Fragment::divided_source(Load::Heavy, usize::MAX, move || Ok((*self).clone()), schema())
    }
}

/// Thread that writes items into a named pipe.
pub(super) struct PipeWriter {
    path: PathBuf,
    /// The reader has gone.
    ends: Arc<AtomicBool>,
    /// Ends with the number of bytes written, and a reading end for the bytes that were not read;
    /// fails if the folder of the pipeline is gone.
    thread: JoinHandle<io::Result<(u64, File)>>,
}

impl PipeWriter {
    /// Writes `items` items from `first` on into the pipe at `path`.
    pub(super) fn start(path: &Path, first: u64, items: u64) -> Self {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let bytes: Vec<u8> = (first..first + items).flat_map(u64::to_le_bytes).collect();
        let (path, ends) = (path.to_owned(), Arc::new(AtomicBool::new(false)));
        let (pipe, is_over) = (path.clone(), Arc::clone(&ends));
        let write = move || {
            // Opening waits for the pipeline, or for `taken`, to open the other end.
            let mut writer = OpenOptions::new().write(true).open(&pipe)?;
            // Keeps the content of the pipe when the pipeline closes it.
            let look = open_to_look(&pipe)?;
            rustix::io::ioctl_fionbio(&writer, true)?;
            let mut written = 0;
            while written < bytes.len() && !is_over.load(Ordering::Relaxed) {
                match writer.write(&bytes[written..bytes.len().min(written + WRITTEN)]) {
                    Ok(count) => written += count,
                    // The pipe is full.
                    Err(_) => thread::park_timeout(Duration::from_micros(200)),
                }
            }
            Ok((written as u64, look))
        };
        Self { path, ends, thread: thread::Builder::new().spawn(write).unwrap() }
    }

    /// Number of whole items taken out of the pipe; the reader has ended.
    pub(super) fn taken(self) -> u64 {
        self.ends.store(true, Ordering::Relaxed);
        let _opens_the_pipe_if_nobody_did = open_to_look(&self.path).unwrap();
        let (written, look) = self.thread.join().unwrap().unwrap();
        (written - drain(&look)) / 8
    }
}

fn open_to_look(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Reads the content of the pipe; returns its length in bytes.
fn drain(mut pipe: &File) -> u64 {
    let mut bytes = vec![0; 1 << 16];
    let mut read = 0;
    while let Ok(count @ 1..) = io::Read::read(&mut pipe, &mut bytes) {
        read += count as u64;
    }
    read
}

//! One open file, decompressed.
//!
//! ```text
//! Raw (never waits) ──► first bytes: compressed? ──► BufReader ──► decoder ──► pull
//!                                        └── no ─────────────────────────────► pull
//! ```
//!
//! Decoders keep their state when [`Raw`] has no data at present, so the runtime waits for a
//! compressed pipe as for a plain one.

use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use flate2::bufread::GzDecoder;
use memchr::memchr_iter;

use super::compression::{Compression, START_BYTES};
use super::paths::Place;
use super::ranged::{FileRange, PackedRange, RangedFile, Truncated};
use super::raw::{Pause, Raw};
use crate::shared::files::FileId;

/// Bytes that a decompressor reads at once.
const COMPRESSED_BYTES: usize = 128 << 10;

/// Longest window of a zstd frame, as a power of two: the maximum of the format with `--long`.
/// The decoder allocates the window that the frame names, at most 2 GiB.
const WINDOW_LOG_MAX: u32 = 31;

/// An open file.
pub(crate) struct Stream {
    state: State,
    named: Compression,
    /// Whether the first bytes decide if the name shows no compression.
    sniffs: bool,
}

/// Bytes that were read to find the compression, followed by the rest of the file.
type Source = Chain<Cursor<Vec<u8>>, Raw>;

enum State {
    /// Collecting the first bytes.
    Start(Raw, Vec<u8>),
    Plain(Source),
    Gzip(Gzip),
    Zstd(Box<zstd::stream::read::Decoder<'static, BufReader<Source>>>),
    /// Unreadable.
    Failed,
}

/// Outcome of a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pull {
    /// Number of bytes, at least 1.
    Bytes(usize),
    /// No bytes, for this reason.
    Pause(Pause),
    /// End of the file.
    End,
}

impl Stream {
    /// Opens `place`. The file is decompressed if its name shows a compression or, with `sniffs`,
    /// if its first bytes do.
    pub(crate) fn open(place: &Place, sniffs: bool) -> io::Result<Self> {
        let named = match place {
            Place::Stdin => Compression::None,
            Place::File(path) => Compression::of_name(path),
        };
        Ok(Self::new(Raw::open(place)?, named, sniffs))
    }

    pub(crate) fn new(raw: Raw, named: Compression, sniffs: bool) -> Self {
        Self { state: State::Start(raw, Vec::new()), named, sniffs }
    }

    /// A range of a file, read from byte `at` of the file on.
    pub(crate) fn of_range(range: FileRange, at: u64) -> io::Result<Self> {
        let compression = range.packed.map_or(Compression::None, |packed| packed.compression);
        let source = Cursor::new(Vec::new()).chain(Raw::of_range(range, at));
        let state = decoder(source, compression)?;
        Ok(Self { state, named: Compression::None, sniffs: false })
    }

    /// The first bytes of a compressed file without compression, at most `bytes`.
    pub(crate) fn first_bytes(
        file: &Arc<RangedFile>,
        compression: Compression,
        bytes: usize,
    ) -> io::Result<Vec<u8>> {
        let mut stream = Self::of_range(whole(file, compression), 0)?;
        let (mut first, mut filled) = (vec![0; bytes], 0);
        while filled < bytes {
            match stream.pull(&mut first[filled..])? {
                Pull::Bytes(read) => filled += read,
                Pull::Pause(_) => {}
                Pull::End => break,
            }
        }
        first.truncate(filled);
        Ok(first)
    }

    /// Number of newlines in the file before a range.
    pub(crate) fn newlines_before(range: &FileRange) -> io::Result<u64> {
        let Some(PackedRange { compression, begin, .. }) = range.packed else {
            return range.file.newlines(0..range.begin);
        };
        let mut stream = Self::of_range(whole(&range.file, compression), 0)?;
        let (mut left, mut newlines, mut bytes) = (begin, 0, vec![0; COMPRESSED_BYTES]);
        while left > 0 {
            let len = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
            match stream.pull(&mut bytes[..len])? {
                Pull::Bytes(read) => {
                    newlines += memchr_iter(b'\n', &bytes[..read]).count() as u64;
                    left -= read as u64;
                }
                Pull::Pause(_) => {}
                Pull::End => break,
            }
        }
        Ok(newlines)
    }

    /// Takes no more bytes from the file.
    pub(crate) fn stop(&mut self) {
        if let Some(raw) = self.state.raw_mut() {
            raw.stop();
        }
    }

    /// Bytes read so far, before decompression.
    pub(crate) fn bytes(&self) -> u64 {
        self.state.raw().map_or(0, Raw::bytes)
    }

    /// See [`Raw::is_silent_pipe`].
    pub(crate) fn is_silent_pipe(&self) -> bool {
        self.state.raw().is_some_and(Raw::is_silent_pipe)
    }

    /// Descriptor to wait for after [`Pause::Empty`].
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.state.raw().and_then(Raw::descriptor)
    }

    /// Identity of the file.
    pub(crate) fn id(&self) -> Option<FileId> {
        self.state.raw().and_then(Raw::id)
    }

    /// See [`Raw::truncated`].
    pub(crate) fn truncated(&self) -> io::Result<Option<Truncated>> {
        match &self.state {
            State::Plain(source) => source.get_ref().1.truncated(),
            _ => Ok(None),
        }
    }

    /// See [`Raw::is_range_complete`].
    pub(crate) fn is_range_complete(&self) -> bool {
        self.state.raw().is_some_and(Raw::is_range_complete)
    }

    /// Reads once into `target`, without waiting.
    pub(crate) fn pull(&mut self, target: &mut [u8]) -> io::Result<Pull> {
        if let Some(raw) = self.state.raw_mut() {
            raw.allow();
        }
        match self.read(target) {
            Ok(0) => Ok(Pull::End),
            Ok(bytes) => Ok(Pull::Bytes(bytes)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                Ok(Pull::Pause(self.state.raw().map_or(Pause::Empty, Raw::pause)))
            }
            Err(error) => Err(error),
        }
    }

    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if let State::Start(raw, start) = &mut self.state {
            let compression = look(raw, start, self.named, self.sniffs)?;
            let State::Start(raw, start) = std::mem::replace(&mut self.state, State::Failed) else {
                unreachable!("matched in the line above")
            };
            self.state = decoder(Cursor::new(start).chain(raw), compression)?;
        }
        loop {
            let read = match &mut self.state {
                State::Plain(source) => source.read(target),
                State::Gzip(gzip) => gzip.read(target),
                State::Zstd(decoder) => decoder.read(target),
                State::Start(..) | State::Failed => return Ok(0),
            };
            match read {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl State {
    fn raw(&self) -> Option<&Raw> {
        match self {
            Self::Start(raw, _) => Some(raw),
            Self::Plain(source) => Some(source.get_ref().1),
            Self::Gzip(gzip) => {
                gzip.member.as_ref().map(|member| member.get_ref().get_ref().get_ref().1)
            }
            Self::Zstd(decoder) => Some(decoder.get_ref().get_ref().get_ref().1),
            Self::Failed => None,
        }
    }

    fn raw_mut(&mut self) -> Option<&mut Raw> {
        match self {
            Self::Start(raw, _) => Some(raw),
            Self::Plain(source) => Some(source.get_mut().1),
            Self::Gzip(gzip) => {
                gzip.member.as_mut().map(|member| member.get_mut().get_mut().get_mut().1)
            }
            Self::Zstd(decoder) => Some(decoder.get_mut().get_mut().get_mut().1),
            Self::Failed => None,
        }
    }
}

/// A compressed file as one range.
fn whole(file: &Arc<RangedFile>, compression: Compression) -> FileRange {
    let packed = Some(PackedRange { compression, begin: 0, end: None });
    FileRange { file: Arc::clone(file), begin: 0, end: None, has_lines: true, packed }
}

/// Collects first bytes in `start` until the bytes determine the compression. `named` is the
/// compression that the name of the file shows.
fn look(
    raw: &mut Raw,
    start: &mut Vec<u8>,
    named: Compression,
    sniffs: bool,
) -> io::Result<Compression> {
    if named == Compression::None && !sniffs {
        return Ok(Compression::None);
    }
    loop {
        let found = Compression::of_start(start);
        match found {
            None => {}
            // The name promises a format, so START_BYTES bytes are collected before the name is
            // contradicted.
            Some(Compression::None) if named != Compression::None => {}
            Some(found) if named == Compression::None || named == found => return Ok(found),
            Some(found) => {
                let (name, found) = (named.name(), found.name());
                let error = format!("its name says {name}, but it holds {found} data");
                return Err(io::Error::other(error));
            }
        }
        let have = start.len();
        if have < START_BYTES {
            // The read fills the tail of `start`; the unfilled rest is cut off afterwards.
            start.resize(START_BYTES, 0);
            let read = raw.read(&mut start[have..]);
            start.truncate(have + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => {}
                Ok(_) => continue,
                // A stopped file is not read any further, so its name decides.
                Err(_) if raw.pause() == Pause::Stopped => return Ok(named),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
        }
        return match named {
            Compression::None => Ok(Compression::None),
            _ if start.is_empty() => Err(ErrorKind::UnexpectedEof.into()),
            _ if named.fits(start) => Ok(named),
            _ => {
                let name = named.name();
                Err(io::Error::other(format!("its name says {name}, but it holds no {name} data")))
            }
        };
    }
}

fn decoder(source: Source, compression: Compression) -> io::Result<State> {
    let buffered = |source| BufReader::with_capacity(COMPRESSED_BYTES, source);
    match compression {
        Compression::None => Ok(State::Plain(source)),
        Compression::Gzip => {
            let member = GzDecoder::new(buffered(source));
            Ok(State::Gzip(Gzip { member: Some(Box::new(member)), is_padding: false }))
        }
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered(source))?;
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            Ok(State::Zstd(Box::new(decoder)))
        }
        Compression::Bzip2 | Compression::Xz => {
            let name = compression.name();
            Err(io::Error::other(format!(
                "{name} is not supported; decompress it: `{name} -dc FILE | trommel …`"
            )))
        }
    }
}

/// Members of a gzip file, one after the other. Zeros may follow the last member, since tapes and
/// block devices are padded.
struct Gzip {
    /// Current member; `None` only within [`Gzip::read`].
    member: Option<Box<GzDecoder<BufReader<Source>>>>,
    /// Whether zeros were read after a member.
    is_padding: bool,
}

impl Gzip {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        /// First byte of a member.
        const MEMBER: u8 = 0x1f;
        loop {
            let Some(member) = &mut self.member else { return Ok(0) };
            // A finished member returns 0 for ever. The next member may follow in the same buffer.
            let bytes = if self.is_padding { 0 } else { member.read(target)? };
            if bytes > 0 {
                return Ok(bytes);
            }
            let reader = member.get_mut();
            let rest = reader.fill_buf()?;
            let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
            match rest.first() {
                None => return Ok(0),
                Some(0) => {
                    self.is_padding = true;
                    reader.consume(zeros);
                }
                Some(&MEMBER) if !self.is_padding => {
                    // The buffer may hold bytes of the next member, so the decoder of that member
                    // takes over the reader.
                    let reader = self.member.take().map(|member| member.into_inner());
                    self.member = reader.map(|reader| Box::new(GzDecoder::new(reader)));
                }
                Some(_) => {
                    return Err(io::Error::other("unexpected bytes after the gzip data"));
                }
            }
        }
    }
}

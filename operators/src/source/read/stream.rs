//! One open file: decompression, counting of what was read, and asking a pipe whether it has data.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use flate2::bufread::MultiGzDecoder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::paths::Place;

/// What a decompressor reads at a time.
const COMPRESSED_BYTES: usize = 128 << 10;

/// How a file is compressed, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    pub(super) fn of(place: &Place) -> Self {
        let Place::File(path) = place else { return Self::None };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some(extension) if extension.eq_ignore_ascii_case("gz") => Self::Gzip,
            Some(extension) if extension.eq_ignore_ascii_case("zst") => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// An open file. Nothing but a pipe, a terminal or a socket that is not compressed is ever waited
/// for.
pub(super) struct Stream {
    decoder: Decoder,
    /// The same file once more, to ask whether it has data; `None` when a read cannot block for
    /// long.
    watched: Option<File>,
}

type Raw = Counted<Box<dyn Read + Send>>;

enum Decoder {
    Plain(Raw),
    Gzip(Box<MultiGzDecoder<BufReader<Raw>>>),
    Zstd(zstd::stream::read::Decoder<'static, BufReader<Raw>>),
}

impl Stream {
    pub(super) fn open(place: &Place) -> io::Result<Self> {
        let file = match place {
            Place::Stdin => File::from(rustix::stdio::stdin().try_clone_to_owned()?),
            Place::File(path) => File::open(path)?,
        };
        let compression = Compression::of(place);
        let may_block = !file.metadata()?.is_file();
        let watched = if may_block && compression == Compression::None {
            Some(file.try_clone()?)
        } else {
            None
        };
        Ok(Self { watched, ..Self::new(Box::new(file), compression)? })
    }

    /// A stream of any reader that does not block.
    pub(super) fn new(reader: Box<dyn Read + Send>, compression: Compression) -> io::Result<Self> {
        let raw = Counted { reader, bytes: 0 };
        let buffered = |raw| BufReader::with_capacity(COMPRESSED_BYTES, raw);
        let decoder = match compression {
            Compression::None => Decoder::Plain(raw),
            Compression::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(buffered(raw)))),
            Compression::Zstd => {
                Decoder::Zstd(zstd::stream::read::Decoder::with_buffer(buffered(raw))?)
            }
        };
        Ok(Self { decoder, watched: None })
    }

    /// Bytes read so far, before decompression.
    pub(super) fn bytes(&self) -> u64 {
        match &self.decoder {
            Decoder::Plain(raw) => raw.bytes,
            Decoder::Gzip(decoder) => decoder.get_ref().get_ref().bytes,
            Decoder::Zstd(decoder) => decoder.get_ref().get_ref().bytes,
        }
    }

    /// Whether a read returns at once, after waiting for it no longer than `patience`.
    pub(super) fn is_ready(&self, patience: Duration) -> io::Result<bool> {
        let Some(file) = &self.watched else { return Ok(true) };
        let mut watched = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)];
        let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
        match poll(&mut watched, Some(&patience)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads once, as much as there is and fits; 0 at the end.
    pub(super) fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match &mut self.decoder {
                Decoder::Plain(raw) => raw.read(target),
                Decoder::Gzip(decoder) => decoder.read(target),
                Decoder::Zstd(decoder) => decoder.read(target),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

/// Counts what is read through it.
struct Counted<R> {
    reader: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(target)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

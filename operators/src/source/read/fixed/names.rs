//! Names of vectors: the lines of a text file, one for each vector.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

use arrow_array::StringArray;
use arrow_array::builder::StringBuilder;

use crate::source::read::error::ReadError;

/// The rest of a file of names. The names are read together with the vectors and without waiting,
/// so the file has to be a regular file.
pub(crate) struct Names {
    path: Arc<str>,
    lines: BufReader<File>,
    /// Number of lines so far.
    count: u64,
    bytes_max: usize,
    line: Vec<u8>,
}

impl Names {
    /// Opens a file whose lines have at most `bytes_max` bytes.
    pub(crate) fn open(path: &Path, bytes_max: usize) -> Result<Self, ReadError> {
        let shown: Arc<str> = path.display().to_string().into();
        let open = || {
            if !path.metadata()?.is_file() {
                return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"));
            }
            File::open(path)
        };
        match open() {
            Ok(file) => {
                let lines = BufReader::with_capacity(1 << 16, file);
                Ok(Self { path: shown, lines, count: 0, bytes_max, line: Vec::new() })
            }
            Err(source) => Err(ReadError::Open { path: shown, source }),
        }
    }

    /// Reads the next line into `line`; false at the end of the file.
    fn next(&mut self) -> Result<bool, ReadError> {
        let path = || Arc::clone(&self.path);
        self.line.clear();
        // Two further bytes may be the line end, and a third byte shows that the line is too long.
        let limit = self.bytes_max as u64 + 3;
        let read = self.lines.by_ref().take(limit).read_until(b'\n', &mut self.line);
        let bytes = read.map_err(|source| ReadError::Read { path: path(), source })?;
        if bytes == 0 {
            return Ok(false);
        }
        self.count += 1;
        for end in [b'\n', b'\r'] {
            if self.line.last() == Some(&end) {
                self.line.pop();
            }
        }
        if self.line.len() > self.bytes_max {
            let (line, bytes_max) = (self.count, self.bytes_max);
            return Err(ReadError::LineTooLong { path: path(), line, bytes_max });
        }
        Ok(true)
    }

    /// The names of the next `rows` vectors.
    pub(crate) fn take(&mut self, rows: usize) -> Result<StringArray, ReadError> {
        let mut names = StringBuilder::new();
        for _ in 0..rows {
            if !self.next()? {
                let (path, names) = (Arc::clone(&self.path), self.count);
                return Err(ReadError::TooFewNames { path, names });
            }
            match simdutf8::compat::from_utf8(&self.line) {
                Ok(name) => names.append_value(name),
                Err(error) => {
                    let (line, offset) = (self.count, error.valid_up_to());
                    let (path, encoding) = (Arc::clone(&self.path), "UTF-8");
                    return Err(ReadError::NotText { path, line, offset, encoding });
                }
            }
        }
        Ok(names.finish())
    }

    /// Checks that there are no more names than vectors.
    pub(crate) fn finish(&mut self) -> Result<(), ReadError> {
        let vectors = self.count;
        match self.next()? {
            true => Err(ReadError::TooManyNames { path: Arc::clone(&self.path), vectors }),
            false => Ok(()),
        }
    }
}

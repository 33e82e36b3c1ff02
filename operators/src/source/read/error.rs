//! Why a file cannot be read.

use std::io;
use std::sync::Arc;

use thiserror::Error;

/// Why a file, or a place in it, cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A path has wildcards that mean nothing.
    #[error("the pattern `{pattern}` is wrong: {source}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        source: glob::PatternError,
    },
    /// A pattern matches no file.
    #[error("no file matches the pattern `{pattern}`")]
    NoMatch {
        /// The pattern.
        pattern: String,
    },
    /// A pattern matches more files than a source can list.
    #[error("the pattern `{pattern}` matches more than {files_max} files")]
    TooManyFiles {
        /// The pattern.
        pattern: String,
        /// How many files a source can list.
        files_max: usize,
    },
    /// The path is a directory.
    #[error("{path} is a directory; `{path}/*` names the files in it")]
    Directory {
        /// The directory.
        path: Arc<str>,
    },
    /// The file cannot be opened.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The file.
        path: Arc<str>,
        /// What the operating system says.
        source: io::Error,
    },
    /// Reading or decompressing failed.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: Arc<str>,
        /// What the operating system or the decompressor says.
        source: io::Error,
    },
    /// The file has become shorter since it was opened.
    #[error("{path} was cut while it was read: it had {bytes} bytes, the end came after {read}")]
    Cut {
        /// The file.
        path: Arc<str>,
        /// Bytes that it had when it was opened.
        bytes: u64,
        /// Bytes that were read.
        read: u64,
    },
    /// The file is text, but not in UTF-8.
    #[error(
        "{path} begins with the mark of UTF-16, which is not read here; \
         `iconv -f UTF-16 -t UTF-8 FILE | trommel …` is"
    )]
    Utf16 {
        /// The file.
        path: Arc<str>,
    },
    /// A line is longer than allowed.
    #[error("{path}:{line}: the line is longer than {bytes_max} bytes (`line_bytes_max`)")]
    LineTooLong {
        /// The file.
        path: Arc<str>,
        /// The line, from 1.
        line: u64,
        /// How many bytes a line may have.
        bytes_max: usize,
    },
    /// A paragraph or a file is longer than allowed.
    #[error(
        "{path}:{line}: the text that begins here is longer than {bytes_max} bytes (`line_bytes_max`)"
    )]
    TextTooLong {
        /// The file.
        path: Arc<str>,
        /// Its first line, from 1.
        line: u64,
        /// How many bytes a text may have.
        bytes_max: usize,
    },
    /// A line is not text.
    #[error("{path}:{line}: byte {offset} of the line is not valid UTF-8")]
    NotUtf8 {
        /// The file.
        path: Arc<str>,
        /// The line, from 1.
        line: u64,
        /// Index of the first bad byte within the line, from 0.
        offset: usize,
    },
    /// A line has a token that is not an item of a set.
    #[error(
        "{path}:{line}: `{token}` is not an item of a set; \
         expected whole numbers from 0 to {max}, separated by blanks",
        max = u32::MAX
    )]
    Token {
        /// The file.
        path: Arc<str>,
        /// The line, from 1.
        line: u64,
        /// The token, shortened if it is long.
        token: String,
    },
    /// There are more sets than numbers for them.
    #[error("{path}:{line}: more than 2^32 sets; their ids have 32 bits")]
    TooManySets {
        /// The file.
        path: Arc<str>,
        /// The line, from 1.
        line: u64,
    },
    /// The length of a file is not a multiple of the size of its items.
    #[error("{path}: {left} of {width} bytes of an item are left over at byte {offset}")]
    PartialItem {
        /// The file.
        path: Arc<str>,
        /// Where the incomplete item begins, after decompression.
        offset: u64,
        /// How many bytes of it there are.
        left: usize,
        /// How many bytes an item has.
        width: usize,
    },
}

//! Header of a `.npy` file.
//!
//! ```text
//! 6 bytes    magic: 0x93 "NUMPY"
//! 2 bytes    version: 1.0, 2.0 or 3.0
//! 2 bytes    length of the text; 4 bytes from version 2.0 on
//! the text   {'descr': '<f4', 'fortran_order': False, 'shape': (1000, 384), }
//! ```
//!
//! The text is a Python literal. The parser knows the literals that such a dictionary has: texts,
//! whole numbers, `True`, `False`, and tuples or lists of these literals. (NumPy Enhancement
//! Proposal 1, A Simple File Format for NumPy Arrays.)

use thiserror::Error;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Bytes before the length of the text.
const VERSION_END: usize = 8;
/// Maximum bytes of the text; NumPy writes 118.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Invalid or unsupported header.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file does not begin as a `.npy` file does.
    #[error("not a .npy file: it does not begin with 0x93 \"NUMPY\"")]
    Magic,
    /// The version of the format is unknown.
    #[error("unknown version {0}.{1} of the .npy format; versions 1 to 3 are supported")]
    Version(u8, u8),
    /// The header is too long.
    #[error("a .npy header of {0} bytes; at most {TEXT_BYTES_MAX} are supported")]
    TooLong(usize),
    /// The header is malformed.
    #[error("malformed .npy header at byte {0} of its text")]
    Malformed(usize),
    /// An entry is missing.
    #[error("the .npy header has no valid `{0}`")]
    Missing(&'static str),
    /// The numbers have another type.
    #[error(
        "unsupported type `{0}` of the array; expected float32 (`<f4`) or float64 (`<f8`){remedy}",
        remedy = remedy(.0)
    )]
    Type(String),
    /// The array lies column by column.
    #[error("the array is in Fortran order; convert it with `numpy.ascontiguousarray(array)`")]
    FortranOrder,
    /// The array has no rows of numbers.
    #[error("an array of {0} dimensions; expected one or two: vectors, and their coordinates")]
    Shape(usize),
}

/// Advice how to convert an array of a type of real numbers to floats.
fn remedy(descr: &str) -> &'static str {
    let kind = descr.trim_start_matches(['<', '>', '=', '|']).as_bytes();
    match kind {
        [b'b' | b'i' | b'u' | b'f', size @ ..] if size.iter().all(u8::is_ascii_digit) => {
            ": convert it with `array.astype(\"float32\")`"
        }
        _ => "",
    }
}

/// Type of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    F32,
    F64,
}

impl Number {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::F32 => size_of::<f32>(),
            Self::F64 => size_of::<f64>(),
        }
    }
}

/// Header of a file of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NpyHeader {
    pub(crate) number: Number,
    pub(crate) rows: u64,
    pub(crate) dims: u64,
}

/// Number of bytes of the header that are needed after `header`, its first bytes; 0 if the header
/// is complete or invalid.
pub(crate) fn bytes_wanted(header: &[u8]) -> usize {
    if header.len() < VERSION_END {
        return VERSION_END - header.len();
    }
    match text_range(header) {
        Ok(range) => range.end.saturating_sub(header.len()),
        Err(Incomplete::Bytes(bytes)) => bytes,
        Err(Incomplete::Invalid(_)) => 0,
    }
}

enum Incomplete {
    /// The header is valid so far, and at least this number of bytes follows.
    Bytes(usize),
    Invalid(NpyError),
}

/// Range of the text, by the first bytes of a header.
fn text_range(header: &[u8]) -> Result<std::ops::Range<usize>, Incomplete> {
    let invalid = |error| Err(Incomplete::Invalid(error));
    if !header.starts_with(MAGIC) {
        return invalid(NpyError::Magic);
    }
    let width = match (header[6], header[7]) {
        (1, 0) => 2,
        (2 | 3, 0) => 4,
        (major, minor) => return invalid(NpyError::Version(major, minor)),
    };
    let begin = VERSION_END + width;
    let Some(length) = header.get(VERSION_END..begin) else {
        return Err(Incomplete::Bytes(begin - header.len()));
    };
    let length = length.iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
    if length > TEXT_BYTES_MAX {
        return invalid(NpyError::TooLong(length));
    }
    Ok(begin..begin + length)
}

impl NpyHeader {
    /// Parses a header that is complete according to [`bytes_wanted`].
    pub(crate) fn parse(header: &[u8]) -> Result<Self, NpyError> {
        if header.len() < VERSION_END {
            return Err(NpyError::Magic);
        }
        let text = match text_range(header) {
            Ok(range) => header.get(range).ok_or(NpyError::Malformed(0))?,
            Err(Incomplete::Invalid(error)) => return Err(error),
            Err(Incomplete::Bytes(_)) => return Err(NpyError::Malformed(0)),
        };
        let entries = Literals { text, at: 0 }.dictionary()?;
        let entry = |name| {
            let found = entries.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value)
        };
        let number = match entry("descr") {
            Some(Literal::Text(descr)) => number_of(descr)?,
            Some(Literal::Tuple(_)) => return Err(NpyError::Type("a record".to_owned())),
            _ => return Err(NpyError::Missing("descr")),
        };
        let Some(&Literal::Truth(is_fortran)) = entry("fortran_order") else {
            return Err(NpyError::Missing("fortran_order"));
        };
        let Some(Literal::Tuple(shape)) = entry("shape") else {
            return Err(NpyError::Missing("shape"));
        };
        match shape[..] {
            // With one row or one column, both orders are the same.
            [Literal::Number(rows), Literal::Number(dims)] if is_fortran && rows.min(dims) > 1 => {
                Err(NpyError::FortranOrder)
            }
            [Literal::Number(rows), Literal::Number(dims)] => Ok(Self { number, rows, dims }),
            [Literal::Number(rows)] => Ok(Self { number, rows, dims: 1 }),
            _ => Err(NpyError::Shape(shape.len())),
        }
    }
}

fn number_of(descr: &str) -> Result<Number, NpyError> {
    match descr {
        "<f4" => Ok(Number::F32),
        "<f8" => Ok(Number::F64),
        _ => Err(NpyError::Type(descr.to_owned())),
    }
}

/// Value of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Literal {
    Text(String),
    Number(u64),
    Truth(bool),
    /// A tuple or a list.
    Tuple(Vec<Literal>),
}

/// Maximum depth of tuples in tuples; the tuples of records have a depth of three.
const DEPTH_MAX: usize = 8;

/// Parser of Python literals.
struct Literals<'a> {
    text: &'a [u8],
    at: usize,
}

impl Literals<'_> {
    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        let blanks = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace());
        self.at += blanks.count();
        self.text.get(self.at).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let accepted = self.peek() == Some(byte);
        self.at += usize::from(accepted);
        accepted
    }

    fn expect(&mut self, byte: u8) -> Result<(), NpyError> {
        if self.accept(byte) { Ok(()) } else { Err(self.malformed()) }
    }

    fn malformed(&self) -> NpyError {
        NpyError::Malformed(self.at)
    }

    fn dictionary(mut self) -> Result<Vec<(String, Literal)>, NpyError> {
        let mut entries = Vec::new();
        self.expect(b'{')?;
        while !self.accept(b'}') {
            let Literal::Text(key) = self.literal(0)? else { return Err(self.malformed()) };
            self.expect(b':')?;
            entries.push((key, self.literal(0)?));
            if !self.accept(b',') && self.peek() != Some(b'}') {
                return Err(self.malformed());
            }
        }
        Ok(entries)
    }

    fn literal(&mut self, depth: usize) -> Result<Literal, NpyError> {
        match self.peek() {
            Some(quote @ (b'\'' | b'"')) => self.quoted(quote),
            Some(b'(') if depth < DEPTH_MAX => self.tuple(b')', depth + 1),
            Some(b'[') if depth < DEPTH_MAX => self.tuple(b']', depth + 1),
            Some(byte) if byte.is_ascii_digit() => self.number(),
            Some(b'T') => self.word(b"True", true),
            Some(b'F') => self.word(b"False", false),
            _ => Err(self.malformed()),
        }
    }

    fn quoted(&mut self, quote: u8) -> Result<Literal, NpyError> {
        let begin = self.at + 1;
        let len = self.text[begin..].iter().position(|&byte| byte == quote);
        let len = len.ok_or_else(|| self.malformed())?;
        let text = String::from_utf8_lossy(&self.text[begin..begin + len]).into_owned();
        self.at = begin + len + 1;
        Ok(Literal::Text(text))
    }

    fn tuple(&mut self, end: u8, depth: usize) -> Result<Literal, NpyError> {
        let mut values = Vec::new();
        self.at += 1;
        while !self.accept(end) {
            values.push(self.literal(depth)?);
            if !self.accept(b',') && self.peek() != Some(end) {
                return Err(self.malformed());
            }
        }
        Ok(Literal::Tuple(values))
    }

    fn number(&mut self) -> Result<Literal, NpyError> {
        let begin = self.at;
        let digits = self.text[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        // Python 2 wrote long numbers with an L.
        self.at += usize::from(self.text.get(self.at) == Some(&b'L'));
        let digits = str::from_utf8(&self.text[begin..begin + digits]).ok();
        let number = digits.and_then(|digits| digits.parse().ok());
        number.map(Literal::Number).ok_or(NpyError::Malformed(begin))
    }

    fn word(&mut self, word: &[u8], truth: bool) -> Result<Literal, NpyError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.malformed());
        }
        self.at += word.len();
        Ok(Literal::Truth(truth))
    }
}

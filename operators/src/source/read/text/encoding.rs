//! Encodings of text: recognised by the first bytes of a file, and converted to UTF-8.
//!
//! ```text
//! ASCII and more bytes (UTF-8, windows-1252, …)   bytes ──► lines ──► each line to UTF-8
//! UTF-16, ISO-2022-JP                             bytes ──► UTF-8 (Transcoder) ──► lines
//! ```
//!
//! In most encodings a byte 10 always is a line end, so that lines are cut before the conversion,
//! and positions are positions in the file. In UTF-16 a byte 10 may be half of a character, so the
//! file is converted first.

use std::borrow::Cow;
use std::sync::Arc;

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared::rejected::OnError;
use crate::source::read::error::ReadError;

/// Byte order mark with which a text in UTF-8 may begin; not part of its first line.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
/// Byte order marks of UTF-32. The first mark begins with a mark of UTF-16.
const UTF32_MARKS: [&[u8]; 2] = [b"\xff\xfe\0\0", b"\0\0\xfe\xff"];
const UTF16_MARKS: [(&[u8], &Encoding); 2] = [(b"\xff\xfe", UTF_16LE), (b"\xfe\xff", UTF_16BE)];
/// Bytes of the longest byte order mark.
const MARK_BYTES: usize = 4;
/// Maximum bytes of a text without a mark that a guess reads.
const GUESS_BYTES: usize = 64;
/// Maximum bytes that are converted at once.
const RAW_BYTES: usize = 64 << 10;
/// The replacement character, U+FFFD, in UTF-8.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Action for bytes that are no text in the encoding of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Invalid {
    /// End the run with an error that names the file and the line.
    Fail,
    /// Leave the line out, or the rest of a file in UTF-16; counted in `skipped` and
    /// `files_skipped`. With `on_error` `reject`, such a line goes to the output `rejected`.
    Skip,
    /// Read the replacement character U+FFFD in their place; the lines are counted in `replaced`.
    Replace,
}

impl Invalid {
    /// The action for wrong bytes if only the action for other errors is given.
    pub(crate) fn of(on_error: OnError) -> Self {
        if on_error.goes_on() { Self::Skip } else { Self::Fail }
    }
}

/// Encoding of the inputs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decoding {
    pub(crate) encoding: &'static Encoding,
    pub(crate) invalid: Invalid,
}

impl Decoding {
    /// UTF-8, unless the beginning of a file shows another encoding.
    pub(crate) fn usual(invalid: Invalid) -> Self {
        Self { encoding: UTF_8, invalid }
    }

    /// Whether the file is cut into lines before the conversion.
    pub(crate) fn keeps_line_ends(&self) -> bool {
        self.encoding.is_ascii_compatible()
    }
}

/// The encoding with this name. A name is a label of the Encoding Standard, and may have hyphens
/// and underscores in other places.
pub(crate) fn named(name: &str) -> Option<&'static Encoding> {
    let hyphens = name.replace('_', "-");
    let none = hyphens.replace('-', "");
    let label = |name: &str| Encoding::for_label_no_replacement(name.as_bytes());
    match none.to_ascii_lowercase().as_str() {
        "utf16le" => Some(UTF_16LE),
        "utf16be" => Some(UTF_16BE),
        // The standard reads UTF-16 without a mark as little-endian.
        "utf16" => Some(UTF_16LE),
        _ => label(name).or_else(|| label(&hyphens)).or_else(|| label(&none)),
    }
}

/// Outcome of a look at the first bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// Too few bytes to decide.
    Unknown,
    /// Text in the encoding of the inputs, after a mark of this number of bytes.
    Text(usize),
    /// Another encoding.
    Wide(Wide),
}

/// Encoding with more than one byte a character, even in ASCII text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wide {
    /// UTF-16 with a mark.
    Utf16(&'static Encoding),
    /// Bytes that look like this encoding, without a mark.
    Unmarked(&'static str),
    /// UTF-32.
    Utf32,
}

impl Wide {
    /// The error of a file in this encoding that cannot be read.
    pub(crate) fn error(self, path: Arc<str>) -> ReadError {
        match self {
            Self::Utf16(encoding) => ReadError::Encoding { path, encoding: encoding.name() },
            Self::Unmarked(encoding) if encoding.starts_with("UTF-16") => {
                ReadError::Unmarked { path, encoding }
            }
            Self::Unmarked(encoding) => ReadError::Encoding { path, encoding },
            Self::Utf32 => ReadError::Encoding { path, encoding: "UTF-32" },
        }
    }
}

/// Decides by the first bytes of a file. With `guesses`, text without a mark is recognised, too.
pub(crate) fn start_of(start: &[u8], guesses: bool) -> Start {
    let may_become = |mark: &[u8]| start.len() < mark.len() && mark.starts_with(start);
    if UTF32_MARKS.iter().any(|mark| start.starts_with(mark)) {
        return Start::Wide(Wide::Utf32);
    }
    if UTF32_MARKS.into_iter().chain([UTF8_MARK, UTF16_MARKS[1].0]).any(may_become) {
        return Start::Unknown;
    }
    if let Some((_, encoding)) = UTF16_MARKS.iter().find(|(mark, _)| start.starts_with(mark)) {
        return Start::Wide(Wide::Utf16(encoding));
    }
    if start.starts_with(UTF8_MARK) {
        return Start::Text(UTF8_MARK.len());
    }
    if !guesses {
        return Start::Text(0);
    }
    match guess(start) {
        Some(name) if start.len() >= MARK_BYTES => Start::Wide(Wide::Unmarked(name)),
        // The bytes may be a part of a character. An empty line is text at once, so that the line
        // does not wait for more bytes.
        Some(_) if !matches!(start, b"\n" | b"\r\n") => Start::Unknown,
        _ => Start::Text(0),
    }
}

/// The wide encoding in which the bytes `start` are ASCII text.
fn guess(start: &[u8]) -> Option<&'static str> {
    let start = &start[..start.len().min(GUESS_BYTES)];
    // `place` is the index of the only byte of each unit that is not zero.
    let fits = |unit: usize, place: usize| {
        let is_zero = |(index, &byte): (usize, &u8)| (byte == 0) == (index % unit != place);
        start.iter().enumerate().all(is_zero)
    };
    let forms = [("UTF-32LE", 4, 0), ("UTF-32BE", 4, 3), ("UTF-16LE", 2, 0), ("UTF-16BE", 2, 1)];
    forms.into_iter().find(|&(_, unit, place)| fits(unit, place)).map(|(name, ..)| name)
}

/// A line as text. The error is the place of the first wrong byte, if the place is known.
pub(crate) fn text_of<'a>(
    bytes: &'a [u8],
    encoding: &'static Encoding,
) -> Result<Cow<'a, str>, usize> {
    if encoding == UTF_8 {
        let text = simdutf8::compat::from_utf8(bytes);
        return text.map(Cow::Borrowed).map_err(|error| error.valid_up_to());
    }
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes);
    text.ok_or_else(|| first_wrong(bytes, encoding))
}

/// A line as text, with replacements.
pub(crate) fn replaced(bytes: &[u8], encoding: &'static Encoding) -> String {
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

/// The place of the first bytes that are no text.
fn first_wrong(bytes: &[u8], encoding: &'static Encoding) -> usize {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let room = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
    let mut text = vec![0; room.unwrap_or(0)];
    match decoder.decode_to_utf8_without_replacement(bytes, &mut text, true) {
        (DecoderResult::Malformed(wrong, more), read, _) => {
            read.saturating_sub(usize::from(wrong) + usize::from(more))
        }
        _ => 0,
    }
}

/// Converts a file to UTF-8, block by block.
pub(crate) struct Transcoder {
    decoder: Decoder,
    raw: Vec<u8>,
    text: Vec<u8>,
    /// Bytes of `text` that have been taken.
    taken: usize,
    has_ended: bool,
}

/// Bytes that are no text in the encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Transcoder {
    pub(crate) fn new(encoding: &'static Encoding) -> Self {
        let (raw, text) = (vec![0; RAW_BYTES], Vec::new());
        Self { decoder: encoding.new_decoder(), raw, text, taken: 0, has_ended: false }
    }

    /// Room for bytes of the file.
    pub(crate) fn free(&mut self) -> &mut [u8] {
        &mut self.raw
    }

    /// Moves text to `target`. Returns the number of bytes, which is 0 if there is no text.
    pub(crate) fn take(&mut self, target: &mut [u8]) -> usize {
        let text = &self.text[self.taken..];
        let bytes = text.len().min(target.len());
        target[..bytes].copy_from_slice(&text[..bytes]);
        self.taken += bytes;
        bytes
    }

    pub(crate) fn encoding(&self) -> &'static Encoding {
        self.decoder.encoding()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Converts bytes that another reader has read. Returns the number of replacements.
    ///
    /// # Errors
    /// If there are wrong bytes and `invalid` does not replace wrong bytes.
    pub(crate) fn add_bytes(&mut self, bytes: &[u8], invalid: Invalid) -> Result<u64, Malformed> {
        Self::convert(&mut self.decoder, bytes, &mut self.text, (false, invalid))
    }

    /// Converts the first `bytes` bytes of [`Self::free`]; 0 bytes end the file. The caller has to
    /// take all text before. Returns the number of replacements.
    ///
    /// # Errors
    /// As [`Self::add_bytes`].
    pub(crate) fn add(&mut self, bytes: usize, invalid: Invalid) -> Result<u64, Malformed> {
        self.text.clear();
        self.taken = 0;
        self.has_ended = bytes == 0;
        let how = (self.has_ended, invalid);
        Self::convert(&mut self.decoder, &self.raw[..bytes], &mut self.text, how)
    }

    fn convert(
        decoder: &mut Decoder,
        mut bytes: &[u8],
        text: &mut Vec<u8>,
        (is_last, invalid): (bool, Invalid),
    ) -> Result<u64, Malformed> {
        let mut replaced = 0;
        loop {
            let have = text.len();
            let room = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
            text.resize(have + room.unwrap_or(RAW_BYTES * 4), 0);
            let target = &mut text[have..];
            let (result, read, written) =
                decoder.decode_to_utf8_without_replacement(bytes, target, is_last);
            bytes = &bytes[read..];
            text.truncate(have + written);
            match result {
                DecoderResult::InputEmpty => return Ok(replaced),
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) if invalid == Invalid::Replace => {
                    text.extend_from_slice(REPLACEMENT);
                    replaced += 1;
                }
                DecoderResult::Malformed(..) => return Err(Malformed),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_shows_the_encoding() {
        let wide = |name| Start::Wide(Wide::Unmarked(name));
        for (start, expected) in [
            (&b"\xef\xbb"[..], Start::Unknown),
            (b"\xef\xbb\xbfa", Start::Text(3)),
            (b"\xff\xfe", Start::Unknown),
            (b"\xff\xfea\0", Start::Wide(Wide::Utf16(UTF_16LE))),
            (b"\xfe\xff", Start::Wide(Wide::Utf16(UTF_16BE))),
            (b"\xff\xfe\0\0a\0\0\0", Start::Wide(Wide::Utf32)),
            (b"\0\0\xfe\xff", Start::Wide(Wide::Utf32)),
            (b"a\0", Start::Unknown),
            (b"a\0b\0\n\0", wide("UTF-16LE")),
            (b"\0a\0b", wide("UTF-16BE")),
            (b"a\0\0\0b\0\0\0", wide("UTF-32LE")),
            (b"\0\0\0a\0\0\0b", wide("UTF-32BE")),
            (b"\n", Start::Text(0)),
            (b"ab\0c\n", Start::Text(0)),
            (b"\0\0\0\0\0\0", Start::Text(0)),
            (b"caf\xe9", Start::Text(0)),
        ] {
            assert_eq!(start_of(start, true), expected, "{start:?}");
        }
        assert_eq!(start_of(b"a\0b\0", false), Start::Text(0));
    }

    #[test]
    fn names_of_encodings_are_those_of_the_standard_and_of_python() {
        for (name, expected) in [
            ("utf-8", "UTF-8"),
            ("UTF8", "UTF-8"),
            ("utf-16", "UTF-16LE"),
            ("utf_16_be", "UTF-16BE"),
            ("latin-1", "windows-1252"),
            ("cp1252", "windows-1252"),
            ("Shift_JIS", "Shift_JIS"),
            ("iso-8859-15", "ISO-8859-15"),
        ] {
            assert_eq!(named(name).map(Encoding::name), Some(expected), "{name}");
        }
        assert_eq!(named("utf-32"), None);
        assert_eq!(named("nonsense"), None);
    }

    #[test]
    fn a_transcoder_makes_the_same_text_of_all_blocks() {
        let text = "añ\r\n😀 中\n";
        let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for step in 1..=bytes.len() {
            let (mut transcoder, mut made) = (Transcoder::new(UTF_16LE), Vec::new());
            let ends: [&[u8]; 1] = [b""];
            for block in bytes.chunks(step).chain(ends) {
                transcoder.free()[..block.len()].copy_from_slice(block);
                assert_eq!(transcoder.add(block.len(), Invalid::Fail), Ok(0));
                let mut target = [0; 3];
                loop {
                    match transcoder.take(&mut target) {
                        0 => break,
                        bytes => made.extend_from_slice(&target[..bytes]),
                    }
                }
            }
            assert!(transcoder.has_ended());
            assert_eq!(String::from_utf8(made).unwrap(), text);
        }
        let mut transcoder = Transcoder::new(UTF_16LE);
        assert_eq!(transcoder.add_bytes(b"\0\xd8a\0", Invalid::Fail), Err(Malformed));
        let mut transcoder = Transcoder::new(UTF_16LE);
        assert_eq!(transcoder.add_bytes(b"\0\xd8a\0", Invalid::Replace), Ok(1));
    }
}

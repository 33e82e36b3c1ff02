//! Format `sets`: lines of integers.
//!
//! Each block of 64 bytes gives a mask with a bit for each byte that is not a digit, made from
//! words of eight bytes. The bits mark the ends of tokens. The position of a token does not depend
//! on the value of the token before it, so the processor converts several at a time. Up to eight
//! digits take three multiplications:
//!
//! ```text
//! bytes of a token   '1' '9' '7' '0'       one load, moved so that zeros stand in front
//!                     0 0 0 0 1 9 7 0
//!                      0   0  19  70       pairs of digits: times 10, plus the next one
//!                        0      1970       pairs of pairs: times 100
//!                              1970        both halves: times 10,000
//! ```
//!
//! Source: Langdale, Lemire, *Parsing gigabytes of JSON per second*, VLDB Journal 28, 2019 (masks,
//! conversion of eight digits). Departure: a loop converts more than eight digits.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::error::ReadError;
use super::input::Inputs;
use super::lines::{LineFormat, Run};
use crate::columns::SetsBuilder;

/// Bytes of an invalid token that a message repeats.
const TOKEN_BYTES_SHOWN: usize = 40;
/// Bytes of a mask.
const BLOCK: usize = 64;
/// Bytes of a word.
const WORD: usize = 8;
/// A word with this byte in each place is a multiple of it.
const EACH: u64 = 0x0101_0101_0101_0101;

/// Format `sets`: one row per line. Ids count all lines of all files, including lines left out.
pub(super) struct SetLines {
    sets: SetsBuilder,
    next_id: u64,
}

impl SetLines {
    pub(super) fn new() -> Self {
        Self { sets: SetsBuilder::new(), next_id: 0 }
    }

    #[cfg(test)]
    pub(super) fn starting_at(next_id: u64) -> Self {
        Self { next_id, ..Self::new() }
    }

    fn next_id(&mut self, inputs: &Inputs, line: u64) -> Result<u32, ReadError> {
        let id = u32::try_from(self.next_id)
            .map_err(|_| ReadError::TooManyRows { path: inputs.path(), line })?;
        self.next_id += 1;
        Ok(id)
    }
}

impl LineFormat for SetLines {
    fn schema(&self) -> &SchemaRef {
        self.sets.schema()
    }

    fn append(&mut self, run: &Run<'_>, inputs: &mut Inputs) -> Result<(), ReadError> {
        run.for_each_accepted_range(inputs, |inputs, line, range| {
            let id = self.next_id(inputs, line)?;
            let Some(range) = range else { return Ok(()) };
            match parse_tokens(run.bytes(), range, self.sets.tokens_mut()) {
                Ok(()) => self.sets.close(id),
                Err(token) => {
                    self.sets.abandon();
                    let token = shorten(token);
                    inputs.refuse(|path| ReadError::Token { path, line, token })?;
                }
            }
            Ok(())
        })
    }

    fn pass_over(&mut self, inputs: &mut Inputs, line: u64) -> Result<(), ReadError> {
        self.next_id(inputs, line).map(drop)
    }

    fn rows(&self) -> usize {
        self.sets.len()
    }

    fn bytes(&self) -> usize {
        self.sets.bytes()
    }

    fn take(&mut self) -> RecordBatch {
        self.sets.take()
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Appends the integers of the `line` of `bytes` to `tokens`, or returns the first invalid token.
fn parse_tokens<'a>(
    bytes: &'a [u8],
    line: Range<usize>,
    tokens: &mut Vec<u32>,
) -> Result<(), &'a [u8]> {
    let mut start = line.start;
    let mut base = line.start;
    while base < line.end {
        let rest = line.end - base;
        // The end of the line, which is no digit, ends the last token.
        let of_line = if rest < BLOCK { u64::MAX >> (BLOCK - 1 - rest) } else { u64::MAX };
        let mut ends = other_than_digits_at(bytes, base) & of_line;
        while ends != 0 {
            let end = base + ends.trailing_zeros() as usize;
            ends &= ends - 1;
            if end < line.end && !is_blank(bytes[end]) {
                return Err(token_at(&bytes[..line.end], start));
            }
            push_token(&bytes[..line.end], bytes, start, end, tokens)?;
            start = end + 1;
        }
        base += BLOCK;
    }
    if start < line.end {
        push_token(&bytes[..line.end], bytes, start, line.end, tokens)?;
    }
    Ok(())
}

/// Bit `i` is set if byte `base + i` is no digit, or past the end.
#[inline]
fn other_than_digits_at(bytes: &[u8], base: usize) -> u64 {
    let rest = &bytes[base..];
    if let Some(block) = rest.first_chunk() {
        return other_than_digits(block);
    }
    if let Some(block) = bytes.last_chunk() {
        // The bytes before the base move out.
        return !(!other_than_digits(block) >> (BLOCK - rest.len()));
    }
    let mut block = [b' '; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    other_than_digits(&block)
}

/// Bit `i` is set if byte `i` is no digit.
#[inline]
fn other_than_digits(block: &[u8; BLOCK]) -> u64 {
    let (words, _) = block.as_chunks::<WORD>();
    words.iter().enumerate().fold(0, |mask, (place, word)| {
        let digits = u64::from_le_bytes(*word) ^ (EACH * u64::from(b'0'));
        // The high bit of a byte above 9: it is set in the byte, or by adding to its low bits.
        let above = digits | ((digits & (EACH * 0x7f)) + EACH * (0x7f - 9));
        // The product moves the lowest bit of byte `i` to bit `i` of the highest byte.
        let bits = ((above >> 7 & EACH).wrapping_mul(0x0102_0408_1020_4080)) >> 56;
        mask | bits << (WORD * place)
    })
}

/// Appends the token of the digits from `start` to `end`, if there are any. `bytes` goes on after
/// the `line`.
#[inline(always)]
fn push_token<'a>(
    line: &'a [u8],
    bytes: &[u8],
    start: usize,
    end: usize,
    tokens: &mut Vec<u32>,
) -> Result<(), &'a [u8]> {
    let length = end - start;
    let word = bytes[start..].first_chunk::<WORD>();
    if let Some(word) = word
        && (1..=WORD).contains(&length)
    {
        // Bytes after the token move out.
        tokens.push(of_digits(u64::from_le_bytes(*word) << (8 * (WORD - length))));
        return Ok(());
    }
    push_rare_token(line, start, end, tokens)
}

/// Appends a token that is long, empty, or at the end of all bytes.
#[cold]
fn push_rare_token<'a>(
    line: &'a [u8],
    start: usize,
    end: usize,
    tokens: &mut Vec<u32>,
) -> Result<(), &'a [u8]> {
    if start < end {
        tokens.push(of_any(&line[start..end]).ok_or_else(|| token_at(line, start))?);
    }
    Ok(())
}

/// The value of up to eight digits, the last of them in the highest byte. Bytes in front of them
/// are 0.
#[inline]
fn of_digits(digits: u64) -> u32 {
    // A digit is the low half of its byte, and so is nothing.
    let ones = digits & (EACH * 0xf);
    let pairs = (ones.wrapping_mul((10 << 8) | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul((100 << 16) | 1) >> 16) & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul((10_000 << 32) | 1) >> 32) as u32
}

/// The value of any number of digits, if it fits.
fn of_any(digits: &[u8]) -> Option<u32> {
    digits
        .iter()
        .try_fold(0_u32, |value, digit| value.checked_mul(10)?.checked_add(u32::from(digit - b'0')))
}

/// The token that begins at `start`, up to the next blank.
fn token_at(line: &[u8], start: usize) -> &[u8] {
    let token = &line[start..];
    &token[..token.iter().position(|&byte| is_blank(byte)).unwrap_or(token.len())]
}

/// The beginning of a token, for a message.
pub(super) fn shorten(token: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&token[..token.len().min(TOKEN_BYTES_SHOWN)]);
    let more = if token.len() > TOKEN_BYTES_SHOWN { "…" } else { "" };
    format!("{}{more}", shown.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The tokens by the standard library, or the first one that is invalid.
    fn naive(line: &[u8]) -> Result<Vec<u32>, &[u8]> {
        let tokens = line.split(|&byte| is_blank(byte)).filter(|token| !token.is_empty());
        let parse = |token: &'_ [u8]| -> Option<u32> {
            let is_number = token.iter().all(u8::is_ascii_digit);
            is_number.then(|| std::str::from_utf8(token).ok()?.parse().ok()).flatten()
        };
        tokens.map(|token| parse(token).ok_or(token)).collect()
    }

    fn check(line: &[u8]) {
        let mut tokens = Vec::new();
        // Alone, and between other lines.
        for around in [0, 7, 70] {
            let bytes = [&b"9\n".repeat(around), line, &b"\n9".repeat(around)].concat();
            tokens.clear();
            let begin = 2 * around;
            let parsed = parse_tokens(&bytes, begin..begin + line.len(), &mut tokens);
            let parsed = parsed.map(|()| &tokens[..]);
            let expected = naive(line);
            assert_eq!(parsed, expected.as_deref().map_err(|token| *token), "{line:?}");
        }
    }

    #[test]
    fn tokens_end_anywhere_in_a_block() {
        for blanks in 0..140 {
            for digits in 0..14 {
                let mut line = vec![b' '; blanks];
                line.extend(&b"42949672959999"[..digits]);
                check(&line);
                line.extend(b" 4294967295\t4294967296");
                check(&line);
                line.truncate(blanks + digits + 11);
                check(&line);
            }
        }
    }

    #[test]
    fn every_other_byte_is_refused() {
        for byte in 0..=u8::MAX {
            for at in 0..70 {
                let mut line = b"1234567 ".repeat(9);
                line[at] = byte;
                check(&line);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn tokens_are_those_of_the_standard_library(
            line in "([0-9]{1,11}|[ \\t]{1,3}|[ -~]){0,30}",
        ) {
            check(line.as_bytes());
        }
    }
}

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
        run.for_each_accepted(inputs, |inputs, line, bytes| {
            let id = self.next_id(inputs, line)?;
            let Some(bytes) = bytes else { return Ok(()) };
            match parse_tokens(bytes, self.sets.tokens_mut()) {
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

/// Appends the integers of a line to `tokens`, or returns the first invalid token.
fn parse_tokens<'a>(line: &'a [u8], tokens: &mut Vec<u32>) -> Result<(), &'a [u8]> {
    let mut start = 0;
    let mut base = 0;
    while base < line.len() {
        let mut ends = match line[base..].first_chunk::<BLOCK>() {
            Some(block) => other_than_digits(block),
            None => {
                let rest = &line[base..];
                let mut block = [b' '; BLOCK];
                block[..rest.len()].copy_from_slice(rest);
                // The end of the line ends the last token; it has no bit if the line fills the
                // block.
                other_than_digits(&block) & (u64::MAX >> (BLOCK - 1 - rest.len()))
            }
        };
        while ends != 0 {
            let end = base + ends.trailing_zeros() as usize;
            ends &= ends - 1;
            if end < line.len() && !is_blank(line[end]) {
                return Err(token_at(line, start));
            }
            push_token(line, start, end, tokens)?;
            start = end + 1;
        }
        base += BLOCK;
    }
    if start < line.len() {
        push_token(line, start, line.len(), tokens)?;
    }
    Ok(())
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

/// Appends the token of the digits from `start` to `end`, if there are any.
#[inline]
fn push_token<'a>(
    line: &'a [u8],
    start: usize,
    end: usize,
    tokens: &mut Vec<u32>,
) -> Result<(), &'a [u8]> {
    let length = end - start;
    if length == 0 {
        return Ok(());
    }
    // A load from the first digit on, or if the line is over before, up to the last one.
    let first = line[start..].first_chunk::<WORD>().map(|word| u64::from_le_bytes(*word));
    let last = || line[..end].last_chunk::<WORD>().map(|word| u64::from_le_bytes(*word));
    let token = match WORD.checked_sub(length).map(|others| 8 * others) {
        Some(others) => first
            .map(|word| word << others)
            .or_else(|| Some(last()? >> others << others))
            .map_or_else(|| of_any(&line[start..end]), |digits| Some(of_digits(digits))),
        None => of_any(&line[start..end]),
    };
    tokens.push(token.ok_or_else(|| token_at(line, start))?);
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
        let parsed = parse_tokens(line, &mut tokens);
        assert_eq!(parsed.map(|()| tokens), naive(line), "{:?}", String::from_utf8_lossy(line));
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

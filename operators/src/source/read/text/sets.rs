//! Format `sets`: lines of integers.
//!
//! A run of lines is converted at once. If a line of the run is invalid, each line is converted
//! alone, so that each invalid line is named.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trommel_engine::memory::{MemoryBudget, Reservation};
use trommel_kernels::text::integers_of;

use super::lines::{LineFormat, Run};
use crate::shared::columns::SetsBuilder;
use crate::source::read::divided::Divided;
use crate::source::read::error::ReadError;
use crate::source::read::files::input::Inputs;

/// Maximum bytes of an invalid token in a message.
const TOKEN_BYTES_SHOWN: usize = 40;

/// Bytes of lines whose tokens need no reservation.
const UNRESERVED_BYTES: usize = 512 << 10;

/// Format `sets`: one row per line. Ids count all lines of all files, including lines left out.
pub(crate) struct SetLines {
    sets: SetsBuilder,
    next_id: u64,
    /// Memory of long sets.
    room: Reservation,
}

impl SetLines {
    pub(crate) fn new() -> Self {
        Self { sets: SetsBuilder::new(), next_id: 0, room: Reservation::default() }
    }

    /// Takes memory for long sets from this budget.
    pub(crate) fn within(self, memory: &MemoryBudget) -> Self {
        Self { room: memory.reservation(), ..self }
    }

    #[cfg(test)]
    pub(crate) fn starting_at(next_id: u64) -> Self {
        Self { next_id, ..Self::new() }
    }

    /// Appends all lines of `run`, or no line.
    fn append_all(&mut self, run: &Run<'_>) -> bool {
        let next = self.next_id + run.lines() as u64;
        let (Ok(first), true) = (u32::try_from(self.next_id), next <= 1 << 32) else {
            return false;
        };
        let is_whole =
            self.sets.extend(first, |tokens, ends| integers_of(run.isa, run.bytes(), tokens, ends));
        if is_whole {
            self.next_id = next;
        }
        is_whole
    }

    /// Reserves memory for the tokens of `run` if the run has a long line.
    fn reserve(&mut self, run: &Run<'_>, inputs: &Inputs) -> Result<(), ReadError> {
        if run.bytes().len() <= UNRESERVED_BYTES {
            return Ok(());
        }
        let is_within = |byte: &u8| !is_blank(*byte) && *byte != b'\n';
        let ends =
            run.bytes().windows(2).filter(|pair| is_within(&pair[0]) && !is_within(&pair[1]));
        let tokens = ends.count() + 1;
        let bytes = self.sets.bytes() + tokens * size_of::<u32>();
        if bytes > self.room.bytes() {
            let line = run.first_line;
            self.room.resize(bytes).map_err(|full| inputs.no_memory(line, full))?;
        }
        self.sets.tokens_mut().reserve_exact(tokens);
        Ok(())
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
        self.reserve(run, inputs)?;
        if run.is_accepted() && self.append_all(run) {
            return Ok(());
        }
        run.for_each_accepted(inputs, |inputs, number, line| {
            let id = self.next_id(inputs, number)?;
            let Some(line) = line else { return Ok(()) };
            match parse_tokens(line.bytes, self.sets.tokens_mut()) {
                Ok(()) => self.sets.close(id),
                Err(token) => {
                    self.sets.abandon();
                    let token = shorten(token);
                    let error = |path| ReadError::Token { path, line: number, token };
                    inputs.refuse(&line.into(), error)?;
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

impl Divided for SetLines {
    fn another(&self, memory: &MemoryBudget) -> Self {
        Self::new().within(memory)
    }

    fn begin_block(&mut self, lines_before: u64) {
        self.next_id = lines_before;
    }

    fn lines_so_far(&self) -> u64 {
        self.next_id
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Appends the integers of `line` to `tokens`, or returns the first invalid token.
fn parse_tokens<'a>(line: &'a [u8], tokens: &mut Vec<u32>) -> Result<(), &'a [u8]> {
    for token in line.split(|byte| is_blank(*byte)).filter(|token| !token.is_empty()) {
        tokens.push(value(token).ok_or(token)?);
    }
    Ok(())
}

/// The value of a token, if it is an integer of 32 bits.
fn value(token: &[u8]) -> Option<u32> {
    token.iter().try_fold(0_u32, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// The beginning of a token, for a message.
pub(crate) fn shorten(token: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&token[..token.len().min(TOKEN_BYTES_SHOWN)]);
    let more = if token.len() > TOKEN_BYTES_SHOWN { "…" } else { "" };
    format!("{}{more}", shown.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The tokens by the standard library, or the first invalid token.
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
        let parsed = parse_tokens(line, &mut tokens).map(|()| &tokens[..]);
        let expected = naive(line);
        assert_eq!(parsed, expected.as_deref().map_err(|token| *token), "{line:?}");
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

//! Words by the runs of masks.

use super::class::{self, BETWEEN, LETTER, of_byte};
use super::general;
use super::mask::{BLOCK, Masks};

/// Words of a window. `lower` is the window with its ASCII letters in lower case.
pub(super) fn words(
    text: &str,
    lower: &str,
    word: &mut String,
    mut sink: impl FnMut(&str) -> bool,
) -> usize {
    let bytes = lower.as_bytes();
    // Start of the run, or of the word before a byte that joins; and end of the last word.
    let (mut start, mut last) = (0, 0);
    let (mut is_inside, mut is_joined, mut is_wide) = (false, false, false);
    let mut base = 0;
    // A block past the end closes a word that ends with the text.
    'blocks: while base <= bytes.len() {
        let Masks { inside, wide } = Masks::at(bytes, base);
        // Bit `i` is set where byte `i` differs from the byte before it.
        let mut changes = inside ^ (inside << 1 | u64::from(is_inside));
        while changes != 0 {
            let place = changes.trailing_zeros() as usize;
            let at = base + place;
            changes &= changes - 1;
            is_inside = !is_inside;
            if is_inside {
                if !is_joined {
                    (start, is_wide) = (at, false);
                }
                continue;
            }
            is_wide |= wide & ones(start.saturating_sub(base)..place) != 0;
            is_joined = false;
            if !is_wide {
                match after(bytes, at) {
                    After::Joined => {
                        is_joined = true;
                        continue;
                    }
                    After::Boundary => {
                        last = at;
                        if is_word(&bytes[start..at]) && !sink(&lower[start..at]) {
                            return at;
                        }
                        continue;
                    }
                    After::Unknown => {}
                }
            }
            let stopped = general::words(text, last, start..at, word, &mut sink);
            last = stopped.last;
            if !stopped.goes_on {
                return stopped.at;
            }
            if stopped.at > at {
                // The words have passed the end of the run: masks begin again.
                (base, is_inside) = (stopped.at, false);
                continue 'blocks;
            }
        }
        is_wide |= is_inside && wide & ones(start.saturating_sub(base)..BLOCK) != 0;
        base += BLOCK;
    }
    text.len()
}

/// A mask of the bits of a range, which ends at [`BLOCK`] at most.
#[inline]
fn ones(range: std::ops::Range<usize>) -> u64 {
    let below = |end: usize| if end >= BLOCK { u64::MAX } else { (1 << end) - 1 };
    below(range.end) & !below(range.start)
}

/// The text after a run of ASCII.
enum After {
    Boundary,
    /// A byte that joins the letters or the digits on both of its sides.
    Joined,
    /// A byte that may join what is not ASCII.
    Unknown,
}

/// The text after the run that ends at `at` (WB6, WB7, WB11, WB12).
#[inline]
fn after(bytes: &[u8], at: usize) -> After {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let here = of_byte(byte(at));
    if here & BETWEEN == 0 {
        return After::Boundary;
    }
    let next = byte(at + 1);
    if !next.is_ascii() {
        return After::Unknown;
    }
    let is_joined = class::is_joined(of_byte(byte(at - 1)), here, of_byte(next));
    if is_joined { After::Joined } else { After::Boundary }
}

/// Whether a run of letters, digits and underscores has anything but underscores.
#[inline]
fn is_word(bytes: &[u8]) -> bool {
    of_byte(bytes[0]) & LETTER != 0 || bytes.iter().any(|&byte| byte != b'_')
}

//! The stamp of a state: how its input ended, and the name of the things that were counted.

use trommel_engine::operator::Ending;

use super::fields::Reader;
use crate::shared::state::{CHECKSUM_BYTES, HEADER_BYTES, RestoreError, STAMP};

/// Maximum length of a label in bytes: its length is one byte.
const LABEL_BYTES_MAX: usize = u8::MAX as usize;

/// How the input of a state ended, and the name of the things that were counted. States of earlier
/// versions, and states of inputs that had not ended, do not say how the input ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// How the input ended.
    pub(crate) ending: Option<Ending>,
    /// Name of the things that were counted; may be empty.
    pub(crate) label: String,
}

impl Stamp {
    /// The stamp of a state whose checksum is right.
    pub(crate) fn of(state: &[u8]) -> Result<Self, RestoreError> {
        let mut reader = Reader::of_header(state)?;
        let (ending, label_bytes) = reader.stamp()?;
        let end = state.len() - CHECKSUM_BYTES.min(state.len());
        let label = state.get(end.saturating_sub(label_bytes)..end).unwrap_or_default();
        let label = str::from_utf8(label);
        let label = label.map_err(|_| reader.refuse("the label", "other bytes", "UTF-8"))?;
        Ok(Self { ending, label: label.to_owned() })
    }

    /// Whether the input was stopped before its end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.ending == Some(Ending::Stopped)
    }

    /// Puts the stamp on a state that has none.
    pub(crate) fn put_on(&self, state: &mut Vec<u8>) {
        state.truncate(state.len() - CHECKSUM_BYTES);
        let label = &self.label[..self.label.floor_char_boundary(LABEL_BYTES_MAX)];
        state[STAMP] = match self.ending {
            None => 0,
            Some(Ending::Whole) => 1,
            Some(Ending::Stopped) => 2,
        };
        state[STAMP + 1] = u8::try_from(label.len()).expect("it was cut to the maximum");
        debug_assert!(state.len() >= HEADER_BYTES, "a state has a header");
        state.extend(label.as_bytes());
        state.extend(crc32fast::hash(state).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::items::{StoredItem, Text};
    use crate::shared::state::fields::{Writer, declared_bytes};
    use crate::shared::state::{Reader, StateKind};

    fn state() -> Vec<u8> {
        let mut writer = Writer::new(StateKind::Sieve, Text::NUMBER);
        writer.u32(7);
        writer.finish()
    }

    fn stamped(ending: Option<Ending>, label: &str) -> (Stamp, Vec<u8>) {
        let (stamp, mut bytes) = (Stamp { ending, label: label.to_owned() }, state());
        stamp.put_on(&mut bytes);
        (stamp, bytes)
    }

    #[test]
    fn a_stamp_is_read_as_it_was_put_on_and_leaves_the_body_alone() {
        for ending in [None, Some(Ending::Whole), Some(Ending::Stopped)] {
            for label in ["", "lines", "fields of \u{fc}"] {
                let (stamp, bytes) = stamped(ending, label);
                assert_eq!(Stamp::of(&bytes).unwrap(), stamp);
                assert_eq!(declared_bytes(&bytes).unwrap(), bytes.len() as u64);
                let mut reader = Reader::new(&bytes, StateKind::Sieve, Text::NUMBER).unwrap();
                assert_eq!(reader.u32("the number").unwrap(), 7);
                reader.finish().unwrap();
            }
        }
        assert_eq!(Stamp::of(&state()).unwrap(), Stamp::default());
        let (_, bytes) = stamped(None, &"\u{fc}".repeat(200));
        assert_eq!(Stamp::of(&bytes).unwrap().label, "\u{fc}".repeat(127));
    }

    #[test]
    fn forged_stamps_are_refused() {
        let (_, bytes) = stamped(Some(Ending::Whole), "words");
        for (offset, byte, said) in
            [(STAMP, 3, "how the input ended is 3; expected 0 to 2"), (14, 1, "in use")]
        {
            let mut forged = bytes[..bytes.len() - CHECKSUM_BYTES].to_vec();
            forged[offset] = byte;
            forged.extend(crc32fast::hash(&forged).to_le_bytes());
            let error = Reader::new(&forged, StateKind::Sieve, Text::NUMBER).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
        for label_bytes in [0, 4, 6, 255] {
            let mut forged = bytes[..bytes.len() - CHECKSUM_BYTES].to_vec();
            forged[STAMP + 1] = label_bytes;
            forged.extend(crc32fast::hash(&forged).to_le_bytes());
            let error = Reader::new(&forged, StateKind::Sieve, Text::NUMBER).unwrap_err();
            assert!(error.to_string().contains("should have"), "{error}");
        }
    }
}

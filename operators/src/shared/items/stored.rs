//! Items as bytes, in a snapshot.

use super::item::Item;
use super::text::Text;

/// An item that a snapshot can hold.
///
/// [`Self::read`] must take the bytes that [`Self::write`] appended for an equal item, and refuse
/// all other bytes. The bytes need not hold the code: the summary that reads the item computes the
/// code.
pub trait StoredItem: Item {
    /// A number for the type; the numbers below 128 are reserved.
    const NUMBER: u8;

    /// Appends the item.
    fn write(&self, bytes: &mut Vec<u8>);
    /// Reads an item from the front of `bytes`. Returns the item and its number of bytes; `None` if
    /// no item is there.
    fn read(bytes: &[u8]) -> Option<(Self, usize)>;
}

macro_rules! stored_integer {
    ($integer:ident, $number:expr) => {
        impl StoredItem for $integer {
            const NUMBER: u8 = $number;

            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn read(bytes: &[u8]) -> Option<(Self, usize)> {
                let (first, _) = bytes.split_first_chunk()?;
                Some((Self::from_le_bytes(*first), first.len()))
            }
        }
    };
}

stored_integer!(u32, 1);
stored_integer!(u64, 2);

/// The format is the length in bytes (u32), then the bytes.
impl StoredItem for Text {
    const NUMBER: u8 = 3;

    fn write(&self, bytes: &mut Vec<u8>) {
        let len =
            u32::try_from(self.len()).expect("a string in an Arrow array is below 2^31 bytes");
        bytes.extend(len.to_le_bytes());
        bytes.extend(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (len, bytes) = bytes.split_first_chunk()?;
        let text = bytes.get(..usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
        let text = Text::from(simdutf8::basic::from_utf8(text).ok()?);
        let taken = len.len() + text.len();
        Some((text, taken))
    }
}

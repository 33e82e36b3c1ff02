//! The numbers, items and lists of a snapshot, in their order.

use std::ops::RangeInclusive;

use trommel_engine::operator::Ending;

use crate::shared::items::StoredItem;
use crate::shared::state::{
    CHECKSUM_BYTES, HEADER_BYTES, ITEM_NAMES, MAGIC, RestoreError, STAMP, StateKind, VERSION,
    name_of,
};

/// Writes a snapshot.
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// A snapshot of a state of this kind, of items of the type [`item`](StoredItem::NUMBER).
    pub(crate) fn new(kind: StateKind, item: u8) -> Self {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([kind as u8, item]);
        bytes.resize(HEADER_BYTES, 0);
        Self { bytes }
    }

    pub(crate) fn u8(&mut self, number: u8) {
        self.bytes.push(number);
    }

    pub(crate) fn u32(&mut self, number: u32) {
        self.bytes.extend(number.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, number: u64) {
        self.bytes.extend(number.to_le_bytes());
    }

    pub(crate) fn u128(&mut self, number: u128) {
        self.bytes.extend(number.to_le_bytes());
    }

    pub(crate) fn u16s(&mut self, numbers: &[u16]) {
        numbers.iter().for_each(|number| self.bytes.extend(number.to_le_bytes()));
    }

    pub(crate) fn u32s(&mut self, numbers: impl Iterator<Item = u32>) {
        self.bytes.reserve(size_of::<u32>() * numbers.size_hint().0);
        numbers.for_each(|number| self.u32(number));
    }

    /// Writes a number of elements, counters or cells.
    pub(crate) fn len(&mut self, len: usize) {
        self.u64(len as u64);
    }

    pub(crate) fn item<K: StoredItem>(&mut self, item: &K) {
        item.write(&mut self.bytes);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let body = (self.bytes.len() - HEADER_BYTES) as u64;
        self.bytes[HEADER_BYTES - 8..HEADER_BYTES].copy_from_slice(&body.to_le_bytes());
        self.bytes.extend(crc32fast::hash(&self.bytes).to_le_bytes());
        self.bytes
    }
}

/// Number of bytes of the whole snapshot, from the header at its beginning.
pub(crate) fn declared_bytes(bytes: &[u8]) -> Result<u64, RestoreError> {
    let mut reader = Reader::of_header(bytes)?;
    let (_, label) = reader.stamp()?;
    let body = reader.u64("the length of the body")?;
    Ok(body.saturating_add((HEADER_BYTES + label + CHECKSUM_BYTES) as u64))
}

/// Reads the body of a snapshot whose header, length and checksum are right.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    /// The bytes of the snapshot without the checksum.
    bytes: &'a [u8],
    offset: usize,
    /// Place at which the last field began.
    field: usize,
}

impl<'a> Reader<'a> {
    /// A reader of a snapshot; see [`Writer::new`] for `kind` and `item`.
    pub(crate) fn new(bytes: &'a [u8], kind: StateKind, item: u8) -> Result<Self, RestoreError> {
        let found = bytes.len();
        let Some((_, checksum)) = bytes
            .split_last_chunk::<CHECKSUM_BYTES>()
            .filter(|_| found >= HEADER_BYTES + CHECKSUM_BYTES)
        else {
            return Err(RestoreError::TooShort { bytes: found });
        };
        let mut reader = Self::of_header(bytes)?;
        reader.check_types(kind as u8, item)?;
        let (_, label) = reader.stamp()?;
        let body = reader.u64("the length of the body")?;
        let expected = body.saturating_add((HEADER_BYTES + label + CHECKSUM_BYTES) as u64);
        if expected != found as u64 {
            return Err(RestoreError::Length { expected, found });
        }
        let bytes = &bytes[..found - CHECKSUM_BYTES];
        let (found, computed) = (u32::from_le_bytes(*checksum), crc32fast::hash(bytes));
        if found != computed {
            return Err(RestoreError::Checksum { found, computed });
        }
        let bytes = &bytes[..bytes.len() - label];
        Ok(Self { bytes, offset: HEADER_BYTES, field: HEADER_BYTES })
    }

    /// Reads the mark and the version.
    pub(crate) fn of_header(bytes: &'a [u8]) -> Result<Self, RestoreError> {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(RestoreError::TooShort { bytes: bytes.len() });
        };
        let mut reader = Self { bytes: header, offset: 0, field: 0 };
        let magic: [u8; 8] = reader.array("the mark")?;
        if magic != MAGIC {
            return Err(RestoreError::Magic { found: magic });
        }
        let version = u16::from_le_bytes(reader.array("the version")?);
        if version != VERSION {
            return Err(RestoreError::Version { found: version });
        }
        Ok(reader)
    }

    /// Reads how the input ended, and the number of bytes of the label. The header continues after
    /// the stamp.
    pub(crate) fn stamp(&mut self) -> Result<(Option<Ending>, usize), RestoreError> {
        self.offset = STAMP;
        let [ending] = self.array("how the input ended")?;
        let ending = match self.check("how the input ended", ending, &(0..=2))? {
            0 => None,
            1 => Some(Ending::Whole),
            _ => Some(Ending::Stopped),
        };
        let [label] = self.array("the length of the label")?;
        if self.array("the space after the label")? != [0; 2] {
            return Err(self.refuse("the space after the label", "in use", "zero"));
        }
        Ok((ending, label.into()))
    }

    fn check_types(&mut self, kind: u8, item: u8) -> Result<(), RestoreError> {
        let names = StateKind::NAMES;
        let [number] = self.array("the kind of state")?;
        if number != kind {
            let (found, expected) = (name_of(number, &names), name_of(kind, &names));
            return Err(RestoreError::Kind { number, found, expected });
        }
        let [number] = self.array("the type of items")?;
        if number != item {
            let (found, expected) = (name_of(number, &ITEM_NAMES), name_of(item, &ITEM_NAMES));
            return Err(RestoreError::Item { number, found, expected });
        }
        Ok(())
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], RestoreError> {
        self.field = self.offset;
        let Some(array) = self.bytes[self.offset..].first_chunk::<N>() else {
            return Err(self.refuse(field, "cut off", format_args!("{N} bytes")));
        };
        self.offset += N;
        Ok(*array)
    }

    /// The error that the last field has an impossible value.
    pub(crate) fn refuse(
        &self,
        field: &'static str,
        value: impl ToString,
        expected: impl ToString,
    ) -> RestoreError {
        let (value, expected) = (value.to_string(), expected.to_string());
        RestoreError::Field { offset: self.field, field, value, expected }
    }

    /// Refuses the last field unless its value is in the range.
    pub(crate) fn check<T: PartialOrd + ToString>(
        &self,
        field: &'static str,
        value: T,
        range: &RangeInclusive<T>,
    ) -> Result<T, RestoreError> {
        if range.contains(&value) {
            return Ok(value);
        }
        let (least, most) = (range.start().to_string(), range.end().to_string());
        let expected = if least == most { least } else { format!("{least} to {most}") };
        Err(self.refuse(field, value, expected))
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, RestoreError> {
        self.array(field).map(|[number]| number)
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, RestoreError> {
        self.array(field).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, RestoreError> {
        self.array(field).map(u64::from_le_bytes)
    }

    pub(crate) fn u16s(
        &mut self,
        field: &'static str,
        len: usize,
    ) -> Result<Vec<u16>, RestoreError> {
        self.check_room(field, len, size_of::<u16>())?;
        (0..len).map(|_| self.array(field).map(u16::from_le_bytes)).collect()
    }

    pub(crate) fn u32s(
        &mut self,
        field: &'static str,
        len: usize,
    ) -> Result<Vec<u32>, RestoreError> {
        self.check_room(field, len, size_of::<u32>())?;
        (0..len).map(|_| self.u32(field)).collect()
    }

    pub(crate) fn u128(&mut self, field: &'static str) -> Result<u128, RestoreError> {
        self.array(field).map(u128::from_le_bytes)
    }

    /// A number of counters, bins or cells.
    pub(crate) fn size(
        &mut self,
        field: &'static str,
        range: &RangeInclusive<usize>,
    ) -> Result<usize, RestoreError> {
        let size = self.u64(field)?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        self.check(field, size, range)
    }

    /// Reads a number of elements that follow: at most `most`, with at least `bytes_each` bytes
    /// each.
    pub(crate) fn len(
        &mut self,
        field: &'static str,
        most: usize,
        bytes_each: usize,
    ) -> Result<usize, RestoreError> {
        let len = self.size(field, &(0..=most))?;
        let room = (self.bytes.len() - self.offset) / bytes_each;
        self.check(field, len, &(0..=room))
    }

    /// Refuses the snapshot unless the remaining bytes suffice for `len` elements.
    pub(crate) fn check_room(
        &self,
        field: &'static str,
        len: usize,
        bytes_each: usize,
    ) -> Result<(), RestoreError> {
        let (needed, left) = (len.saturating_mul(bytes_each), self.bytes.len() - self.offset);
        if needed <= left {
            return Ok(());
        }
        let (offset, expected) = (self.offset, format!("{needed} bytes"));
        let value = format!("in {left} bytes");
        Err(RestoreError::Field { offset, field, value, expected })
    }

    /// Reads the index of a slot, which is below `slots`.
    pub(crate) fn slot(&mut self, field: &'static str, slots: usize) -> Result<u32, RestoreError> {
        let slot = self.u32(field)?;
        if (slot as usize) < slots {
            return Ok(slot);
        }
        Err(self.refuse(field, slot, format_args!("less than {slots}")))
    }

    pub(crate) fn item<K: StoredItem>(&mut self) -> Result<K, RestoreError> {
        self.field = self.offset;
        let Some((item, bytes)) = K::read(&self.bytes[self.offset..]) else {
            return Err(self.refuse("an item", "no item", "an item of this type"));
        };
        self.offset += bytes;
        Ok(item)
    }

    /// Refuses a list of items that ends with the last field, if two items are equal.
    pub(crate) fn check_distinct<'k, K: Ord + 'k>(
        &self,
        items: impl Iterator<Item = &'k K>,
    ) -> Result<(), RestoreError> {
        // The items are sorted and not looked up, since a forger of the list may know the hash.
        let mut items: Vec<&K> = items.collect();
        items.sort_unstable();
        if items.array_windows().any(|[left, right]| left == right) {
            return Err(self.refuse("an item of the list that ends here", "there twice", "once"));
        }
        Ok(())
    }

    /// Refuses bytes after the last field.
    pub(crate) fn finish(self) -> Result<(), RestoreError> {
        let left = self.bytes.len() - self.offset;
        let end = Self { field: self.offset, ..self };
        let refused = || end.refuse("the end", format_args!("{left} bytes later"), "the checksum");
        if left == 0 { Ok(()) } else { Err(refused()) }
    }
}

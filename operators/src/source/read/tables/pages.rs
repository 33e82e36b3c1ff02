//! Headers of the pages of a Parquet file, which are read before the decoder reads the pages.
//!
//! The decoder allocates the size that a header states. The reader therefore adds up the sizes of
//! all pages of a column first and asks for the memory; a header that is damaged or reaches beyond
//! its column is an error. A header is a struct of the compact protocol of Thrift. The reader needs
//! three numbers of the struct, and its length.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// Bytes that are read at once.
const WINDOW_BYTES: usize = 1 << 10;
/// Maximum depth of structs and lists inside each other; a header has a depth of three.
const DEPTH_MAX: usize = 16;

/// Sums over the pages of a column of a row group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pages {
    /// Bytes without compression.
    pub(crate) bytes: u64,
    /// Values, which include nulls.
    pub(crate) values: u64,
}

/// Adds up the pages that lie at `range` of `file`.
pub(crate) fn pages_of(file: &File, range: Range<u64>) -> io::Result<Pages> {
    let mut walk = Walk { file, at: range.start, end: range.end, window: Vec::new(), begin: 0 };
    let mut pages = Pages::default();
    while walk.at < walk.end {
        let page = walk.page()?;
        let [bytes, compressed, values] = [page.bytes, page.compressed, page.values];
        let [bytes, compressed, values] = [size(bytes)?, size(compressed)?, size(values)?];
        walk.pass(compressed)?;
        pages.bytes += bytes;
        pages.values += values;
    }
    Ok(pages)
}

fn size(number: i64) -> io::Result<u64> {
    let fits = u64::try_from(number).ok().filter(|&size| size <= u64::from(u32::MAX));
    fits.ok_or_else(|| damaged("a page has an impossible size"))
}

fn damaged(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

#[derive(Debug, Default)]
struct Page {
    bytes: i64,
    compressed: i64,
    values: i64,
}

struct Walk<'a> {
    file: &'a File,
    at: u64,
    end: u64,
    /// Bytes of the file from `begin` on.
    window: Vec<u8>,
    begin: u64,
}

/// The types of the compact protocol.
mod kind {
    pub(crate) const STOP: u8 = 0;
    pub(crate) const TRUE: u8 = 1;
    pub(crate) const FALSE: u8 = 2;
    pub(crate) const BYTE: u8 = 3;
    pub(crate) const I16: u8 = 4;
    pub(crate) const I64: u8 = 6;
    pub(crate) const DOUBLE: u8 = 7;
    pub(crate) const BINARY: u8 = 8;
    pub(crate) const LIST: u8 = 9;
    pub(crate) const SET: u8 = 10;
    pub(crate) const STRUCT: u8 = 12;
}

impl Walk<'_> {
    /// Passes over this number of bytes.
    fn pass(&mut self, bytes: u64) -> io::Result<()> {
        let at = self.at.checked_add(bytes).filter(|&at| at <= self.end);
        self.at = at.ok_or_else(|| damaged("a page reaches beyond its column"))?;
        Ok(())
    }

    fn byte(&mut self) -> io::Result<u8> {
        let in_window = |walk: &Self| usize::try_from(walk.at.checked_sub(walk.begin)?).ok();
        let place = in_window(self).filter(|&place| place < self.window.len());
        let place = match place {
            Some(place) => place,
            None => {
                let left = self.end - self.at;
                let bytes =
                    usize::try_from(left).map_or(WINDOW_BYTES, |left| left.min(WINDOW_BYTES));
                self.window.resize(bytes, 0);
                self.file.read_exact_at(&mut self.window, self.at)?;
                self.begin = self.at;
                0
            }
        };
        self.pass(1)?;
        Ok(self.window[place])
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(damaged("a number in the header of a page does not end"))
    }

    fn signed(&mut self) -> io::Result<i64> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// The number and the type of the next field of a struct, after the field with this `number`.
    fn field(&mut self, number: i64) -> io::Result<Option<(i64, u8)>> {
        let head = self.byte()?;
        let (delta, kind) = (head >> 4, head & 0xf);
        if kind == kind::STOP {
            return Ok(None);
        }
        let number = if delta == 0 { self.signed()? } else { number.saturating_add(delta.into()) };
        Ok(Some((number, kind)))
    }

    fn page(&mut self) -> io::Result<Page> {
        let (mut page, mut number) = (Page::default(), 0);
        while let Some((field, kind)) = self.field(number)? {
            number = field;
            match field {
                2 => page.bytes = self.signed()?,
                3 => page.compressed = self.signed()?,
                // The header of a data page, of a dictionary, or of a data page of version 2.
                5 | 7 | 8 if kind == kind::STRUCT => page.values = self.values()?,
                _ => self.skip(kind, DEPTH_MAX)?,
            }
        }
        Ok(page)
    }

    /// The first field of a struct, which is a number of values.
    fn values(&mut self) -> io::Result<i64> {
        let (mut values, mut number) = (0, 0);
        while let Some((field, kind)) = self.field(number)? {
            number = field;
            match field {
                1 => values = self.signed()?,
                _ => self.skip(kind, DEPTH_MAX - 1)?,
            }
        }
        Ok(values)
    }

    fn skip(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        let depth = depth.checked_sub(1);
        let depth = depth.ok_or_else(|| damaged("the header of a page is too deep"))?;
        match kind {
            kind::TRUE | kind::FALSE => Ok(()),
            kind::BYTE => self.pass(1),
            kind::I16..=kind::I64 => self.number().map(drop),
            kind::DOUBLE => self.pass(8),
            kind::BINARY => {
                let bytes = self.number()?;
                self.pass(bytes)
            }
            kind::LIST | kind::SET => {
                let head = self.byte()?;
                let items = match head >> 4 {
                    15 => self.number()?,
                    items => items.into(),
                };
                let item = head & 0xf;
                // Each item has at least one byte, so that a wrong number of items ends with the
                // column.
                (0..items).try_for_each(|_| match item {
                    kind::TRUE | kind::FALSE => self.pass(1),
                    item => self.skip(item, depth),
                })
            }
            kind::STRUCT => {
                let mut number = 0;
                while let Some((field, kind)) = self.field(number)? {
                    number = field;
                    self.skip(kind, depth)?;
                }
                Ok(())
            }
            _ => Err(damaged("the header of a page has a field of an unknown type")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// The sums over the pages in `bytes`.
    fn sums(bytes: &[u8]) -> Result<(u64, u64), String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before").unwrap();
        file.write_all(bytes).unwrap();
        let range = 6..6 + bytes.len() as u64;
        let pages = pages_of(&file, range).map_err(|error| error.to_string())?;
        Ok((pages.bytes, pages.values))
    }

    /// A header as the format describes it: type 0, 300 bytes without compression, 2 bytes in the
    /// file, and a struct with 5 values and with statistics, which have a text and a list.
    fn header() -> Vec<u8> {
        let begin = [0x15, 0, 0x15, 0xd8, 0x04, 0x15, 4, 0x2c, 0x15, 10];
        let statistics = [0x1c, 0x18, 3, b'm', b'a', b'x', 0x19, 0x28, 1, b'a', 0, 0x11, 0, 0, 0];
        [&begin[..], &statistics].concat()
    }

    #[test]
    fn pages_are_added_up() {
        let page = [&header()[..], b"ab"].concat();
        assert_eq!(sums(&page), Ok((300, 5)));
        assert_eq!(sums(&page.repeat(1_000)), Ok((300_000, 5_000)));
        assert_eq!(sums(b""), Ok((0, 0)));
    }

    #[test]
    fn damaged_headers_are_errors() {
        let page = [&header()[..], b"ab"].concat();
        for cut in 1..page.len() {
            assert!(sums(&page[..cut]).is_err(), "{cut}");
        }
        let negative = [0x15, 0, 0x15, 1, 0x15, 4, 0];
        assert_eq!(sums(&negative), Err("a page has an impossible size".into()));
        let long = [0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0];
        assert_eq!(sums(&long), Err("a page reaches beyond its column".into()));
        let deep = [0x1c].repeat(100);
        assert_eq!(sums(&deep), Err("the header of a page is too deep".into()));
        let list = [0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert!(sums(&list).is_err());
    }
}

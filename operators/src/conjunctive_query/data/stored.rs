//! The index as a file.
//!
//! ```text
//! offset  bytes
//!      0      8  "trominv", 0x1a
//!      8      2  version: 2
//!     10      1  type of terms: 1 u32, 3 text
//!     11      5  zero
//!     16      8  bytes of the segment, a multiple of 64
//!     24      8  bytes of the description
//!     32      4  CRC-32 of the segment
//!     36     24  zero
//!     60      4  CRC-32 of all before
//!     64         segment: the lists (see trommel_kernels::inverted)
//!      …         description: a state of kind 5 (see crate::shared::state), with a checksum of its own
//!                  …  terms by number
//!                  1  whether documents have names
//!                  8  number of names, and the names
//! ```
//!
//! All numbers are little-endian. Every byte is under a checksum, and the length of the file is
//! compared with the header before anything is allocated. The whole file is read into memory and
//! checked there. Mapping the file would not be cheaper, because the check reads every byte anyway;
//! and a program that overwrites a mapped file would change the answers of the process or end the
//! process.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use arrow_array::{Array, LargeStringArray};
use arrow_schema::DataType;
use thiserror::Error;
use trommel_engine::operator::{Ending, OperatorError};
use trommel_kernels::inverted::{Segment, SegmentBytes, SegmentError};

use super::index::{DOCUMENTS_MAX, Index};
use super::segments::{DocumentBlock, IndexSegment, SegmentFactory};
use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::items::Text;
use crate::shared::names::ItemNames;
use crate::shared::state::{
    Reader, RestoreError, SnapshotFile, SnapshotFileError, Stamp, StateKind, Writer,
};

const MAGIC: [u8; 8] = *b"trominv\x1a";
const VERSION: u16 = 2;
const HEADER_BYTES: usize = 64;
const CHECKSUM: usize = HEADER_BYTES - size_of::<u32>();

/// The reason why a file cannot be opened as an index.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IndexFileError {
    /// Opening or reading failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is shorter than a header.
    #[error("invalid index of {bytes} bytes: the shortest one has more than {HEADER_BYTES}")]
    TooShort {
        /// Bytes of the file.
        bytes: u64,
    },
    /// The file does not begin with the bytes of an index.
    #[error("invalid index: it begins with {found:02x?}, not with {MAGIC:02x?}")]
    Magic {
        /// The first bytes.
        found: [u8; 8],
    },
    /// The file has another version.
    #[error("byte 8: the index has version {found}; this program reads version {VERSION}")]
    Version {
        /// The version.
        found: u16,
    },
    /// Bytes have changed.
    #[error("the index is damaged: the checksum of its {part} is {found:08x}, not {computed:08x}")]
    Checksum {
        /// `header` or `lists`.
        part: &'static str,
        /// The checksum in the file.
        found: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// Bytes are missing, or there are too many.
    #[error("the index should have {expected} bytes, by its header; it has {found}")]
    Length {
        /// Bytes by the header.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// The index has terms of another type.
    #[error("the index has terms of another type than `set`: type {found}; expected {expected}")]
    Terms {
        /// Number of the type in the file.
        found: u8,
        /// Number of the type of the column.
        expected: u8,
    },
    /// Another program wrote to the file.
    #[error("the file was changed while it was read; begin again when it is complete")]
    Changed,
    /// The lists take more memory than is allowed.
    #[error(transparent)]
    Full(#[from] BudgetFull),
    /// The lists are invalid.
    #[error(transparent)]
    Lists(#[from] SegmentError),
    /// The terms or names are invalid.
    #[error(transparent)]
    Description(#[from] RestoreError),
    /// The parts of the index do not fit each other.
    #[error("invalid index: {found} {what}, but lists of {expected}")]
    Mismatch {
        /// `terms` or `names`.
        what: &'static str,
        /// Number of the terms or names.
        found: usize,
        /// Number that the lists need.
        expected: u32,
    },
    /// There are too many documents.
    #[error("the index has {0} documents; at most {DOCUMENTS_MAX} are allowed")]
    TooMany(u32),
    /// The documents of the index have no names although names are needed, or have names although
    /// no names are allowed.
    #[error("the documents of the index have {0}; see the parameter `name`")]
    Names(&'static str),
    /// The index has only a part of the documents, because the run that wrote the index was
    /// stopped.
    #[error(
        "the index has {0} documents of a run that was stopped before the end of its documents; \
         name the file as `restore` to begin with these"
    )]
    Stopped(u32),
}

/// The index of a file: its terms, its lists and names.
pub(crate) struct OpenedIndex {
    pub(crate) names: ItemNames,
    pub(crate) segment: IndexSegment,
    /// Whether the run that wrote the index was stopped before the end of its documents.
    pub(crate) is_stopped: bool,
}

/// Header, lists and description of an index of one segment.
fn encode(
    names: &ItemNames,
    segment: &IndexSegment,
    stamp: &Stamp,
) -> ([u8; HEADER_BYTES], Vec<u8>) {
    let mut writer = Writer::new(StateKind::Documents, names.stored_type());
    names.write(&mut writer);
    writer.u8(u8::from(segment.names.is_some()));
    writer.len(segment.names.as_ref().map_or(0, Array::len));
    for name in segment.names.iter().flatten().flatten() {
        writer.item(&Text::from(name));
    }
    let mut description = writer.finish();
    stamp.put_on(&mut description);
    let lists = segment.lists.as_bytes();
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..10].copy_from_slice(&VERSION.to_le_bytes());
    header[10] = names.stored_type();
    header[16..24].copy_from_slice(&(lists.len() as u64).to_le_bytes());
    header[24..32].copy_from_slice(&(description.len() as u64).to_le_bytes());
    header[32..36].copy_from_slice(&crc32fast::hash(lists).to_le_bytes());
    let checksum = crc32fast::hash(&header[..CHECKSUM]);
    header[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
    (header, description)
}

/// Opens the index in the file at `path`, of terms of the type `item`, whose lists take at most
/// `memory_max` bytes.
pub(crate) fn open(
    path: &Path,
    item: &DataType,
    memory_max: usize,
) -> Result<OpenedIndex, IndexFileError> {
    let file = File::open(path)?;
    let before = file.metadata()?;
    read(&file, before.len(), item, memory_max)
        .map_err(|error| if has_changed(&file, &before) { IndexFileError::Changed } else { error })
}

/// Whether a file has changed since its metadata `before` was read.
fn has_changed(file: &File, before: &Metadata) -> bool {
    let times = |file: &Metadata| {
        (file.len(), file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec())
    };
    file.metadata().is_ok_and(|now| times(&now) != times(before))
}

/// The index of a file of `bytes` bytes. All sections of the file are compared with their
/// checksums.
fn read(
    mut file: impl Read,
    bytes: u64,
    item: &DataType,
    memory_max: usize,
) -> Result<OpenedIndex, IndexFileError> {
    let mut names = ItemNames::new(item).expect("the type was checked");
    let sizes = Sizes::read(&mut file, bytes, names.stored_type())?;
    Budget::new(memory_max).take("the index", sizes.lists)?;
    let lists = SegmentBytes::read_from(&mut file, sizes.lists)?;
    check("lists", lists.as_ref(), sizes.checksum)?;
    let mut description = vec![0; sizes.description];
    file.read_exact(&mut description)?;
    let mut reader = Reader::new(&description, StateKind::Documents, names.stored_type())?;
    names.read(&mut reader)?;
    let documents = read_documents(&mut reader)?;
    reader.finish()?;
    let is_stopped = Stamp::of(&description)?.is_stopped();
    let lists = Segment::new(lists)?;
    let count = lists.documents();
    if count > DOCUMENTS_MAX {
        return Err(IndexFileError::TooMany(count));
    }
    let (found, expected) = (names.len(), lists.terms());
    if found != expected as usize {
        return Err(IndexFileError::Mismatch { what: "terms", found, expected });
    }
    if let Some(found) = documents.as_ref().map(Array::len).filter(|&len| len != count as usize) {
        return Err(IndexFileError::Mismatch { what: "names", found, expected: count });
    }
    let segment = IndexSegment::whole(lists, documents);
    Ok(OpenedIndex { names, segment, is_stopped })
}

/// Bytes of the sections of an index, and the checksum of its lists.
struct Sizes {
    lists: usize,
    description: usize,
    checksum: u32,
}

impl Sizes {
    /// Reads and checks the header of a file of `found` bytes: its checksum, and the length of the
    /// file. So nothing is allocated for sections that the file does not have.
    fn read(file: &mut impl Read, found: u64, item: u8) -> Result<Self, IndexFileError> {
        if found < HEADER_BYTES as u64 {
            return Err(IndexFileError::TooShort { bytes: found });
        }
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header)?;
        let magic = field(&header, 0);
        if magic != MAGIC {
            return Err(IndexFileError::Magic { found: magic });
        }
        check("header", &header[..CHECKSUM], u32::from_le_bytes(field(&header, CHECKSUM)))?;
        let version = u16::from_le_bytes(field(&header, 8));
        if version != VERSION {
            return Err(IndexFileError::Version { found: version });
        }
        let sections = [16, 24].map(|offset| u64::from_le_bytes(field(&header, offset)));
        let expected = sections.into_iter().fold(HEADER_BYTES as u64, u64::saturating_add);
        if expected != found {
            return Err(IndexFileError::Length { expected, found });
        }
        if header[10] != item {
            return Err(IndexFileError::Terms { found: header[10], expected: item });
        }
        let checksum = u32::from_le_bytes(field(&header, 32));
        let [lists, description] = sections.map(|bytes| {
            usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))
        });
        Ok(Self { lists: lists?, description: description?, checksum })
    }
}

fn field<const N: usize>(header: &[u8; HEADER_BYTES], offset: usize) -> [u8; N] {
    *header[offset..].first_chunk().expect("a field of the header")
}

fn check(part: &'static str, bytes: &[u8], found: u32) -> Result<(), IndexFileError> {
    let computed = crc32fast::hash(bytes);
    if found == computed {
        return Ok(());
    }
    Err(IndexFileError::Checksum { part, found, computed })
}

/// The names of the documents, if they have names.
fn read_documents(reader: &mut Reader<'_>) -> Result<Option<LargeStringArray>, RestoreError> {
    let has_names = reader.u8("whether documents have names")?;
    let has_names = reader.check("whether documents have names", has_names, &(0..=1))? == 1;
    let most = if has_names { DOCUMENTS_MAX as usize } else { 0 };
    let len = reader.len("the number of names", most, size_of::<u32>())?;
    let names: Vec<Text> = (0..len).map(|_| reader.item()).collect::<Result<_, _>>()?;
    let names = names.iter().map(|name| -> &str { name });
    Ok(has_names.then(|| LargeStringArray::from_iter_values(names)))
}

/// The files for the index at the end of the documents.
#[derive(Debug, Default)]
pub(crate) struct Destinations {
    /// The file of the index. The file is not written when the documents were stopped before their
    /// end: under this name, a part of an index would be taken for the whole index.
    index: Option<SnapshotFile>,
    /// The file of the state. A state notes whether the run was stopped, so a part of the documents
    /// is allowed.
    snapshot: Option<SnapshotFile>,
    is_checked: bool,
    not_saved: Option<SnapshotFileError>,
}

impl Destinations {
    pub(crate) fn new(index: Option<SnapshotFile>, snapshot: Option<SnapshotFile>) -> Self {
        Self { index, snapshot, is_checked: false, not_saved: None }
    }

    /// Notes how the documents ended.
    pub(crate) fn input_ended(&mut self, ending: Ending) {
        self.snapshot.iter_mut().for_each(|file| file.input_ended(ending));
        if ending == Ending::Stopped && self.index.take().is_some() {
            tracing::warn!(
                "the run was stopped before the end of the documents: the file `index_path` is not \
                 written"
            );
        }
    }

    /// Makes sure, when the stream begins, that the files can be written.
    pub(crate) fn probe(&mut self) -> Result<(), OperatorError> {
        if self.is_checked {
            return Ok(());
        }
        self.is_checked = true;
        self.index.iter().chain(&self.snapshot).try_for_each(SnapshotFile::probe)
    }

    /// Writes the index, which has at most one segment, to each file. Later calls write nothing.
    pub(crate) fn write(&mut self, names: &ItemNames, index: &Index) {
        let files = [self.index.take(), self.snapshot.take()];
        if files.iter().all(Option::is_none) {
            return;
        }
        let nothing;
        let segment = match index.segments().next() {
            Some(segment) => segment.as_ref(),
            None => {
                nothing = SegmentFactory::default().build(&mut DocumentBlock::default());
                &nothing
            }
        };
        for file in files.into_iter().flatten() {
            let (header, description) = encode(names, segment, file.stamp());
            let parts = [&header[..], segment.lists.as_bytes(), &description];
            if let Err(error) = file.write_parts(&parts) {
                self.not_saved.get_or_insert(error);
            }
        }
    }

    /// The first failure.
    pub(crate) fn result(&mut self) -> Result<(), OperatorError> {
        Ok(self.not_saved.take().map_or(Ok(()), Err)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_that_another_program_writes_to_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let mut writer = File::create(&path).unwrap();
        writer.write_all(b"trom").unwrap();
        let file = File::open(&path).unwrap();
        let before = file.metadata().unwrap();
        assert!(!has_changed(&file, &before));
        writer.write_all(b"inv").unwrap();
        assert!(has_changed(&file, &before));
    }
}

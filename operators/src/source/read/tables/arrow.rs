//! Format `arrow`: the file format and the stream format of Arrow's IPC.
//!
//! A stream is a schema, followed by messages. A file has the schema and an index of its messages
//! at its end. Before a message is decoded, memory is asked for its bytes and for the uncompressed
//! sizes that its buffers state, since the decoder allocates these sizes.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::{Block, Message, MessageHeader, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use trommel_engine::memory::Reservation;

use super::source::{Opening, Table};
use crate::source::read::error::TableError;

/// The first and the last bytes of the file format.
const MARK: &[u8; 6] = b"ARROW1";
/// Bytes after the index of a file: its length and a mark.
const END_BYTES: u64 = 10;
/// The first bytes of a message. A message of Arrow before 0.15 begins with its length instead.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Bytes before the data of a compressed buffer. These bytes hold the size without compression.
const LENGTH_BYTES: usize = 8;
/// Size that marks a buffer without compression in a compressed message.
const NOT_COMPRESSED: i64 = -1;

pub(crate) struct ArrowTable {
    file: File,
    bytes_total: u64,
    /// Place of the next message of a stream.
    at: u64,
    /// Places of the messages of a file that have not been read.
    index: Option<VecDeque<u64>>,
    bytes: u64,
    schema: SchemaRef,
    version: MetadataVersion,
    decoder: FileDecoder,
    /// Memory of the last message, and of all dictionaries.
    room: Reservation,
    dictionaries: Reservation,
}

/// A message, and its place.
struct FoundMessage {
    bytes: Buffer,
    block: Block,
}

impl FoundMessage {
    /// Bytes before the body.
    fn head(&self) -> usize {
        usize::try_from(self.block.metaDataLength()).expect("a length that was checked")
    }
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TableError {
    TableError::Decode(error.into())
}

fn wrong(reason: &str) -> TableError {
    failed(ArrowError::IpcError(reason.to_owned()))
}

/// The description of a message, which follows the length.
fn parsed(head: &[u8], prefix: usize) -> Result<Message<'_>, TableError> {
    root_as_message(&head[prefix..]).map_err(|error| failed(error.to_string()))
}

/// Bytes before the description of a message.
fn prefix_of(head: &[u8]) -> usize {
    if head.starts_with(&CONTINUATION) { 8 } else { 4 }
}

impl ArrowTable {
    /// Opens a file or a stream of Arrow.
    pub(crate) fn open(file: File, opening: &Opening) -> Result<Box<dyn Table>, TableError> {
        let bytes_total = file.metadata().map_err(failed)?.len();
        let mut mark = [0; MARK.len()];
        let is_file = file.read_exact_at(&mut mark, 0).is_ok() && mark == *MARK;
        let (schema, version) = (SchemaRef::new(Schema::empty()), MetadataVersion::V5);
        let mut table = Self {
            file,
            bytes_total,
            at: 0,
            index: None,
            bytes: 0,
            decoder: FileDecoder::new(Arc::clone(&schema), version),
            schema,
            version,
            room: opening.memory.reservation(),
            dictionaries: opening.memory.reservation(),
        };
        if is_file {
            table.begin_file()?
        } else {
            table.begin_stream()?
        }
        table.decoder = FileDecoder::new(Arc::clone(&table.schema), table.version);
        Ok(Box::new(table))
    }

    /// Takes the schema of a stream, which is its first message.
    fn begin_stream(&mut self) -> Result<(), TableError> {
        let found = self.next_message()?.ok_or_else(|| wrong("it has no schema"))?;
        let head = &found.bytes[..found.head()];
        let message = parsed(head, prefix_of(head))?;
        let schema = message.header_as_schema();
        let schema = schema.ok_or_else(|| wrong("its first message is not a schema"))?;
        self.version = message.version();
        self.schema = Arc::new(try_fb_to_schema(schema).map_err(failed)?);
        Ok(())
    }

    /// Takes the schema and the index of a file, which are at its end.
    fn begin_file(&mut self) -> Result<(), TableError> {
        let cut = || wrong("it is cut off: its last bytes are no index");
        let end = self.bytes_total.checked_sub(END_BYTES).ok_or_else(cut)?;
        let last: [u8; 10] = self.read(end)?;
        let (length, mark) = last.split_at(4);
        if mark != MARK {
            return Err(cut());
        }
        let length = i32::from_le_bytes(length.try_into().expect("4 bytes"));
        let length = u64::try_from(length).ok().filter(|&length| length <= end).ok_or_else(cut)?;
        let bytes = usize::try_from(length).map_err(|_| cut())?;
        self.room.resize(bytes).map_err(TableError::Memory)?;
        let mut footer = vec![0; bytes];
        self.file.read_exact_at(&mut footer, end - length).map_err(failed)?;
        let footer = root_as_footer(&footer).map_err(|error| failed(error.to_string()))?;
        let schema = footer.schema().ok_or_else(|| wrong("it has no schema"))?;
        self.schema = Arc::new(try_fb_to_schema(schema).map_err(failed)?);
        self.version = footer.version();
        let blocks = footer.dictionaries().into_iter().chain(footer.recordBatches()).flatten();
        let place = |block: &Block| {
            u64::try_from(block.offset()).map_err(|_| wrong("its index has an impossible place"))
        };
        self.index = Some(blocks.map(place).collect::<Result<_, _>>()?);
        Ok(())
    }

    fn read<const N: usize>(&self, at: u64) -> Result<[u8; N], TableError> {
        let mut bytes = [0; N];
        self.file.read_exact_at(&mut bytes, at).map_err(failed)?;
        Ok(bytes)
    }

    /// A length, checked to end within the file from `at` on.
    fn length(&self, length: i64, at: u64) -> Result<usize, TableError> {
        let left = self.bytes_total.saturating_sub(at);
        let length = u64::try_from(length).ok().filter(|&length| length <= left);
        let length = length.and_then(|length| usize::try_from(length).ok());
        length.ok_or_else(|| wrong("a message reaches beyond the end of the file"))
    }

    /// Reads the next message; `None` at the end.
    fn next_message(&mut self) -> Result<Option<FoundMessage>, TableError> {
        if let Some(index) = &mut self.index {
            let Some(place) = index.pop_front() else { return Ok(None) };
            self.at = place;
        } else if self.at == self.bytes_total {
            return Ok(None);
        }
        let mut prefix = 4;
        let mut length: [u8; 4] = self.read(self.at)?;
        if length == CONTINUATION {
            (length, prefix) = (self.read(self.at + 4)?, 8);
        }
        let length = i32::from_le_bytes(length);
        if length == 0 {
            return Ok(None);
        }
        let head = prefix + self.length(length.into(), self.at + prefix as u64)?;
        self.room.resize(head).map_err(TableError::Memory)?;
        let mut bytes = vec![0; head];
        self.file.read_exact_at(&mut bytes, self.at).map_err(failed)?;
        let body = self.length(parsed(&bytes, prefix)?.bodyLength(), self.at + head as u64)?;
        // The decoder copies a buffer that is not aligned, so the body counts twice.
        let all = head.saturating_add(body.saturating_mul(2));
        self.room.resize(all).map_err(TableError::Memory)?;
        let mut whole = MutableBuffer::from_len_zeroed(head + body);
        self.file.read_exact_at(&mut whole, self.at).map_err(failed)?;
        self.at += (head + body) as u64;
        self.bytes += (head + body) as u64;
        let head = i32::try_from(head).map_err(|_| wrong("a message is too long"))?;
        let body = i64::try_from(body).expect("a length of a file");
        Ok(Some(FoundMessage { bytes: whole.into(), block: Block::new(0, head, body) }))
    }

    /// Bytes of the buffers of a message without compression.
    fn unpacked(found: &FoundMessage) -> Result<usize, TableError> {
        let (head, body) = found.bytes.split_at(found.head());
        let message = parsed(head, prefix_of(head))?;
        let batch = match message.header_type() {
            MessageHeader::DictionaryBatch => {
                message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data())
            }
            _ => message.header_as_record_batch(),
        };
        let Some(batch) = batch.filter(|batch| batch.compression().is_some()) else {
            return Ok(0);
        };
        let mut sum: usize = 0;
        for buffer in batch.buffers().into_iter().flatten().filter(|buffer| buffer.length() > 0) {
            let begin = usize::try_from(buffer.offset()).ok();
            let length = begin.and_then(|begin| body.get(begin..)?.first_chunk::<LENGTH_BYTES>());
            let length = length.ok_or_else(|| wrong("a buffer reaches beyond its message"))?;
            match i64::from_le_bytes(*length) {
                NOT_COMPRESSED => {}
                length => {
                    let length = usize::try_from(length);
                    let length = length.map_err(|_| wrong("a buffer has an impossible length"))?;
                    sum = sum.saturating_add(length);
                }
            }
        }
        Ok(sum)
    }
}

impl Table for ArrowTable {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn project(&mut self, places: &[usize]) -> Result<(), TableError> {
        let decoder = FileDecoder::new(Arc::clone(&self.schema), self.version);
        self.decoder = decoder.with_projection(places.to_vec());
        Ok(())
    }

    fn next(&mut self) -> Result<Option<RecordBatch>, TableError> {
        while let Some(found) = self.next_message()? {
            let unpacked = Self::unpacked(&found)?;
            let head = &found.bytes[..found.head()];
            let header = parsed(head, prefix_of(head))?.header_type();
            if header == MessageHeader::DictionaryBatch {
                // Later messages use a dictionary and may extend it, so its memory stays reserved.
                let kept = self.dictionaries.bytes();
                let bytes = kept.saturating_add(found.bytes.len()).saturating_add(unpacked);
                self.dictionaries.resize(bytes).map_err(TableError::Memory)?;
                self.decoder.read_dictionary(&found.block, &found.bytes).map_err(failed)?;
                continue;
            }
            let all = self.room.bytes().saturating_add(unpacked);
            self.room.resize(all).map_err(TableError::Memory)?;
            let rows = self.decoder.read_record_batch(&found.block, &found.bytes);
            if let Some(rows) = rows.map_err(failed)? {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

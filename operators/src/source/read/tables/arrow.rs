//! Format `arrow`: the file format and the stream format of Arrow's IPC.
//!
//! A stream is a schema, followed by messages. A file has the schema and an index of its messages
//! at its end. Before a message is decoded, memory is asked for its bytes and for the uncompressed
//! sizes that its buffers state, since the decoder allocates these sizes.

use std::collections::VecDeque;
use std::fs::File;
use std::mem;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::{Block, Message, MessageHeader, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use trommel_engine::memory::{MemoryBudget, Reservation};

use super::source::{Opening, Table, blocks_within};
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
    file: Arc<File>,
    bytes_total: u64,
    /// Place of the next message of a stream.
    at: u64,
    /// The messages of a file that have not been read.
    index: Option<Index>,
    /// The next message, if its head has been read.
    next: Option<MessageHead>,
    bytes: u64,
    schema: SchemaRef,
    version: MetadataVersion,
    /// The decoder, which has the dictionaries, and their memory. Tables of some blocks share both.
    decoder: Arc<FileDecoder>,
    dictionaries: Arc<Reservation>,
    /// Memory of the last message.
    room: Reservation,
    memory: MemoryBudget,
}

/// The messages of a file.
#[derive(Default)]
struct Index {
    /// Places of the dictionaries, which precede all rows.
    dictionaries: VecDeque<u64>,
    /// Places and sizes of the batches of rows.
    batches: VecDeque<(u64, u64)>,
}

/// The part of a message that describes the body.
struct MessageHead {
    /// Place of the message.
    at: u64,
    bytes: Vec<u8>,
    kind: MessageHeader,
    /// Bytes of the body in the file, and bytes of its buffers without compression.
    body: usize,
    unpacked: usize,
}

impl MessageHead {
    /// Bytes of the message in the file.
    fn message_bytes(&self) -> usize {
        self.bytes.len() + self.body
    }

    /// Bytes of memory that the message needs.
    fn needed(&self) -> usize {
        // The decoder copies a buffer that is not aligned, so the body counts twice.
        let packed = self.bytes.len().saturating_add(self.body.saturating_mul(2));
        packed.saturating_add(self.unpacked)
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
            file: Arc::new(file),
            bytes_total,
            at: 0,
            index: None,
            next: None,
            bytes: 0,
            decoder: Arc::new(FileDecoder::new(Arc::clone(&schema), version)),
            dictionaries: Arc::new(opening.memory.reservation()),
            schema,
            version,
            room: opening.memory.reservation(),
            memory: opening.memory.clone(),
        };
        if is_file {
            table.begin_file()?
        } else {
            table.begin_stream()?
        }
        let decoder = FileDecoder::new(Arc::clone(&table.schema), table.version);
        table.decoder = Arc::new(decoder);
        Ok(Box::new(table))
    }

    /// A table of some batches of a file.
    fn of_batches(&mut self, batches: VecDeque<(u64, u64)>) -> Self {
        Self {
            file: Arc::clone(&self.file),
            bytes_total: self.bytes_total,
            at: 0,
            index: Some(Index { dictionaries: VecDeque::new(), batches }),
            next: None,
            // The first table counts the dictionaries.
            bytes: mem::take(&mut self.bytes),
            schema: Arc::clone(&self.schema),
            version: self.version,
            decoder: Arc::clone(&self.decoder),
            dictionaries: Arc::clone(&self.dictionaries),
            room: self.memory.reservation(),
            memory: self.memory.clone(),
        }
    }

    /// Takes the schema of a stream, which is its first message.
    fn begin_stream(&mut self) -> Result<(), TableError> {
        if !self.look()? {
            return Err(wrong("it has no schema"));
        }
        let head = self.next.take().expect("there is a message");
        self.pass(&head);
        let message = parsed(&head.bytes, prefix_of(&head.bytes))?;
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
        let place = |block: &Block| {
            u64::try_from(block.offset()).map_err(|_| wrong("its index has an impossible place"))
        };
        let size = |block: &Block| {
            let bytes = block.bodyLength().saturating_add(block.metaDataLength().into());
            u64::try_from(bytes).unwrap_or(0)
        };
        let dictionaries = footer.dictionaries().into_iter().flatten().map(place);
        let batches = footer.recordBatches().into_iter().flatten();
        let batches = batches.map(|block| Ok((place(block)?, size(block))));
        self.index = Some(Index {
            dictionaries: dictionaries.collect::<Result<_, TableError>>()?,
            batches: batches.collect::<Result<_, TableError>>()?,
        });
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

    /// Place of the next message; `None` at the end.
    fn place(&self) -> Option<u64> {
        match &self.index {
            None => (self.at < self.bytes_total).then_some(self.at),
            Some(Index { dictionaries, batches }) => {
                dictionaries.front().or(batches.front().map(|(place, _)| place)).copied()
            }
        }
    }

    /// Passes over the next message.
    fn pass(&mut self, head: &MessageHead) {
        let bytes = head.message_bytes() as u64;
        self.bytes += bytes;
        self.at = head.at + bytes;
        if let Some(Index { dictionaries, batches }) = &mut self.index
            && dictionaries.pop_front().is_none()
        {
            batches.pop_front();
        }
    }

    /// Reads the head of the next message; false at the end.
    fn look(&mut self) -> Result<bool, TableError> {
        if self.next.is_some() {
            return Ok(true);
        }
        let Some(at) = self.place() else { return Ok(false) };
        let mut prefix = 4;
        let mut length: [u8; 4] = self.read(at)?;
        if length == CONTINUATION {
            (length, prefix) = (self.read(at + 4)?, 8);
        }
        let length = i32::from_le_bytes(length);
        if length == 0 {
            let is_end = self.index.is_none();
            return is_end.then_some(false).ok_or_else(|| wrong("a message is empty"));
        }
        let bytes = prefix + self.length(length.into(), at + prefix as u64)?;
        self.room.resize(bytes).map_err(TableError::Memory)?;
        let mut head = vec![0; bytes];
        self.file.read_exact_at(&mut head, at).map_err(failed)?;
        let message = parsed(&head, prefix)?;
        let body = self.length(message.bodyLength(), at + bytes as u64)?;
        let unpacked = self.unpacked(message, at + bytes as u64, body)?;
        let kind = message.header_type();
        self.next = Some(MessageHead { at, bytes: head, kind, body, unpacked });
        Ok(true)
    }

    /// Reads a message, for which memory is reserved.
    fn read_message(&self, head: &MessageHead) -> Result<(Buffer, Block), TableError> {
        let mut whole = MutableBuffer::from_len_zeroed(head.message_bytes());
        self.file.read_exact_at(&mut whole, head.at).map_err(failed)?;
        let bytes = i32::try_from(head.bytes.len());
        let bytes = bytes.map_err(|_| wrong("a message is too long"))?;
        let body = i64::try_from(head.body).expect("a length of a file");
        Ok((whole.into(), Block::new(0, bytes, body)))
    }

    /// Bytes of the buffers of a message without compression. The body of the message, which has
    /// this number of bytes, begins at the place `at`.
    fn unpacked(&self, message: Message<'_>, at: u64, body: usize) -> Result<usize, TableError> {
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
            let is_within = |begin: &usize| {
                begin.checked_add(LENGTH_BYTES).is_some_and(|length_end| length_end <= body)
            };
            let begin = begin.filter(is_within);
            let begin = begin.ok_or_else(|| wrong("a buffer reaches beyond its message"))?;
            match i64::from_le_bytes(self.read(at + begin as u64)?) {
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

    /// Reads the next message, which is a dictionary. Later messages use a dictionary and may
    /// extend it, so its memory stays reserved. A call that fails for want of memory may be
    /// repeated.
    fn read_dictionary(&mut self) -> Result<(), TableError> {
        if self.index.as_ref().is_some_and(|index| index.dictionaries.is_empty()) {
            return Err(wrong("a dictionary stands among its rows"));
        }
        let alone = "tables of some blocks have no dictionaries to read";
        let head = self.next.as_ref().expect("there is a message");
        let kept = Arc::get_mut(&mut self.dictionaries).expect(alone);
        let more = head.message_bytes().saturating_add(head.unpacked);
        kept.resize(kept.bytes().saturating_add(more)).map_err(TableError::Memory)?;
        let head = self.next.take().expect("there is a message");
        let (whole, block) = self.read_message(&head)?;
        self.pass(&head);
        let decoder = Arc::get_mut(&mut self.decoder).expect(alone);
        decoder.read_dictionary(&block, &whole).map_err(failed)
    }

    /// Reserves the memory of the next message. Returns the kind of the message, or `None` at the
    /// end.
    fn reserve_next(&mut self) -> Result<Option<MessageHeader>, TableError> {
        self.look()?;
        let Some(head) = &self.next else { return Ok(None) };
        self.room.resize(head.needed()).map_err(TableError::Memory)?;
        Ok(Some(head.kind))
    }

    /// Reads the dictionaries before the next batch of rows, whose memory is then reserved; false
    /// if no batch is left.
    fn find_rows(&mut self) -> Result<bool, TableError> {
        while let Some(kind) = self.reserve_next()? {
            if kind != MessageHeader::DictionaryBatch {
                return Ok(true);
            }
            self.read_dictionary()?;
        }
        Ok(false)
    }
}

impl Table for ArrowTable {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn project(&mut self, places: &[usize]) -> Result<(), TableError> {
        let decoder = FileDecoder::new(Arc::clone(&self.schema), self.version);
        self.decoder = Arc::new(decoder.with_projection(places.to_vec()));
        Ok(())
    }

    fn reserve(&mut self) -> Result<(), TableError> {
        self.find_rows().map(drop)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>, TableError> {
        while self.find_rows()? {
            let head = self.next.take().expect("there is a message");
            let (whole, block) = self.read_message(&head)?;
            self.pass(&head);
            let rows = self.decoder.read_record_batch(&block, &whole);
            if let Some(rows) = rows.map_err(failed)? {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn blocks(&self) -> usize {
        self.index.as_ref().map_or(0, |index| index.batches.len())
    }

    fn begin_blocks(&mut self) -> Result<(), TableError> {
        while self.index.as_ref().is_some_and(|index| !index.dictionaries.is_empty()) {
            self.reserve_next()?;
            self.read_dictionary()?;
        }
        self.room.resize(0).map_err(TableError::Memory)
    }

    fn take_blocks(&mut self, bytes: u64) -> Option<Box<dyn Table>> {
        let batches = &mut self.index.as_mut()?.batches;
        let count = blocks_within(batches.iter().map(|(_, bytes)| *bytes), bytes);
        let batches: VecDeque<_> = batches.drain(..count.min(batches.len())).collect();
        (!batches.is_empty()).then(|| Box::new(self.of_batches(batches)) as _)
    }
}

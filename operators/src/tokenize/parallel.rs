//! The operator of a stage with several threads: kernels cut parts side by side, and collect makes
//! the rows in the order of the parts.

use std::marker::PhantomData;
use std::mem;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Fragment, Load, NamedInputs, OperatorError, Output};
use trommel_kernels::cuda::NoDevice;

use super::cut::{Cut, Piece, RowMaker, TextPart, TextParts};
use crate::shared::tokens::TextPosition;
use crate::wave::{
    self, Consumer, Device, Estimate, Filled, Kernel, NoFlights, Producer, Taken, Target, Wave,
    WaveChunk,
};

/// Maximum number of kernels. More kernels would wait, because reading texts and making rows take
/// longer than an eighth of the cutting.
const KERNELS_MAX: usize = 8;

/// Approximate maximum bytes of the pieces that a kernel makes of a part. If the pieces of a part
/// are larger, such as those of long q-grams, collect makes the rest, one piece at a time.
const PIECES_BYTES: usize = 1 << 22;

/// Nanoseconds for which a kernel cuts a byte of text.
const NS_PER_BYTE: f64 = 2.0;

/// An operator with kernels that `cut` makes, for two `threads` or more.
pub(super) fn operator<C: Cut>(
    parts: TextParts,
    cut: impl Fn() -> C,
    threads: usize,
    rows: impl RowMaker<Piece = C::Piece>,
    outputs: Vec<SchemaRef>,
) -> Fragment {
    let kernels = threads.min(KERNELS_MAX);
    let wave = Wave::new(Device::Cpu, Wave::chunks_of(kernels, 0), PIECES_BYTES);
    let collect = CollectRows { cut: cut(), rows, next: 0, at: TextPosition::default() };
    let kernels = (0..kernels).map(|_| CutKernel(cut())).collect();
    let parts = PartProducer { parts, pieces: PhantomData };
    wave::parallel(parts, kernels, collect, PartChunk::new, wave, outputs)
}

/// A part, and the first pieces of the part.
struct PartChunk<P> {
    part: Option<TextPart>,
    /// Pieces, each with the position at which the next piece begins.
    pieces: Vec<(P, TextPosition)>,
    pieces_bytes: usize,
}

impl<P> PartChunk<P> {
    fn new() -> Self {
        Self { part: None, pieces: Vec::new(), pieces_bytes: 0 }
    }

    fn part(&self) -> &TextPart {
        self.part.as_ref().expect("a chunk in the wave has a part")
    }
}

/// Bytes of the texts of a part.
fn text_bytes(part: &TextPart) -> usize {
    let ends = part.texts.value_offsets();
    usize::try_from(ends[ends.len() - 1] - ends[0]).expect("ends ascend")
}

impl<P: Piece> WaveChunk for PartChunk<P> {
    fn items(&self) -> usize {
        self.part.as_ref().map_or(0, |part| part.records.num_rows())
    }

    fn bytes(&self) -> usize {
        self.part.as_ref().map_or(0, text_bytes) + self.pieces_bytes
    }

    fn clear(&mut self, _bytes_max: usize) {
        *self = Self { pieces: mem::take(&mut self.pieces), ..Self::new() };
        self.pieces.clear();
    }

    fn estimate(&self) -> Estimate {
        Estimate::on_cpu(NS_PER_BYTE * text_bytes(self.part()) as f64)
    }

    fn target(&self) -> Target {
        Target::Cpu
    }

    fn release(&mut self) {
        self.clear(0);
    }
}

/// PREPARE: a part a chunk.
struct PartProducer<P> {
    parts: TextParts,
    pieces: PhantomData<fn() -> P>,
}

impl<P: Piece> Producer for PartProducer<P> {
    type Chunk = PartChunk<P>;

    fn take(&mut self, _port: usize, batch: Payload) -> Result<(), OperatorError> {
        self.parts.take(batch.into_records())?;
        Ok(())
    }

    fn take_rejected(&mut self) -> Option<RecordBatch> {
        self.parts.take_rejected()
    }

    fn fill(&mut self, chunk: &mut PartChunk<P>) -> Result<Filled, OperatorError> {
        chunk.part = self.parts.next()?;
        Ok(if chunk.part.is_some() { Filled::Chunk } else { Filled::Nothing })
    }

    fn counters(&self) -> Counters {
        self.parts.bad().counters()
    }

    fn named_inputs(&self) -> NamedInputs {
        self.parts.bad().named()
    }
}

/// KERNEL: cuts a part, until its pieces take [`PIECES_BYTES`].
struct CutKernel<C>(C);

impl<C: Cut> Kernel for CutKernel<C> {
    const NAME: &'static str = "cut";
    type Chunk = PartChunk<C::Piece>;
    type OnDevice = NoFlights<Self::Chunk>;

    fn load(&self) -> Load {
        Load::Worker
    }

    fn run(&mut self, chunk: &mut Self::Chunk) {
        let PartChunk { part, pieces, pieces_bytes } = chunk;
        let part = part.as_ref().expect("a chunk in the wave has a part");
        let mut from = TextPosition::default();
        while from.row < part.records.num_rows() && *pieces_bytes < PIECES_BYTES {
            let (piece, next) = self.0.cut(part, from);
            *pieces_bytes += piece.bytes();
            pieces.push((piece, next));
            from = next;
        }
    }

    fn open(&mut self, _first: Option<&Self::Chunk>) -> Result<Self::OnDevice, NoDevice> {
        Err(NoDevice::NoDriver)
    }
}

/// COLLECT: makes rows of the pieces of a chunk, then cuts the rest of the part, for which the
/// chunk had no room.
struct CollectRows<C, R> {
    cut: C,
    rows: R,
    /// Number of pieces of the chunk whose rows have been sent, and the position at which these
    /// pieces end.
    next: usize,
    at: TextPosition,
}

impl<C: Cut, R: RowMaker<Piece = C::Piece>> Consumer for CollectRows<C, R> {
    type Chunk = PartChunk<C::Piece>;

    fn take(&mut self, chunk: &Self::Chunk, out: &mut Output) -> Result<Taken, OperatorError> {
        let (part, from) = (chunk.part(), self.at);
        let mut send = |piece: &C::Piece, next: TextPosition| {
            self.at = next;
            self.rows.send(piece, part, from.row..next.row, out)
        };
        match chunk.pieces.get(self.next) {
            Some((piece, next)) => send(piece, *next)?,
            None => {
                let (piece, next) = self.cut.cut(part, from);
                send(&piece, next)?;
            }
        }
        self.next += 1;
        if self.at.row < part.records.num_rows() {
            return Ok(Taken::Some);
        }
        (self.next, self.at) = (0, TextPosition::default());
        Ok(Taken::All)
    }

    fn counters(&self) -> Counters {
        self.rows.counters()
    }
}

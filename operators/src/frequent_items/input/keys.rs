//! The keys of texts, computed on another core than the counts.
//!
//! ```text
//! batch ──► KeyPart ── items, and keys if other batches wait ──► KeyedCounting ──► rows
//!              ▲                                                      │
//!              └──────── vector of keys, when a batch is counted ─────┘
//! ```
//!
//! The hashes of long texts are up to a fourth of the counter's work. `KeyPart` computes the keys
//! of a batch when earlier batches wait, because the counter is then the slower part. When no batch
//! waits, `KeyPart` sends the batch at once, and the counter computes the keys. Counts do not
//! depend on the part that computes them.

use std::time::Instant;

use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::operator::{
    Counters, Ending, Flow, NamedInputs, Operator, OperatorError, Output,
};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response};

use super::columns::{Input, Observations};
use crate::frequent_items::counting::state::{Counter, Tally};
use crate::frequent_items::rows::questions::{STATE_QUERIES, check};
use crate::shared::items::{Column, Items};

/// Maximum items of a batch whose keys are made here: no limit counts the memory of keys on their
/// way back.
const KEYS_MAX: usize = 1 << 14;

/// A batch on its way to the counter.
struct Batch<Key> {
    observations: Observations,
    keys: Option<Vec<Key>>,
}

/// Sends batches to the counter, with keys if earlier batches wait at the counter.
pub(crate) struct KeyPart<K: Column> {
    input: Input,
    /// Secret of the counter.
    secret: K::Secret,
    /// Number of batches that have not been counted.
    waiting: usize,
    /// Vectors for keys that have returned.
    rooms: Vec<Vec<K::Key>>,
}

impl<K: Column> KeyPart<K> {
    /// A part for `input`; `secret` is the secret of the summary that counts.
    pub(crate) fn new(input: Input, secret: K::Secret) -> Self {
        Self { input, secret, waiting: 0, rooms: Vec::new() }
    }

    fn keys(&mut self, items: &K::Batch) -> Vec<K::Key> {
        let mut room = self.rooms.pop().unwrap_or_default();
        let made = items.keys(0..items.len(), &self.secret, &mut room).len();
        assert_eq!(room.len(), made, "a column does not hold the keys of its items");
        room
    }
}

impl<K: Column> Operator for KeyPart<K> {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let observations = self.input.read(&input.into_records(), out)?;
        let len = observations.items.len();
        let makes_keys = self.waiting > 0 && len <= KEYS_MAX;
        let keys = makes_keys.then(|| self.keys(K::lend(observations.items.as_ref())));
        let bytes = keys.as_ref().map_or(0, |keys| size_of_val(&keys[..]));
        let bytes = observations.bytes() + bytes;
        self.waiting += 1;
        out.send_chunk(Chunk::new(Batch::<K::Key> { observations, keys }, len, bytes));
        Ok(Flow::NeedInput)
    }

    fn takes_replies(&self) -> bool {
        true
    }

    fn reply(&mut self, reply: Chunk, _: &mut Output) -> Result<Flow, OperatorError> {
        self.waiting -= 1;
        self.rooms.extend(reply.into_value::<Option<Vec<K::Key>>>());
        Ok(Flow::NeedInput)
    }

    fn queries(&self) -> &'static [&'static str] {
        STATE_QUERIES
    }

    fn query(
        &self,
        request: &Request,
        _payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        check::<K>(request, self.input.item_type())?;
        Ok(Response::Forward(Box::new(())))
    }

    fn named_inputs(&self) -> NamedInputs {
        self.input.named()
    }

    fn counters(&self) -> Counters {
        self.input.counters()
    }
}

/// Counts the batches of a [`KeyPart`].
pub(crate) struct KeyedCounting<K, T>(pub(crate) Counter<K, T>);

impl<K: Column, T: Tally<K>> Operator for KeyedCounting<K, T> {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let Batch { observations, keys } = input.into_value::<Batch<K::Key>>();
        let flow = self.0.count(&observations, keys.as_deref(), out)?;
        let bytes = keys.as_ref().map_or(0, |keys| size_of_val(&keys[..]));
        out.send_reply(Chunk::new(keys, 0, bytes));
        Ok(flow)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.0.advance(out))
    }

    fn wake_at(&self) -> Option<Instant> {
        self.0.wake_at()
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.0.wake(now, out))
    }

    fn port_ended(&mut self, _port: usize, ending: Ending) {
        self.0.input_ended(ending);
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.0.finish(out))
    }

    /// Rows that wait to leave change no count.
    fn can_answer(&self) -> bool {
        true
    }

    fn query(
        &self,
        request: &Request,
        _payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        self.0.answer(request)
    }

    fn counters(&self) -> Counters {
        self.0.counters()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use arrow_schema::DataType;
    use trommel_engine::batch::{Batch as EngineBatch, Origin};
    use trommel_engine::memory::MemoryBudget;
    use trommel_kernels::Isa;

    use super::*;
    use crate::frequent_items::counting::memory::StateMemory;
    use crate::frequent_items::counting::state::Counting;
    use crate::frequent_items::rows::batches::Saving;
    use crate::frequent_items::rows::emission::Emission;
    use crate::frequent_items::rows::questions::Report;
    use crate::shared::items::Text;
    use crate::shared::share::Share;
    use crate::summary::{Sieve, Summary};

    /// Words, and lines that are too long to be their own keys.
    fn batch(begin: u32) -> Payload {
        let text = |number: u32| match number % 3 {
            0 => "a line that is longer than a key ".repeat(1 + number as usize % 5),
            _ => format!("word {}", number % 40),
        };
        let column: ArrayRef =
            Arc::new(StringArray::from_iter_values((begin..begin + 500).map(text)));
        let records = RecordBatch::try_from_iter([("item", column)]).unwrap();
        Payload::Batch(EngineBatch {
            records,
            origin: Origin { sequence: 0, entered: Instant::now() },
        })
    }

    fn counter(sieve: &Sieve<Text>) -> Counter<Text, Sieve<Text>> {
        let report = Report { n: usize::MAX, share: Share::default() };
        let memory = StateMemory::new(&MemoryBudget::of_process(), 0).unwrap();
        Counter::new(
            sieve.clone(),
            &DataType::Utf8,
            Emission::new(report, None, None),
            Saving::default(),
            memory,
        )
    }

    fn rows(counting: &mut impl Operator) -> Vec<RecordBatch> {
        let mut out = Output::new();
        counting.finish(&mut out).unwrap();
        out.drain_sent().map(|(_, sent)| sent.into_records()).collect()
    }

    #[test]
    fn batches_have_keys_while_others_wait_and_counts_are_the_same() {
        let sieve = Sieve::<Text>::new(Isa::Scalar, 20).unwrap();
        let input = Input::of_column(DataType::Utf8);
        let mut keys = KeyPart::<Text>::new(input.clone(), *sieve.key_secret().unwrap());
        let mut keyed = KeyedCounting(counter(&sieve));
        let mut alone = Counting::new(input, counter(&sieve));
        let (mut sent, mut counted) = (Output::new(), Output::new());
        for (round, waiting) in [1, 3, 1, 2, 8].into_iter().enumerate() {
            let first = 10_000 * u32::try_from(round).unwrap();
            for number in 0..waiting {
                keys.process(0, batch(first + number), &mut sent).unwrap();
                alone.process(0, batch(first + number), &mut counted).unwrap();
            }
            for (number, (_, chunk)) in sent.drain_sent().enumerate() {
                let chunk = chunk.into_value::<Batch<[u64; 2]>>();
                assert_eq!(chunk.keys.is_some(), number > 0);
                let chunk = Payload::Chunk(Chunk::new(chunk, 500, 0));
                keyed.process(0, chunk, &mut counted).unwrap();
            }
            for reply in counted.drain_replies() {
                keys.reply(reply, &mut sent).unwrap();
            }
            assert_eq!(keys.waiting, 0);
        }
        assert_eq!(rows(&mut keyed), rows(&mut alone));
    }

    #[test]
    fn valid_queries_are_sent_on_and_answered_by_the_counter() {
        let sieve = Sieve::<Text>::new(Isa::Scalar, 20).unwrap();
        let input = Input::of_column(DataType::Utf8);
        let keys = KeyPart::<Text>::new(input, *sieve.key_secret().unwrap());
        let keyed = KeyedCounting(counter(&sieve));
        for request in [Request::new("top").with("n", 3), Request::new("snapshot")] {
            let Ok(Response::Forward(payload)) = keys.query(&request, None) else {
                panic!("{} is not sent on", request.name());
            };
            assert!(keyed.query(&request, Some(payload)).unwrap().compute().is_ok());
        }
        assert!(keys.query(&Request::new("top").with("m", 3), None).is_err());
    }
}

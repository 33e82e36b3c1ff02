//! Lists that batches bring to a device, for segments that find no room in its memory.
//!
//! Each list that a batch needs is sent once for the batch. Queries of a bucket have shortest lists
//! of similar lengths, and real queries share their frequent terms: the larger a batch is, the
//! fewer bytes are sent for each query.

use trommel_kernels::inverted::{ListNamer, QueryBatch};

use super::resident::are_resident;
use crate::conjunctive_query::data::index::Index;
use crate::conjunctive_query::plan::limits::Room;
use crate::conjunctive_query::plan::queries::QueryBlock;

/// Looks up the lists of batches; the next batch uses the same memory.
#[derive(Debug, Default)]
pub(crate) struct ListBytes {
    namer: ListNamer,
    local: Vec<u32>,
}

impl ListBytes {
    /// Bytes of the lists that a batch sends, cut into parts that have room; `None` if the lists of
    /// a single query have no room.
    pub(crate) fn of(&mut self, index: &Index, queries: &QueryBlock, room: Room) -> Option<usize> {
        let mut bytes = 0;
        for (segment, is_resident) in are_resident(index, room.index_bytes) {
            if is_resident {
                continue;
            }
            let all = queries.terms();
            segment.find_terms(all.terms, &mut self.local);
            let mut offsets = all.offsets;
            while offsets.len() > 1 {
                let batch = QueryBatch::new(offsets, &self.local);
                let lists = self.namer.name(&segment.lists, batch, room.list_words);
                let named = lists.queries().len();
                if named == 0 {
                    return None;
                }
                bytes += lists.words() * size_of::<u32>();
                offsets = &offsets[named..];
            }
        }
        Some(bytes)
    }
}

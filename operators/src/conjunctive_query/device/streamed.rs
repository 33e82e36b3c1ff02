//! Lists that batches bring to a device, for segments that find no room in its memory.
//!
//! Each list of a batch goes once. Queries of a bucket have shortest lists of similar lengths, and
//! real queries share their frequent terms: the larger a batch, the fewer bytes a query brings.

use trommel_kernels::inverted::{ListNamer, QueryBatch};

use super::resident::are_resident;
use crate::conjunctive_query::data::index::Index;
use crate::conjunctive_query::plan::limits::Room;
use crate::conjunctive_query::plan::queries::QueryBlock;

/// Looks up the lists of batches; memory is used again by the next one.
#[derive(Debug, Default)]
pub(crate) struct ListBytes {
    namer: ListNamer,
    local: Vec<u32>,
}

impl ListBytes {
    /// Bytes of the lists that a batch brings along, cut into parts that have room; `None` if the
    /// lists of a single query have none.
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

//! Cache of the sets on a device, so that each set is sent once.

use std::collections::VecDeque;
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::cuda::{DeviceError, DeviceSets, Memory};
use trommel_kernels::sets::SetStore;
use trommel_kernels::signatures::words_for_mean_size;

/// The sets of a chunk on the device.
#[derive(Debug)]
pub(crate) struct UploadedSets {
    /// Sets of the probes and of the candidates; can be the same.
    pub(crate) sets: [Arc<DeviceSets>; 2],
    /// Bytes that were sent for them.
    pub(crate) bytes: u64,
}

/// An entry of the cache.
#[derive(Debug)]
struct CachedSets {
    bytes: usize,
    sets: Arc<DeviceSets>,
}

impl CachedSets {
    /// Whether the entry can be evicted: neither a chunk in flight nor the next chunk, which
    /// needs the sets `wanted`, uses it.
    fn is_free(&self, wanted: [&SetStore; 2]) -> bool {
        let is_wanted = wanted.iter().any(|sets| self.sets.is_copy_of(sets));
        !is_wanted && Arc::strong_count(&self.sets) == 1
    }
}

/// A cache of sets in device memory, limited in bytes. The least recently used sets are evicted
/// first.
#[derive(Debug)]
pub(crate) struct DeviceSetCache {
    bytes_max: usize,
    /// Instruction set that computes signatures.
    isa: Isa,
    /// Words of the signatures that are sent with sets: 0 if the kernel reads none. `None` until
    /// the mean size of the first sets decides.
    words: Option<usize>,
    /// From the least to the most recently used.
    cached: VecDeque<CachedSets>,
}

impl DeviceSetCache {
    pub(crate) fn new(bytes_max: usize, is_signed: bool, isa: Isa) -> Self {
        let words = if is_signed { None } else { Some(0) };
        Self { bytes_max, isa, words, cached: VecDeque::new() }
    }

    /// Words of a signature, if these are the first sets.
    fn words(&self, wanted: [&SetStore; 2]) -> usize {
        let [_, candidates] = wanted.map(SetStore::as_sets);
        let mean_size = candidates.tokens().len() / candidates.len().max(1);
        self.words.unwrap_or(words_for_mean_size(mean_size))
    }

    /// Whether the sets `wanted` are cached, or fit beside the sets that chunks in flight use.
    pub(crate) fn has_room(&self, wanted: [&SetStore; 2]) -> bool {
        let words = self.words(wanted);
        let [probes, candidates] = wanted.map(|sets| self.bytes_to_send(sets, words));
        let is_same = wanted[0].version() == wanted[1].version();
        let bytes = if is_same { probes } else { probes + candidates };
        let kept = self.cached.iter().filter(|there| !there.is_free(wanted));
        let kept: usize = kept.map(|there| there.bytes).sum();
        kept + bytes <= self.bytes_max
    }

    /// Bytes of `sets`; 0 if they are cached.
    fn bytes_to_send(&self, sets: &SetStore, words: usize) -> usize {
        let is_there = self.cached.iter().any(|there| there.sets.is_copy_of(sets));
        if is_there { 0 } else { DeviceSets::bytes_of(sets.as_sets(), words) }
    }

    /// Sends the sets `wanted` as far as they are not cached.
    ///
    /// # Errors
    /// If they do not fit, or the device fails.
    pub(crate) fn send(
        &mut self,
        memory: &Arc<Memory>,
        wanted: [&SetStore; 2],
    ) -> Result<UploadedSets, DeviceError> {
        let words = self.words(wanted);
        self.words = Some(words);
        let mut bytes = 0;
        for sets in wanted {
            let place = self.cached.iter().position(|there| there.sets.is_copy_of(sets));
            let cached = match place.and_then(|place| self.cached.remove(place)) {
                Some(cached) => cached,
                None => {
                    let needed = DeviceSets::bytes_of(sets.as_sets(), words);
                    self.make_room(needed, wanted);
                    bytes += needed;
                    let sets = DeviceSets::upload_signed(memory, sets, self.isa, words)?;
                    CachedSets { bytes: needed, sets }
                }
            };
            self.cached.push_back(cached);
        }
        let sets = wanted.map(|sets| {
            let there = self.cached.iter().find(|there| there.sets.is_copy_of(sets));
            Arc::clone(&there.expect("it has been sent").sets)
        });
        Ok(UploadedSets { sets, bytes: bytes as u64 })
    }

    /// Evicts sets until `bytes` bytes are free, or none is left that can be evicted.
    fn make_room(&mut self, bytes: usize, wanted: [&SetStore; 2]) {
        let mut used: usize = self.cached.iter().map(|there| there.bytes).sum();
        self.cached.retain(|there| {
            let stays = used + bytes <= self.bytes_max || !there.is_free(wanted);
            used -= if stays { 0 } else { there.bytes };
            stays
        });
    }
}

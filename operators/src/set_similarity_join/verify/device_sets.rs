//! The sets that a device has, so that they are sent once.

use std::collections::VecDeque;
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::cuda::{DeviceError, DeviceSets, Memory};
use trommel_kernels::sets::SetStore;
use trommel_kernels::signatures::words_for_mean_size;

/// The sets of a chunk on the device.
#[derive(Debug)]
pub(crate) struct UploadedSets {
    /// Those of the probes and those of the candidates; perhaps the same ones.
    pub(crate) sets: [Arc<DeviceSets>; 2],
    /// Bytes that had to be sent.
    pub(crate) bytes: u64,
}

/// Sets that are there.
#[derive(Debug)]
struct CachedSets {
    bytes: usize,
    sets: Arc<DeviceSets>,
}

impl CachedSets {
    /// Whether they may be dropped: no chunk in flight needs them, nor the next one.
    fn is_free(&self, wanted: [&SetStore; 2]) -> bool {
        let is_wanted = wanted.iter().any(|sets| self.sets.are_of(sets));
        !is_wanted && Arc::strong_count(&self.sets) == 1
    }
}

/// Sets on a device within a number of bytes: when others need the room, those go first that have
/// not been used for the longest time.
#[derive(Debug)]
pub(crate) struct DeviceSetCache {
    bytes_max: usize,
    /// By which level signatures are made.
    isa: Isa,
    /// Words of the signatures that are sent along: 0 if nobody reads them, else chosen by the size
    /// of the first sets.
    words: Option<usize>,
    /// In the order in which they were used.
    cached: VecDeque<CachedSets>,
}

impl DeviceSetCache {
    pub(crate) fn new(bytes_max: usize, is_signed: bool, isa: Isa) -> Self {
        let words = if is_signed { None } else { Some(0) };
        Self { bytes_max, isa, words, cached: VecDeque::new() }
    }

    /// Words of a signature, now that there are sets.
    fn words(&self, wanted: [&SetStore; 2]) -> usize {
        let [_, candidates] = wanted.map(SetStore::as_sets);
        let mean_size = candidates.tokens().len() / candidates.len().max(1);
        self.words.unwrap_or(words_for_mean_size(mean_size))
    }

    /// Whether these sets are there, or fit beside those that chunks in flight need.
    pub(crate) fn has_room(&self, wanted: [&SetStore; 2]) -> bool {
        let words = self.words(wanted);
        let [probes, candidates] = wanted.map(|sets| self.bytes_to_send(sets, words));
        let is_same = wanted[0].version() == wanted[1].version();
        let bytes = if is_same { probes } else { probes + candidates };
        let kept = self.cached.iter().filter(|there| !there.is_free(wanted));
        let kept: usize = kept.map(|there| there.bytes).sum();
        kept + bytes <= self.bytes_max
    }

    /// Bytes of these sets, unless they are there.
    fn bytes_to_send(&self, sets: &SetStore, words: usize) -> usize {
        let is_there = self.cached.iter().any(|there| there.sets.are_of(sets));
        if is_there { 0 } else { DeviceSets::bytes_of(sets.as_sets(), words) }
    }

    /// Sends the sets that are not there.
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
            let place = self.cached.iter().position(|there| there.sets.are_of(sets));
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
            let there = self.cached.iter().find(|there| there.sets.are_of(sets));
            Arc::clone(&there.expect("it has been sent").sets)
        });
        Ok(UploadedSets { sets, bytes: bytes as u64 })
    }

    /// Drops sets until there is room for so many bytes, or none is left that may be dropped.
    fn make_room(&mut self, bytes: usize, wanted: [&SetStore; 2]) {
        let mut used: usize = self.cached.iter().map(|there| there.bytes).sum();
        self.cached.retain(|there| {
            let stays = used + bytes <= self.bytes_max || !there.is_free(wanted);
            used -= if stays { 0 } else { there.bytes };
            stays
        });
    }
}

//! Sets in the memory of a device, so that each set is sent once.

use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::cuda::{DeviceError, DeviceSets, Memory};
use trommel_kernels::sets::SetStore;
use trommel_kernels::signatures::words_for_mean_size;

use crate::wave::{Resident, Wanted};

/// The sets of a chunk on the device.
#[derive(Debug)]
pub(crate) struct UploadedSets {
    /// Sets of the probes and of the candidates; both can be the same sets.
    pub(crate) sets: [Arc<DeviceSets>; 2],
    /// Bytes that were sent for these sets.
    pub(crate) bytes: u64,
}

/// Sets in device memory, limited in bytes.
#[derive(Debug)]
pub(crate) struct DeviceSetCache {
    /// Instruction set that computes signatures.
    isa: Isa,
    /// Words of the signatures that are sent with sets: 0 if the kernel reads no signatures; `None`
    /// until the mean size of the first sets decides.
    words: Option<usize>,
    /// The sets, by their versions.
    sets: Resident<u64, DeviceSets>,
}

impl DeviceSetCache {
    pub(crate) fn new(bytes_max: usize, is_signed: bool, isa: Isa) -> Self {
        let words = if is_signed { None } else { Some(0) };
        Self { isa, words, sets: Resident::new(bytes_max) }
    }

    /// Words of a signature, if these are the first sets.
    fn words(&self, [_, candidates]: [&SetStore; 2]) -> usize {
        let candidates = candidates.as_sets();
        let mean_size = candidates.tokens().len() / candidates.len().max(1);
        self.words.unwrap_or(words_for_mean_size(mean_size))
    }

    /// The sets `stores`; only one entry if both are the same sets.
    fn wanted(&self, stores: [&SetStore; 2]) -> Vec<Wanted<u64>> {
        let words = self.words(stores);
        let of = |sets: &SetStore| Wanted {
            key: sets.version(),
            bytes: DeviceSets::bytes_of(sets.as_sets(), words),
        };
        let mut wanted = stores.map(of).to_vec();
        wanted.dedup_by_key(|one| one.key);
        wanted
    }

    /// Whether the sets `stores` are on the device, or fit in addition to the sets that chunks in
    /// flight use.
    pub(crate) fn has_room(&self, stores: [&SetStore; 2]) -> bool {
        self.sets.has_room(&self.wanted(stores))
    }

    /// Sends the sets of `stores` that are not on the device.
    ///
    /// # Errors
    /// If the sets do not fit, or the device fails.
    pub(crate) fn send(
        &mut self,
        memory: &Arc<Memory>,
        stores: [&SetStore; 2],
    ) -> Result<UploadedSets, DeviceError> {
        let (words, isa) = (self.words(stores), self.isa);
        self.words = Some(words);
        let (sets, bytes) = self.sets.hold(self.wanted(stores), |version, used| {
            // Frees the memory of the evicted sets first.
            drop(used);
            let store = stores.into_iter().find(|store| store.version() == *version);
            let store = store.expect("the version of one of them");
            let bytes = DeviceSets::bytes_of(store.as_sets(), words);
            Ok((DeviceSets::upload_signed(memory, store, isa, words)?, bytes as u64))
        })?;
        let [first, last] = [&sets[0], &sets[sets.len() - 1]];
        Ok(UploadedSets { sets: [first, last].map(Arc::clone), bytes })
    }
}

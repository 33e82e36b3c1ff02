//! The front half of a filter in a snapshot.

use trommel_kernels::Isa;

use super::FilterFront;
use crate::shared::items::StoredItem;
use crate::shared::state::{Reader, RestoreError, Writer};
use crate::summary::counted::Counted;
use crate::summary::space_saving::SpaceSaving;

/// A count and an error; items take more.
const BIN_BYTES: usize = 16;

impl<K: StoredItem> FilterFront<K> {
    /// Between exchanges.
    pub(in crate::summary) fn write(&self, writer: &mut Writer) {
        writer.len(self.bins_max);
        writer.u64(self.observed);
        writer.u128(self.forwarded);
        writer.u128(self.forwarded_end);
        writer.len(self.counts.len());
        self.iter().for_each(|counted| counted.write(writer));
    }

    /// Reads all fields after the number of bins; [`Self::complete`] has to follow.
    pub(in crate::summary) fn read(
        reader: &mut Reader<'_>,
        isa: Isa,
        bins: usize,
        secret: K::Secret,
    ) -> Result<Self, RestoreError> {
        let mut front = Self::new(isa, bins, 1, secret);
        front.observed = reader.u64("the weight")?;
        front.forwarded = reader.u128("the forwarded weight")?;
        front.forwarded_end = reader.u128("the limit of the forwarded weight")?;
        for _ in 0..reader.len("the number of items in bins", bins, BIN_BYTES)? {
            let counted = Counted::<K>::read(reader)?;
            if front.estimate(counted.item.borrowed()).is_some() {
                return Err(reader.refuse("an item in a bin", "there twice", "different items"));
            }
            front.push(counted);
        }
        Ok(front)
    }

    /// Checks the fields that depend on the back half.
    pub(in crate::summary) fn complete(
        mut self,
        reader: &Reader<'_>,
        back: &SpaceSaving<K>,
    ) -> Result<Self, RestoreError> {
        self.back_counters = back.counters() as u64;
        if self.iter().any(|counted| back.estimate(counted.item.borrowed()).is_some()) {
            return Err(reader.refuse("an item in a bin", "in the counters too", "one place"));
        }
        let forwarded_least: u128 = back.iter().map(|counted| u128::from(counted.count)).sum();
        if self.forwarded < forwarded_least && self.observed != u64::MAX {
            let expected =
                format_args!("at least {forwarded_least}, the sum of the counters").to_string();
            return Err(reader.refuse("the forwarded weight", self.forwarded, expected));
        }
        // Counts below 2^64 and fewer than 2^27 counters.
        let forwarded_max = u128::from(u64::MAX) << 27;
        reader.check("the forwarded weight", self.forwarded, &(0..=forwarded_max))?;
        let end_max = (u128::from(self.count_min()) + 1) * u128::from(self.back_counters);
        let name = "the limit of the forwarded weight";
        reader.check(name, self.forwarded_end, &(0..=end_max))?;
        Ok(self)
    }
}

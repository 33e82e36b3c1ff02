//! Data that stays in the memory of a device.
//!
//! Data is sent when work first needs that data, and stays for later work. When other data needs
//! the room, the data that was used longest ago is evicted, unless a flight still uses that data.

use std::sync::Arc;

use trommel_kernels::cuda::DeviceError;

/// Values on a device by their keys, within a number of bytes.
#[derive(Debug)]
pub(crate) struct Resident<K, V> {
    bytes_max: usize,
    /// Entries, from the least to the most recently used.
    entries: Vec<ResidentEntry<K, V>>,
}

#[derive(Debug)]
struct ResidentEntry<K, V> {
    key: K,
    bytes: usize,
    /// Flights hold clones.
    value: Arc<V>,
}

impl<K, V> ResidentEntry<K, V> {
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.value) == 1
    }
}

/// Data that work needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<K> {
    pub(crate) key: K,
    /// Bytes in the memory of the device.
    pub(crate) bytes: usize,
}

impl<K: PartialEq, V> Resident<K, V> {
    /// Room for `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, entries: Vec::new() }
    }

    /// Room for one value, of any size. `Wanted` values have 1 byte.
    pub(crate) fn one() -> Self {
        Self::new(1)
    }

    /// Drops the values whose keys are not kept. A value that a flight uses stays alive until the
    /// flight ends.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&K) -> bool) {
        self.entries.retain(|entry| is_kept(&entry.key));
    }

    /// Whether all of `wanted`, whose keys differ, are resident or have room next to the data in
    /// flight. Without data in flight, `wanted` has room if its sum of bytes is within the limit.
    pub(crate) fn has_room(&self, wanted: &[Wanted<K>]) -> bool {
        let is_wanted =
            |entry: &&ResidentEntry<K, V>| wanted.iter().any(|one| one.key == entry.key);
        let stay = self.entries.iter().filter(|entry| is_wanted(entry) || !entry.is_idle());
        let stay: usize = stay.map(|entry| entry.bytes).sum();
        let is_missing = |one: &&Wanted<K>| self.entries.iter().all(|entry| entry.key != one.key);
        let missing: usize = wanted.iter().filter(is_missing).map(|one| one.bytes).sum();
        stay.saturating_add(missing) <= self.bytes_max
    }

    /// The values of `wanted`, in their order, and the bytes that were sent for missing values.
    /// `send` makes a missing value. If exactly one value was evicted for the missing value, `send`
    /// gets the evicted value and can reuse its memory.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn hold(
        &mut self,
        wanted: Vec<Wanted<K>>,
        mut send: impl FnMut(&K, Option<V>) -> Result<(Arc<V>, u64), DeviceError>,
    ) -> Result<(Vec<Arc<V>>, u64), DeviceError> {
        // All resident values are held before the first value is sent, so that no wanted value is
        // evicted for another wanted value.
        let mut held: Vec<_> = wanted.iter().map(|one| self.find(&one.key)).collect();
        let mut sent_bytes = 0;
        for (held, Wanted { key, bytes }) in held.iter_mut().zip(wanted) {
            if held.is_none() {
                let used = self.make_room(bytes);
                let (value, sent) = send(&key, used)?;
                sent_bytes += sent;
                *held = Some(Arc::clone(&value));
                self.entries.push(ResidentEntry { key, bytes, value });
            }
        }
        Ok((held.into_iter().flatten().collect(), sent_bytes))
    }

    /// A resident value, which becomes the most recently used value.
    fn find(&mut self, key: &K) -> Option<Arc<V>> {
        let place = self.entries.iter().position(|entry| entry.key == *key)?;
        self.entries[place..].rotate_left(1);
        self.entries.last().map(|entry| Arc::clone(&entry.value))
    }

    /// Evicts idle values until there is room for `bytes`; returns the evicted value if exactly one
    /// value was evicted.
    fn make_room(&mut self, bytes: usize) -> Option<V> {
        let used = |entries: &[ResidentEntry<K, V>]| {
            entries.iter().map(|entry| entry.bytes).sum::<usize>()
        };
        let mut left = Vec::new();
        while used(&self.entries).saturating_add(bytes) > self.bytes_max
            && let Some(oldest) = self.entries.iter().position(ResidentEntry::is_idle)
        {
            left.extend(Arc::into_inner(self.entries.remove(oldest).value));
        }
        if left.len() == 1 { left.pop() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of `wanted`; each value is its key. The string lists each key that is sent,
    /// followed by the evicted value that `send` got.
    fn hold(
        resident: &mut Resident<char, char>,
        wanted: &[(char, usize)],
    ) -> (Vec<Arc<char>>, String) {
        let (mut told, mut sends) = (String::new(), 0);
        let (held, sent) = resident
            .hold(all(wanted), |&key, used| {
                told.extend([key].into_iter().chain(used));
                sends += 1;
                Ok((Arc::new(key), 1))
            })
            .unwrap();
        assert!(held.iter().map(|value| **value).eq(wanted.iter().map(|(key, _)| *key)));
        assert_eq!(sent, sends, "a byte each");
        (held, told)
    }

    fn all(wanted: &[(char, usize)]) -> Vec<Wanted<char>> {
        wanted.iter().map(|&(key, bytes)| Wanted { key, bytes }).collect()
    }

    #[test]
    fn the_value_that_was_used_longest_ago_gives_way() {
        let mut resident = Resident::new(10);
        assert_eq!(hold(&mut resident, &[('a', 4), ('b', 4)]).1, "ab");
        assert_eq!(hold(&mut resident, &[('a', 4)]).1, "");
        assert_eq!(hold(&mut resident, &[('c', 4)]).1, "cb", "made of `b`");
        assert_eq!(hold(&mut resident, &[('a', 4)]).1, "");
        assert_eq!(hold(&mut resident, &[('d', 10)]).1, "d", "two gave way");
        resident.retain(|key| *key != 'd');
        assert_eq!(hold(&mut resident, &[('e', 10)]).1, "e");
    }

    #[test]
    fn values_in_flight_stay() {
        let mut resident = Resident::new(10);
        let (flying, _) = hold(&mut resident, &[('a', 4)]);
        drop(hold(&mut resident, &[('b', 4)]));
        let has_room = |resident: &Resident<_, _>, wanted| resident.has_room(&all(wanted));
        assert!(has_room(&resident, &[('c', 6)]) && !has_room(&resident, &[('c', 7)]));
        assert!(has_room(&resident, &[('a', 4), ('c', 6)]));
        assert!(!has_room(&resident, &[('b', 4), ('c', 6)]), "`b` is wanted");
        assert_eq!(hold(&mut resident, &[('c', 6)]).1, "cb");
        drop(flying);
        assert!(has_room(&resident, &[('d', 10)]) && !has_room(&resident, &[('d', 11)]));
        let mut one = Resident::one();
        let (flying, _) = hold(&mut one, &[('a', 1)]);
        assert!(has_room(&one, &[('a', 1)]) && !has_room(&one, &[('b', 1)]));
        drop(flying);
        assert_eq!(hold(&mut one, &[('b', 1)]).1, "ba");
    }
}

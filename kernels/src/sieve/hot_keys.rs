//! Keys of the sieve, and the hits of each.

/// The maximum number of keys that a call can take out.
pub const KEYS_MAX: usize = 8;

/// Keys that are taken out of the items.
#[derive(Debug)]
pub struct HotKeys<'a, K> {
    /// 1 to [`KEYS_MAX`] distinct keys.
    pub keys: &'a [K],
    /// For each key the number or weight of the items that equal the key; calls add to these
    /// numbers, saturating.
    pub hits: &'a mut [u64],
}

impl<K> HotKeys<'_, K> {
    /// Panics if the number of keys or of hits is not as stated above.
    pub(super) fn check(&self) {
        let (keys, hits) = (self.keys.len(), self.hits.len());
        assert!(
            (1..=KEYS_MAX).contains(&keys),
            "a sieve takes out 1 to {KEYS_MAX} keys, not {keys}"
        );
        assert!(keys == hits, "{keys} keys need as many numbers of hits, not {hits}");
    }
}

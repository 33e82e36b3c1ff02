//! Keys of the sieve, and the hits of each.

/// The maximum number of keys that a call can take out.
pub const KEYS_MAX: usize = 8;

/// Keys that are taken out of the items.
#[derive(Debug)]
pub struct HotKeys<'a, K> {
    /// 1 to [`KEYS_MAX`] distinct keys.
    pub keys: &'a [K],
    /// Number or weight of the items that equal each key, as many as keys; calls add to it,
    /// saturating.
    pub hits: &'a mut [u64],
}

impl<K> HotKeys<'_, K> {
    /// Panics if there are not as many of both as said above.
    pub(super) fn check(&self) {
        let (keys, hits) = (self.keys.len(), self.hits.len());
        assert!(
            (1..=KEYS_MAX).contains(&keys),
            "a sieve takes out 1 to {KEYS_MAX} keys, not {keys}"
        );
        assert!(keys == hits, "{keys} keys need as many numbers of hits, not {hits}");
    }
}

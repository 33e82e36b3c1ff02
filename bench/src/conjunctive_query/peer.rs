//! A peer of the table of the processor.

use clap::ValueEnum;

/// Name of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PeerName {
    /// The crate roaring.
    Roaring,
    /// The crate croaring, CRoaring in C.
    Croaring,
    /// The crate tantivy, a search engine.
    Tantivy,
}

/// An index of a peer.
pub(super) struct Peer<'a> {
    pub(super) name: &'static str,
    /// Bytes of the index, as it would be stored.
    pub(super) bytes: usize,
    /// Counts the documents of a query.
    pub(super) count: Box<dyn Fn(usize) -> u32 + 'a>,
}

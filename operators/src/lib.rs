//! Sources, sinks and operators of Trommel.
//!
//! Every operator is a plain struct that is also its JSON configuration: build it with its
//! constructor and setters, or fill it from a pipeline file through a [`Registry`]. `bind` checks
//! it against the schemas of its inputs and returns a fragment of a graph. Operators know neither
//! threads nor channels, so tests and programs can also call them directly.
//!
//! | | |
//! | --- | --- |
//! | sources | [`Read`] files and standard input · [`Generate`] synthetic streams · [`Memory`] batches from the program · [`Feed`] batches that another thread hands over |
//! | basic operators | [`Filter`] rows by an expression · [`Select`] columns by expressions · [`Map`] a function over batches · [`Union`] of several streams · [`Tokenize`] text into tokens or sets · [`Aggregate`] rows by groups · [`Clusters`] of pairs · [`Lookup`] of rows in a table |
//! | the papers' operators | [`ConjunctiveQuery`] · [`EpsilonJoin`] · [`FrequentItems`] · [`HeavyFilter`] takes hot items out of a stream · [`SetSimilarityJoin`] · [`FrequentPairs`] |
//! | sinks | [`Write`] files and standard output · [`Discard`] · [`Collect`] into memory · [`ForEach`] a function called with each batch |
#![forbid(unsafe_code)]

mod aggregate;
mod basic;
mod clusters;
pub mod conjunctive_query;
pub mod epsilon_join;
pub mod expressions;
pub mod frequent_items;
pub mod frequent_pairs;
mod heavy_filter;
mod lookup;
pub mod set_similarity_join;
mod shared;
mod sink;
mod source;
pub mod summary;
#[cfg(test)]
mod testing;
mod tokenize;
pub mod wave;

use trommel_engine::registry::Registry;
pub use trommel_kernels::{Isa, cuda};

pub use crate::aggregate::Aggregate;
pub use crate::basic::{Filter, Map, Select, Union};
pub use crate::clusters::{Clusters, Keep};
pub use crate::conjunctive_query::ConjunctiveQuery;
pub use crate::epsilon_join::{EpsilonAlgorithm, EpsilonJoin, EpsilonOutput, VectorWindow};
pub use crate::frequent_items::{Algorithm, Decay, Emit, FrequentItems, Parallel, Window};
pub use crate::frequent_pairs::FrequentPairs;
pub use crate::heavy_filter::HeavyFilter;
pub use crate::lookup::{Duplicates, Lookup, LookupMode};
pub use crate::set_similarity_join::{
    JoinAlgorithm, JoinMode, JoinOutput, JoinWindow, SetSimilarityJoin, Similarity, Threshold,
    VerifyMode,
};
pub use crate::shared::columns::SchemaMismatch;
pub use crate::shared::parameters::Names;
pub use crate::shared::rejected::OnError;
pub use crate::shared::share::{Share, ShareError};
pub use crate::shared::state::MissingState;
pub use crate::shared::{files, items, sets};
pub use crate::sink::{
    Collect, Collected, Discard, ForEach, Rotate, RotateCompression, ValueError, Write, WriteError,
    WriteFormat,
};
pub use crate::source::{
    Feed, FeedError, Feeder, Generate, GenerateKind, Invalid, Memory, NpyError, Read, ReadError,
    ReadFormat, ReadFrom, TableError, VectorDistribution, Zipf, ZipfError,
};
pub use crate::tokenize::{DictionaryFull, Tokenize, TokenizeBy, TokenizeError, TokenizeInto};

/// Registers the operators of this crate that a configuration may name.
pub fn register_all(registry: &mut Registry) {
    registry
        .register::<Read>()
        .register::<Generate>()
        .register::<Tokenize>()
        .register::<FrequentItems>()
        .register::<HeavyFilter>()
        .register::<SetSimilarityJoin>()
        .register::<FrequentPairs>()
        .register::<ConjunctiveQuery>()
        .register::<EpsilonJoin>()
        .register::<Aggregate>()
        .register::<Clusters>()
        .register::<Lookup>()
        .register::<Filter>()
        .register::<Select>()
        .register::<Union>()
        .register::<Write>()
        .register::<Discard>();
}

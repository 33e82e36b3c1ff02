//! Files that bring their columns: Arrow and Parquet.
//!
//! | file | contents |
//! |---|---|
//! | `arrow` | Format `arrow`: the file format and the stream format of Arrow's IPC |
//! | `parquet` | Format `parquet`: row groups one after the other |
//! | `pages` | Headers of the pages of a Parquet file, which are read before the decoder reads the pages |
//! | `source` | Source of tables in files that bring their columns |
//! | `guard` | Calls of decoders, which may panic where a file is damaged |

pub(crate) mod arrow;
pub(crate) mod guard;
pub(crate) mod pages;
pub(crate) mod parquet;
pub(crate) mod source;

//! Comma-separated values.
//!
//! | file | contents |
//! |---|---|
//! | `records` | Records of comma-separated values |
//! | `bind` | checks of parameters, and the sources of records |
//! | `dialect` | The dialect of a file of CSV: the characters with a meaning, and the quotes |
//! | `fields` | Places of fields of comma-separated values (RFC 4180), of many records at once |
//! | `labelled` | Columns of comma-separated values: columns of text, and columns that become a vector |
//! | `typed` | Tables of comma-separated values: columns of the types of a schema |

mod bind;
pub(crate) mod dialect;
pub(crate) mod fields;
pub(crate) mod labelled;
pub(crate) mod records;
pub(crate) mod typed;

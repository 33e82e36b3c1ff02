//! Types that several operators share.
//!
//! | folder or file | contents |
//! |---|---|
//! | `budget` | Memory budget of one operator |
//! | `columns` | Columns that operators share, `line`, `item`, `id` and `set`: how they are found and built |
//! | `files` | Output files: of sinks, of states and of reports |
//! | `fraction` | Exact fractions in texts and JSON, for shares and thresholds |
//! | `groups` | Distinct keys of rows, of any columns, and their numbers |
//! | `items` | Items: the integers and texts that operators count, filter and look up |
//! | `names` | The items of a column, integers or texts, each with its own number |
//! | `parameters` | Checks of parameters that Rust programs set |
//! | `rejected` | Rows and lines that cannot be used, and the actions for such rows |
//! | `sets` | Sets of tokens: collected, numbered by frequency and sorted by size, with carried columns |
//! | `share` | Shares of a stream as exact fractions |
//! | `state` | States of operators as bytes, from which an operator continues as if it had not been interrupted |
//! | `texts` | Distinct texts and their numbers |
//! | `tokens` | Tokenizers, each of which can stop after a token and continue later |
//! | `window` | Windows over a stream, and their cells |

pub(crate) mod budget;
pub(crate) mod columns;
pub mod files;
pub(crate) mod fraction;
pub(crate) mod groups;
pub mod items;
pub(crate) mod names;
pub(crate) mod parameters;
pub(crate) mod rejected;
pub mod sets;
pub(crate) mod share;
pub(crate) mod state;
pub(crate) mod texts;
pub(crate) mod tokens;
pub(crate) mod window;

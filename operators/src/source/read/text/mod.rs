//! Formats of lines and texts.
//!
//! | file | contents |
//! |---|---|
//! | `encoding` | Encodings of text: recognised by the first bytes of a file, and converted to UTF-8 |
//! | `lines` | Cuts blocks of bytes into lines, and the conversion of lines to rows |
//! | `source` | Source of lines: reads files block by block, and makes rows of the lines |
//! | `plain` | Format `lines`: one row per line, with its place on request |
//! | `records` | Records of several lines: a pattern begins each record, which has the lines up to the next beginning |
//! | `single` | Formats whose records are single lines: no state of a file is kept between two turns |
//! | `texts` | Paragraphs and whole files as rows |
//! | `sets` | Format `sets`: lines of integers |

pub(crate) mod encoding;
pub(crate) mod lines;
pub(crate) mod plain;
pub(crate) mod records;
pub(crate) mod sets;
pub(crate) mod single;
pub(crate) mod source;
pub(crate) mod texts;

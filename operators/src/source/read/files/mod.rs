//! Files of a source: patterns, folders, and the bytes of an open file.
//!
//! | file | contents |
//! |---|---|
//! | `braces` | Patterns of a shell as several simpler patterns, without alternatives in braces and named classes |
//! | `walk` | Walk over folders by a pattern such as `logs/**/*.gz` |
//! | `paths` | Resolution of paths and patterns to the list of input files |
//! | `input` | Input files of a source, opened one after the other |
//! | `stream` | One open file, decompressed |
//! | `raw` | Bytes of one open file as the system returns them, without ever waiting for them |
//! | `ranged` | Ranges of a regular file, which several readers share |
//! | `compression` | Compression of a file, recognised by its name or by its first bytes |
//! | `parts` | Parts of compressed files that can be decompressed on their own |

pub(crate) mod braces;
pub(crate) mod compression;
pub(crate) mod input;
pub(crate) mod parts;
pub(crate) mod paths;
pub(crate) mod ranged;
pub(crate) mod raw;
pub(crate) mod stream;
pub(crate) mod walk;

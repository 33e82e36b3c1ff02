//! Rows of a fixed width: integers and vectors.
//!
//! | file | contents |
//! |---|---|
//! | `source` | Source of rows of a fixed width, read directly into Arrow buffers |
//! | `integers` | Formats `u32le` and `u64le`: little-endian integers |
//! | `vectors` | Formats `f32le` and `npy`: vectors of little-endian numbers, row by row |
//! | `npy` | Header of a `.npy` file |
//! | `names` | Names of vectors: the lines of a text file, one for each vector |

pub(crate) mod integers;
pub(crate) mod names;
pub(crate) mod npy;
pub(crate) mod source;
pub(crate) mod vectors;

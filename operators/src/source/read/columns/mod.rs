//! Columns of a table: named, inferred, and made of texts.
//!
//! | file | contents |
//! |---|---|
//! | `places` | Columns of one type from the places of their values in a text |
//! | `schema` | Columns of a table: named in the configuration, and chosen |
//! | `values` | Values of columns from their texts. Only a float and a point in time may lose digits |
//! | `first` | The first lines of a file, from which the columns of a table are inferred |

pub(crate) mod first;
pub(crate) mod places;
pub(crate) mod schema;
pub(crate) mod values;

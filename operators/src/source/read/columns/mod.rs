//! Columns of a table: named, inferred, and made of texts.
//!
//! | file | contents |
//! |---|---|
//! | `places` | Columns of one type from the places of their values in a text |
//! | `schema` | Columns of a table: named in the configuration, and chosen |
//! | `values` | Values of columns from their texts: nothing is rounded or cut but the digits of a float and of a point in time |
//! | `first` | The first lines of a file, from which the columns of a table are inferred |

pub(crate) mod first;
pub(crate) mod places;
pub(crate) mod schema;
pub(crate) mod values;

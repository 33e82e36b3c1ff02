//! Items: the integers and texts that operators count, filter and look up.
//!
//! | file | contents |
//! |---|---|
//! | `item` | an item, its key and its code, and batches of items |
//! | `text` | texts as items |
//! | `stored` | an item as bytes |
//! | `column` | an item type as an Arrow column |

mod column;
mod item;
mod stored;
mod text;

pub(crate) use self::column::Column;
pub use self::item::{Item, Items};
pub(crate) use self::item::{Keyed, Part};
pub use self::stored::StoredItem;
pub use self::text::{Text, TextSecret};

//! Items: the integers and texts that operators count, filter and look up.
//!
//! | file | contents |
//! |---|---|
//! | `item` | an item, its key and its code, and batches of items |
//! | `text` | texts as items |
//! | `stored` | an item as bytes |
//! | `column` | an item type as an Arrow column |
//! | `several` | several columns as one item |
//! | `external` | items of other types, which are counted as these |

mod column;
mod external;
mod item;
mod several;
mod stored;
mod text;

pub(crate) use self::column::Column;
pub(crate) use self::external::{from_native, native_type, result_type, to_native};
pub(crate) use self::item::Part;
pub use self::item::{Item, Items};
pub(crate) use self::several::{pack, unpack};
pub use self::stored::StoredItem;
pub use self::text::{Text, TextSecret};

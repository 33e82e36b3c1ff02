//! The directory of the paper: three levels of quantiles, and the bounds of groups.

mod directory;

pub(super) use self::directory::{Directory, DirectoryArgument, DirectoryRoom};

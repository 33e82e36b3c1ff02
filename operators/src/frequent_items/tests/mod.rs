//! The operator, driven by hand.

use super::*;

mod fading;
mod long_items;
mod states;

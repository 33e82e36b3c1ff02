//! The forms of the library.

/// Which check the driver was built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Only the checks of all forms.
    Plain,
    /// The address sanitizer of the compiler.
    Address,
    /// The race check.
    Race,
}

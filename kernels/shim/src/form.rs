//! The forms of the library.

/// The check with which the driver was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Only the checks of all forms.
    Plain,
    /// The address sanitizer of the compiler.
    Address,
    /// The race check.
    Race,
}

//! The attribute `parameters`, which makes everything that a parameter of an operator needs from
//! the declaration of one field.
#![forbid(unsafe_code)]

mod declaration;
mod expansion;

use proc_macro::TokenStream;

/// Makes a struct the parameters of an operator: each field with its documentation is a parameter.
///
/// ```ignore
/// #[parameters]
/// pub struct FrequentPairs {
///     /// Transactions that hold both items, at least.
///     support: Support,
///     /// Items of a result: 2 for pairs, 3 for triples.
///     #[default(2)]
///     #[range(2..=3)]
///     itemset: usize,
///     /// Layout in which pairs are counted; all give the same pairs.
///     #[default]
///     layout: Layout,
///     /// Maximum bytes of the transactions.
///     #[range(1..)]
///     memory_max: Option<usize>,
///     #[serde(skip)]
///     tuning: Tuning,
/// }
/// ```
///
/// # Fields
/// A field is a required parameter unless the field is an `Option`, which is `None` when left out,
/// or has a default. A field with `#[serde(skip)]` is no parameter; the field begins with the
/// default of its type.
///
/// | attribute | meaning |
/// |---|---|
/// | `#[default]` | When left out, the parameter has the default of its type. |
/// | `#[default(2)]` | When left out, the parameter has this value. A text stands for a `String`, a `PathBuf` or `Names`. |
/// | `#[range(2..=3)]`, `#[range(1..)]` | The parameter is in this range. The JSON schema has the range, and `check_ranges` checks it. |
/// | `#[setter(none)]` | There is no setter, or a hand-written one. |
/// | `#[setter(each)]` | The setter of `Names` takes an iterator of names. |
/// | `#[setter(char)]` | The setter of a text takes one character. |
///
/// Attributes of `serde` and `schemars` stay where they are.
///
/// # What the attribute makes
/// - `Debug`, `Clone`, and `#[non_exhaustive]`.
/// - `Deserialize`, which refuses unknown names, and `JsonSchema`, with all defaults and ranges.
/// - `new`, which takes the required parameters, and `Default` if there are none. With
///   `#[parameters(own_new)]` the struct has constructors of its own, which begin with the private
///   function `defaults` of the same arguments.
/// - A setter for each other parameter, with the documentation of the field. The setter takes an
///   `impl Into<String>` for a `String` (the same goes for `PathBuf` and `Names`), an iterator for
///   a `Vec`, the value of an `Option`, and nothing for a `bool`, which becomes true.
/// - `check_ranges`, if a parameter has a range, which returns all values that are out of their
///   ranges as one error. With `#[parameters(errors_at = "rotate")]` the errors name this parameter
///   of the operator, of which the struct is the value.
///
/// The code that the attribute makes calls `crate::shared::parameters`.
#[proc_macro_attribute]
pub fn parameters(options: TokenStream, item: TokenStream) -> TokenStream {
    match declaration::Declaration::parse(options.into(), item.into()) {
        Ok(declaration) => expansion::expand(&declaration).into(),
        Err(error) => error.into_compile_error().into(),
    }
}

//! Filters that drop pairs before they are decided, and the decision.
//!
//! `form` has the stored coordinates and the limits of their filters, `principal` maps many
//! dimensions to few coordinates, and `candidates` sifts the remaining pairs and decides them in
//! float64. Each file has the proof that its filter loses no pair.

mod candidates;
mod form;
mod principal;

pub(super) use self::candidates::{Candidates, Kind, Points, Sides};
pub(super) use self::form::{Extent, Form, Limits};
pub(super) use self::principal::Principal;

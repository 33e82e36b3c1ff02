//! Filters that drop pairs before they are decided, and the decision.
//!
//! `form` has the stored coordinates and the limits of their filters, `principal` few coordinates
//! for many dimensions, and `candidates` sifts what is left and decides it in float64. Each file
//! has the proof that its filter loses no pair.

mod candidates;
mod form;
mod principal;

pub(super) use self::candidates::{Candidates, Kind, Points, Sides};
pub(super) use self::form::{Extent, Form, Limits};
pub(super) use self::principal::Principal;

//! The first task of a merge: the vectors of panes, one pane after the other.
//!
//! If there are few vectors, the same task also makes the vectors ready, so that a small merge is
//! one task.

use std::sync::Arc;

use arrow_schema::ArrowError;
use trommel_kernels::Isa;

use crate::epsilon_join::data::built::{Built, Collected};
use crate::epsilon_join::data::copies::Copies;
use crate::epsilon_join::parameters::rules::Rules;
use crate::shared::columns::carry::CarriedRows;

/// Concatenates the vectors of panes, and also makes the vectors ready if they are few.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// Number of the merge.
    pub(crate) of: usize,
    pub(crate) parts: Vec<Arc<Built>>,
    pub(crate) like: Option<Arc<Built>>,
    pub(crate) rules: Rules,
    /// `None` before the task has run.
    pub(crate) gathered: Option<Result<Gathered, ArrowError>>,
}

/// The vectors of the panes, ready if they are few.
#[derive(Debug)]
pub(crate) enum Gathered {
    Collected(Collected),
    Built(Built),
}

impl Gathering {
    /// Does the task.
    pub(crate) fn run(&mut self, isa: Isa) {
        self.gathered = Some(self.collected().map(|collected| {
            let is_small = collected.coordinates.len() <= self.rules.tuning.merge_numbers;
            if is_small || !collected.has_directory {
                let like = self.like.as_deref().and_then(Built::directory);
                Gathered::Built(collected.build(isa, like))
            } else {
                Gathered::Collected(collected)
            }
        }));
    }

    /// The vectors of all parts.
    fn collected(&self) -> Result<Collected, ArrowError> {
        let (parts, tuning) = (&self.parts[..], &self.rules.tuning);
        let carried = parts.iter().map(|part| part.carried.as_ref());
        let carried = CarriedRows::joined(carried, tuning.carried_batch_bytes)?;
        let coordinates: Vec<&[f32]> = parts.iter().map(|part| part.coordinates()).collect();
        let ids: Vec<&[u32]> = parts.iter().map(|part| &part.ids[..]).collect();
        let stamps: Vec<&[u64]> = parts.iter().map(|part| &part.stamps[..]).collect();
        let Built { dims, epsilon, .. } = *parts[0];
        let mut coordinates = coordinates.concat();
        let copies = self.rules.may_join_copies_once().then(|| {
            let parts = parts.iter().map(|part| (part.copies.as_ref(), part.ids.len()));
            Copies::joined(parts, &mut coordinates, dims, tuning)
        });
        Ok(Collected {
            coordinates,
            dims,
            epsilon,
            ids: ids.concat(),
            copies: copies.flatten(),
            carried,
            has_directory: parts[0].directory().is_some(),
            stamps: stamps.concat(),
        })
    }
}

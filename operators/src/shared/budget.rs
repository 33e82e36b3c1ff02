//! Memory budget of one operator.
//!
//! An [`Allowance`] is the memory that a stage may take from the memory that the stages of a
//! pipeline share. The allowance reserves the maximum that the stage has needed so far: a stage
//! that needs little leaves the remaining memory to other stages, in whatever order the stages
//! grow. A [`Budget`] adds up the memory in use at one time, and asks the allowance before the
//! stage allocates more than ever.

use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;
use trommel_engine::error::BindError;
use trommel_engine::memory::{MemoryBudget, Reservation};

use crate::shared::parameters::refuse;

/// An allowance grows by an eighth more than is needed, at most by this number of bytes more, so
/// that growing is rare.
const STEP_BYTES_MAX: usize = 1 << 20;

/// The memory that a stage may take of its pipeline.
#[derive(Debug, Clone)]
pub(crate) struct Allowance(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most: usize,
    pipeline: MemoryBudget,
    /// The maximum that was needed so far.
    reserved: Mutex<Reservation>,
}

impl Allowance {
    /// An allowance of `bytes` bytes that no other stage shares.
    pub(crate) fn new(bytes: usize) -> Self {
        Self::of(&MemoryBudget::new(bytes), bytes, None)
    }

    /// The memory of a stage. With a number, `memory_max` bytes, which are reserved from the
    /// beginning and must be available. Without a number, as much memory as the stage comes to need
    /// and other stages have left, at most `most` bytes.
    pub(crate) fn of_stage(
        memory_max: Option<usize>,
        most: usize,
        pipeline: &MemoryBudget,
    ) -> Result<Self, BindError> {
        let Some(bytes) = memory_max else { return Ok(Self::of(pipeline, most, None)) };
        pipeline.make_room(bytes);
        let left = pipeline.left();
        let own = pipeline.reserve(bytes).map_err(|_| {
            let limit = pipeline.limit();
            let allowed = format!(
                "{left} of the {limit} bytes of the pipeline are left; lower the number, or raise \
                 `memory_max` of the pipeline"
            );
            refuse("memory_max", bytes.to_string(), allowed)
        })?;
        Ok(Self::of(pipeline, bytes, Some(own)))
    }

    fn of(pipeline: &MemoryBudget, most: usize, own: Option<Reservation>) -> Self {
        let reserved = Mutex::new(own.unwrap_or_else(|| pipeline.reservation()));
        Self(Arc::new(Shared { most, pipeline: pipeline.clone(), reserved }))
    }

    /// A budget of the whole allowance, without bytes in use.
    pub(crate) fn budget(&self) -> Budget {
        Budget { used: 0, reserved: 0, allowance: self.clone() }
    }

    /// Bytes that the stage could have at present.
    pub(crate) fn bytes(&self) -> usize {
        let reserved = self.0.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.most.min(reserved.bytes().saturating_add(self.0.pipeline.left()))
    }

    /// Reserves `needed` bytes in all, unless as many are reserved, and some more if available.
    /// Returns the reserved bytes. The error is the number of bytes that could be reserved.
    fn grow(&self, needed: usize) -> Result<usize, usize> {
        let Shared { most, pipeline, reserved } = &*self.0;
        let mut reserved = reserved.lock().unwrap_or_else(PoisonError::into_inner);
        if needed <= reserved.bytes() {
            return Ok(reserved.bytes());
        }
        let roomy = needed.saturating_add((needed / 8).min(STEP_BYTES_MAX)).min(*most);
        let fits =
            needed <= *most && (reserved.resize(roomy).is_ok() || reserved.resize(needed).is_ok());
        let left = if fits { 0 } else { pipeline.left() };
        let bytes = reserved.bytes().saturating_add(left).min(*most);
        if fits { Ok(bytes) } else { Err(bytes) }
    }
}

/// Bytes of a vector of `capacity` elements of `element` bytes, of which `len` are used, while
/// `more` elements are added. A full vector is copied to a vector of twice the size.
pub(crate) fn bytes_with(capacity: usize, len: usize, more: usize, element: usize) -> usize {
    let needed = len + more;
    let copied = if needed > capacity { needed.max(2 * capacity) } else { 0 };
    element * (capacity + copied)
}

/// Bytes that an operator may use, and bytes in use.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    used: usize,
    /// Bytes that the allowance has reserved at least.
    reserved: usize,
    allowance: Allowance,
}

/// The memory of an operator would exceed its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "not enough memory for {what}: {needed} bytes needed in all, {allowed} allowed (`memory_max`)"
)]
#[non_exhaustive]
pub struct BudgetFull {
    /// Name of the last request.
    pub what: &'static str,
    /// Bytes in use with this request.
    pub needed: usize,
    /// Bytes that the operator could have in all.
    pub allowed: usize,
}

impl Budget {
    /// A budget of `allowed` bytes, without bytes in use.
    pub(crate) fn new(allowed: usize) -> Self {
        Allowance::new(allowed).budget()
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Takes `bytes` for `what`, before the bytes are allocated.
    pub(crate) fn take(&mut self, what: &'static str, bytes: usize) -> Result<(), BudgetFull> {
        self.reserve(what, bytes)?;
        self.used += bytes;
        Ok(())
    }

    /// Makes sure that `bytes` are available for `what`, without taking the bytes.
    pub(crate) fn reserve(&mut self, what: &'static str, bytes: usize) -> Result<(), BudgetFull> {
        let needed = self.used.saturating_add(bytes);
        if needed > self.reserved {
            let grown = self.allowance.grow(needed);
            self.reserved = grown.map_err(|allowed| BudgetFull { what, needed, allowed })?;
        }
        Ok(())
    }

    /// Makes room for `more` elements of `what` in `list` before the room is allocated. The
    /// capacity of `list` has been taken from this budget. A full list grows to twice its capacity,
    /// or by an eighth if there is no memory for twice the capacity, so that each element is copied
    /// a limited number of times.
    ///
    /// # Errors
    /// If the budget has no room for the old list and the new list, which exist together for a
    /// moment.
    pub(crate) fn grow<T>(
        &mut self,
        what: &'static str,
        list: &mut Vec<T>,
        more: usize,
    ) -> Result<(), BudgetFull> {
        let (old, needed) = (list.capacity(), list.len() + more);
        if needed <= old {
            return Ok(());
        }
        let bytes = |capacity: usize| capacity.saturating_mul(size_of::<T>());
        let (roomy, least) = (needed.max(2 * old), needed.max(old + old / 8));
        let capacity = match self.reserve(what, bytes(roomy)) {
            Ok(()) => roomy,
            Err(_) => self.reserve(what, bytes(least)).map(|()| least)?,
        };
        list.reserve_exact(capacity - list.len());
        self.used += bytes(list.capacity()) - bytes(old);
        Ok(())
    }

    /// Gives back the unused capacity of `list`, which has [grown](Self::grow), if the budget has
    /// room for a copy.
    pub(crate) fn trim<T>(&mut self, what: &'static str, list: &mut Vec<T>) {
        let old = list.capacity();
        if list.len() < old && self.reserve(what, size_of_val(&list[..])).is_ok() {
            list.shrink_to_fit();
            self.give_back((old - list.capacity()) * size_of::<T>());
        }
    }

    /// Gives back `bytes` that were taken before.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.used -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_share_the_memory_of_a_pipeline_in_any_order() {
        let pipeline = MemoryBudget::new(1_000);
        let stage = |own| Allowance::of_stage(own, 700, &pipeline).unwrap().budget();
        let [mut one, mut other, mut third] = [None, None, Some(100)].map(stage);
        assert_eq!(pipeline.reserved(), 100, "a number of its own is there from the beginning");
        one.take("the first", 560).unwrap();
        other.take("the second", 250).unwrap();
        third.take("the third", 100).unwrap();
        // Of 1,000 bytes, 100 belong to the third stage, and 560 and some more to the first stage.
        let full = other.take("more", 100).unwrap_err();
        assert!(full.needed == 350 && (250..=340).contains(&full.allowed), "{full}");
        assert!(third.take("more", 1).is_err());
        // A stage may take bytes again that the stage has given back.
        one.give_back(500);
        one.take("the first again", 500).unwrap();
        drop((one, other, third));
        assert_eq!(pipeline.reserved(), 0);
        let full = stage(None).take("all", 701).unwrap_err();
        assert_eq!(full.allowed, 700, "there is a most, too");
    }

    #[test]
    fn a_list_grows_within_the_budget_while_it_is_copied() {
        for allowed in [100, 1_000, 12_345, 100_000] {
            let (mut budget, mut list) = (Budget::new(allowed), Vec::new());
            let (mut copied, mut before) = (0, 0);
            let full = loop {
                if let Err(full) = budget.grow("the numbers", &mut list, 7) {
                    break full;
                }
                list.extend_from_slice(&[9_u32; 7]);
                if list.capacity() > before {
                    assert!(size_of::<u32>() * (before + list.capacity()) <= allowed);
                    (copied, before) = (copied + before, list.capacity());
                }
                assert_eq!(budget.used, size_of::<u32>() * list.capacity());
            };
            assert_eq!((full.what, full.allowed), ("the numbers", allowed));
            // The list uses all memory but an eighth, and half of the memory is for the copy.
            assert!(size_of::<u32>() * (list.len() + 7) * 9 / 4 + 100 > allowed, "{}", list.len());
            assert!(copied <= 9 * list.len(), "{copied} copied for {}", list.len());
            list.truncate(7);
            budget.trim("the numbers", &mut list);
            assert_eq!(budget.used, size_of::<u32>() * list.capacity());
        }
    }
}

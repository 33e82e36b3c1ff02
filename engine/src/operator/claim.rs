//! Claims: the things outside of a pipeline that its stages read and write, such as files.
//!
//! A [`Claim`] says which thing a stage uses, and how. The graph refuses two claims that exclude
//! each other: a file that is written and read, or written twice, or a pipe that is read twice. The
//! things that a run writes are also in its [`Outputs`], so that a source that finds its inputs
//! during the run can leave them out.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

/// Maximum outputs made during a run that are remembered.
const MADE_MAX: usize = 1 << 16;

/// The use of a claimed thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads a thing that others may read, too: a regular file.
    Reads,
    /// Reads a thing of which each part can be read once: a pipe, a socket, a terminal.
    Consumes,
    /// Writes the thing.
    Writes,
}

/// Something outside of the pipeline that a stage reads or writes, such as a file.
///
/// # Examples
/// ```
/// use trommel_engine::operator::{Access, Claim};
///
/// let file = |name: &str| Claim::new(b"device 8, inode 42".to_vec(), name, "path");
/// assert_eq!(file("out.csv").key, file("./out.csv").key, "one file under two names");
/// let read = file("out.csv").with(Access::Reads);
/// assert!(read.excludes(&file("./out.csv")) && !read.excludes(&read));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// Key of the thing: equal for two claims to the same thing, whatever its name is.
    pub key: Vec<u8>,
    /// Name of the thing in messages.
    pub name: String,
    /// The parameter that names the thing.
    pub parameter: &'static str,
    /// The use of the thing.
    pub access: Access,
}

impl Claim {
    /// A claim to write the thing that `key` stands for, which `parameter` names.
    #[must_use]
    pub fn new(key: Vec<u8>, name: impl Into<String>, parameter: &'static str) -> Self {
        Self { key, name: name.into(), parameter, access: Access::Writes }
    }

    /// Sets the use.
    #[must_use]
    pub fn with(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// Whether no run may have both claims.
    #[must_use]
    pub fn excludes(&self, other: &Self) -> bool {
        let is_shared = matches!(
            (self.access, other.access),
            (Access::Reads, Access::Reads | Access::Consumes) | (Access::Consumes, Access::Reads)
        );
        self.key == other.key && !is_shared
    }
}

/// Two claims that exclude each other.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", self.text())]
#[non_exhaustive]
pub struct ClaimConflict {
    /// The claim that was refused.
    pub claim: Claim,
    /// The stage of the claim that came first; `None` for a claim of the program.
    pub other_stage: Option<String>,
    /// The claim that came first.
    pub other: Claim,
}

impl ClaimConflict {
    fn text(&self) -> String {
        let Self { claim, other_stage, other } = self;
        let name = &claim.name;
        let by = match other_stage {
            Some(stage) => format!("`{}` of stage `{stage}`", other.parameter),
            None => format!("`{}`", other.parameter),
        };
        match (claim.access, other.access) {
            (Access::Writes, Access::Writes) => {
                format!("{name} is also written by {by}; name another one")
            }
            (Access::Writes, _) => {
                format!("{name} is an input, of {by}, which would be overwritten; name another one")
            }
            (_, Access::Writes) => {
                format!("{name} is an output, of {by}; an input cannot be an output of its run")
            }
            _ => format!(
                "{name} is also read by {by}, and it can be read only once; \
                 read it in one stage, whose rows several stages can take"
            ),
        }
    }
}

/// All claims of a graph.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    held: HashMap<Vec<u8>, Vec<(Option<String>, Claim)>>,
    outputs: Outputs,
}

impl Ledger {
    /// Enters a claim of a stage, or of the program that runs the graph.
    pub(crate) fn claim(
        &mut self,
        stage: Option<&str>,
        claim: &Claim,
    ) -> Result<(), Box<ClaimConflict>> {
        let held = self.held.entry(claim.key.clone()).or_default();
        if let Some((other_stage, other)) = held.iter().find(|(_, other)| other.excludes(claim)) {
            let (claim, other) = (claim.clone(), other.clone());
            return Err(Box::new(ClaimConflict { claim, other_stage: other_stage.clone(), other }));
        }
        // One reader of a kind stands for all readers, so that many files in many stages cost no
        // more.
        if !held.iter().any(|(_, other)| other.access == claim.access) {
            held.push((stage.map(str::to_owned), claim.clone()));
        }
        if claim.access == Access::Writes {
            self.outputs.lock().claimed.insert(claim.key.clone());
        }
        Ok(())
    }

    pub(crate) fn outputs(&self) -> Outputs {
        self.outputs.clone()
    }
}

/// The things that a run writes, by their keys; shared by its stages.
///
/// # Examples
/// ```
/// use trommel_engine::operator::Outputs;
///
/// let outputs = Outputs::default();
/// let made = outputs.make(|| Ok::<_, std::io::Error>(((), b"inode 43".to_vec())));
/// assert!(made.is_ok() && outputs.contains(b"inode 43") && !outputs.contains(b"inode 44"));
/// ```
#[derive(Clone, Default)]
pub struct Outputs(Arc<Mutex<OutputKeys>>);

#[derive(Default)]
struct OutputKeys {
    claimed: HashSet<Vec<u8>>,
    made: HashSet<Vec<u8>>,
    /// The keys of `made`, the oldest first.
    order: VecDeque<Vec<u8>>,
}

impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.lock();
        f.debug_struct("Outputs")
            .field("claimed", &keys.claimed.len())
            .field("made", &keys.made.len())
            .finish()
    }
}

impl Outputs {
    fn lock(&self) -> MutexGuard<'_, OutputKeys> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an output, such as the next file of a sink, and enters its key. [`Self::contains`]
    /// waits meanwhile, so a source that sees the new file learns that the file is an output.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn make<T, E>(&self, make: impl FnOnce() -> Result<(T, Vec<u8>), E>) -> Result<T, E> {
        let mut keys = self.lock();
        let (made, key) = make()?;
        if keys.made.insert(key.clone()) {
            keys.order.push_back(key);
        }
        if keys.order.len() > MADE_MAX
            && let Some(oldest) = keys.order.pop_front()
        {
            keys.made.remove(&oldest);
        }
        Ok(made)
    }

    /// Whether the thing with this key is an output of the run.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        let keys = self.lock();
        keys.claimed.contains(key) || keys.made.contains(key)
    }
}

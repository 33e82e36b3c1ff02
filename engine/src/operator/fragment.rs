//! The form in which a bound operator enters a graph: its parts and their connections.

use std::borrow::Cow;
use std::fmt;

use arrow_schema::SchemaRef;

use super::claim::Claim;
use super::division::Division;
use super::{Operator, Source};
use crate::error::BindError;

/// Amount of work of a part, for the placement of parts on cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Fused with its neighbour.
    Light,
    /// A core of its own if the heavy parts leave a core; otherwise as [`Self::Light`].
    Moderate,
    /// A core of its own while there are cores.
    Heavy,
    /// One of several parts that share work: a core of its own while there are cores, and otherwise
    /// a core with as few other parts as possible.
    Worker,
}

/// The code of a part.
pub enum Body {
    /// Produces.
    Source(Box<dyn Source>),
    /// Transforms or consumes.
    Operator(Box<dyn Operator>),
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source(_) => "Source",
            Self::Operator(_) => "Operator",
        })
    }
}

/// One of the parts that an operator consists of.
#[derive(Debug)]
pub struct Part {
    /// Name within the operator, such as `filter`; empty for the only part.
    pub name: Cow<'static, str>,
    /// The amount of work of the part.
    pub load: Load,
    /// The code of the part.
    pub body: Body,
}

/// The way of chunks between the parts of an operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shape {
    /// Each part sends chunks to the next part and replies to the part before. Queries follow the
    /// chunks.
    #[default]
    Chain,
    /// The parts between the first and the last part stand side by side. The first part sends a
    /// chunk [to one worker](super::Output::send_chunk_to). Each worker sends chunks to the last
    /// part, which replies to the first part. Chunks of different workers come in any order. The
    /// first part answers queries. A [source](Fragment::fed_by) may come before the first part: the
    /// source sends chunks to the first part and gets no replies.
    Workers,
}

/// Makes copies of one part of a fragment.
pub(crate) struct Copies {
    pub(crate) division: Division,
    /// Index of the part among the parts of the fragment.
    pub(crate) part: usize,
    /// Maximum number of copies that can have work, the first one included.
    pub(crate) most: usize,
    pub(crate) make: Box<dyn FnMut() -> Result<Body, BindError> + Send>,
}

impl fmt::Debug for Copies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copies")
            .field("division", &self.division)
            .field("part", &self.part)
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

/// An operator that is bound to its inputs, ready to be placed and run.
#[derive(Debug)]
pub struct Fragment {
    /// The parts, at least one. External inputs enter the first part.
    pub parts: Vec<Part>,
    /// The way of chunks between the parts.
    pub shape: Shape,
    /// Schema of each output port; a sink has none. Rows leave the last part.
    pub outputs: Vec<SchemaRef>,
    /// Number of output ports, the last ones of `outputs`, whose rows leave the first part.
    pub early_outputs: usize,
    /// Things outside of the pipeline that the operator reads and writes.
    pub claims: Vec<Claim>,
    /// Whether a later run of the same source reads the input of this run once more, from the
    /// beginning.
    pub rereads: bool,
    /// About how many bytes the rows of a source have, if that is known before the run. If they are
    /// few, the source and the stages behind it run in one place.
    pub input_bytes: Option<u64>,
    /// The part of which the engine may make copies.
    pub(crate) copies: Option<Copies>,
}

impl Fragment {
    /// A chain of parts that claims nothing.
    #[must_use]
    pub fn new(parts: Vec<Part>, outputs: Vec<SchemaRef>) -> Self {
        let (early_outputs, claims, rereads) = (0, Vec::new(), false);
        let (shape, input_bytes, copies) = (Shape::Chain, None, None);
        Self { parts, shape, outputs, early_outputs, claims, rereads, input_bytes, copies }
    }

    /// Parts that claim nothing. All parts between the first and the last one are
    /// [workers](Shape::Workers).
    ///
    /// # Panics
    /// If there are fewer than three parts.
    #[must_use]
    pub fn with_workers(parts: Vec<Part>, outputs: Vec<SchemaRef>) -> Self {
        assert!(parts.len() > 2, "a worker stands between two parts");
        Self { shape: Shape::Workers, ..Self::new(parts, outputs) }
    }

    /// Puts a source before the parts of an operator with workers: the chunks of the source enter
    /// the first part.
    ///
    /// # Panics
    /// If the parts are no workers.
    #[must_use]
    pub fn fed_by(mut self, name: &'static str, load: Load, source: impl Source + 'static) -> Self {
        assert_eq!(self.shape, Shape::Workers, "a source feeds workers");
        let body = Body::Source(Box::new(source));
        self.parts.insert(0, Part { name: Cow::Borrowed(name), load, body });
        self
    }

    /// A source with one output port.
    pub fn source(load: Load, source: impl Source + 'static, output: SchemaRef) -> Self {
        let body = Body::Source(Box::new(source));
        Self::new(vec![Part { name: Cow::Borrowed(""), load, body }], vec![output])
    }

    /// An operator of one part with the given output ports.
    pub fn operator(
        load: Load,
        operator: impl Operator + 'static,
        outputs: Vec<SchemaRef>,
    ) -> Self {
        let body = Body::Operator(Box::new(operator));
        Self::new(vec![Part { name: Cow::Borrowed(""), load, body }], outputs)
    }

    /// An operator of one part that any number of workers can do ([`Division::Anywhere`]). `make`
    /// makes the operator, and its copies on demand.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn anywhere<O: Operator + 'static>(
        load: Load,
        mut make: impl FnMut() -> Result<O, BindError> + Send + 'static,
        outputs: Vec<SchemaRef>,
    ) -> Result<Self, BindError> {
        let fragment = Self::operator(load, make()?, outputs);
        let make = move || make().map(|operator| Body::Operator(Box::new(operator)));
        Ok(fragment.divided(Division::Anywhere, 0, usize::MAX, make))
    }

    /// A source whose copies share the pieces of the input ([`Division::Pieces`]), of which at most
    /// `most` can have work at once.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn divided_source<S: Source + 'static>(
        load: Load,
        most: usize,
        mut make: impl FnMut() -> Result<S, BindError> + Send + 'static,
        output: SchemaRef,
    ) -> Result<Self, BindError> {
        let fragment = Self::source(load, make()?, output);
        let make = move || make().map(|source| Body::Source(Box::new(source)));
        Ok(fragment.divided(Division::Pieces, 0, most, make))
    }

    /// Says that the part with the index `part` of a chain may run in up to `most` copies. `make`
    /// makes a further copy. Chunks to a copied part are dealt in turn, and what its copies send
    /// comes in the order in which the chunks were dealt; with [`Division::Partial`], chunks of the
    /// copies come in any order.
    ///
    /// # Panics
    /// If the parts are no chain, or there is no such part.
    #[must_use]
    pub fn divided(
        mut self,
        division: Division,
        part: usize,
        most: usize,
        make: impl FnMut() -> Result<Body, BindError> + Send + 'static,
    ) -> Self {
        assert_eq!(self.shape, Shape::Chain, "workers of a wave are divided already");
        assert!(part < self.parts.len(), "there is a part to copy");
        self.copies = Some(Copies { division, part, most, make: Box::new(make) });
        self
    }

    /// Replaces the schemas of the output ports.
    #[must_use]
    pub fn with_outputs(self, outputs: Vec<SchemaRef>) -> Self {
        Self { outputs, ..self }
    }

    /// Adds output ports whose rows leave the first part, such as rows that the operator cannot
    /// use. The part [sends](super::Output::send_to) these rows to their port, numbered among all
    /// ports.
    #[must_use]
    pub fn with_early_outputs(mut self, outputs: impl IntoIterator<Item = SchemaRef>) -> Self {
        let before = self.outputs.len();
        self.outputs.extend(outputs);
        self.early_outputs += self.outputs.len() - before;
        self
    }

    /// Claims things outside of the pipeline for this stage.
    #[must_use]
    pub fn claiming(mut self, claims: impl IntoIterator<Item = Claim>) -> Self {
        self.claims.extend(claims);
        self
    }

    /// Says about how many bytes the rows of a source have, if that is known.
    #[must_use]
    pub fn with_input_bytes(self, input_bytes: Option<u64>) -> Self {
        Self { input_bytes, ..self }
    }

    /// Says that a later run reads the input of this run once more, from the beginning.
    #[must_use]
    pub fn rereading(mut self) -> Self {
        self.rereads = true;
        self
    }
}

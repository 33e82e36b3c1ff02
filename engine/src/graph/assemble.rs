//! Bound stages and their copies become parts and links.
//!
//! The parts of a stage follow each other, and the copies of a part stand in its place. A link
//! joins two parts. Its [`Route`] says how the messages of an output are shared among the copies of
//! a consumer.

use std::borrow::Cow;
use std::collections::HashMap;
use std::iter::repeat_n;
use std::ops::Range;

use arrow_schema::SchemaRef;

use super::bind::BoundStage;
use super::divide::StageCopies;
use super::{Exit, Link, OutputPort, PlacedPart, QueryPath, ReplyPath, Route, StageInfo, error};
use crate::error::{GraphError, GraphErrorKind};
use crate::operator::{Body, Copies, Division, Fragment, Load, Part, Shape};
use crate::placement::PartRequest;

/// The parts and links of the stages that have been assembled.
#[derive(Default)]
pub(super) struct Assembly {
    pub(super) stages: Vec<StageInfo>,
    pub(super) parts: Vec<PlacedPart>,
    pub(super) links: Vec<Link>,
    pub(super) replies: Vec<ReplyPath>,
    pub(super) queries: Vec<QueryPath>,
    pub(super) requests: Vec<PartRequest>,
    /// The first stage of each region that has been assembled: the parts that are its copies.
    lanes: HashMap<usize, Range<usize>>,
    /// The region of each stage.
    regions: Vec<usize>,
    /// Number of consumers so far that messages are dealt to.
    dealt: usize,
}

impl Assembly {
    /// Adds a stage after its inputs.
    pub(super) fn add(
        &mut self,
        stage: BoundStage,
        StageCopies { region, more }: StageCopies,
    ) -> Result<(), GraphError> {
        let inputs = self.names_of(&stage.inputs);
        let BoundStage { id, operator, cores, fragment, .. } = stage;
        let Fragment { parts, shape, outputs, early_outputs, claims, copies, .. } = fragment;
        let division = copies.as_ref().map_or(Division::OnePlace, |copies| copies.division);
        let layout = Layout::new(&parts, shape, copies.as_ref(), more.len() + 1);
        let beside = layout.beside(self.parts.len());
        let mut parts = with_copies(parts, copies.as_ref().filter(|_| !more.is_empty()), more);
        tell(&mut parts, &layout);
        self.request(&layout, &parts, region, &cores).map_err(|(given, parts)| {
            error(&id, GraphErrorKind::TooManyCores { operator, given, parts })
        })?;
        let exits = layout.exits(self.parts.len(), &outputs, early_outputs);
        let entries = layout.entries(self.parts.len());
        self.link_inputs(&stage.inputs, stage.has_one_port, (entries, region));
        let parts = self.add_parts((&id, operator), parts, &layout, &outputs);
        self.join_parts(&parts, &layout);
        self.regions.push(region);
        self.stages.push(StageInfo {
            id,
            operator,
            inputs,
            outputs,
            output_ports: stage.output_ports,
            reads_stdin: stage.reads_stdin,
            division,
            parts,
            beside,
            exits,
            claims,
        });
        Ok(())
    }

    /// The names of the inputs as in a configuration.
    fn names_of(&self, inputs: &[OutputPort]) -> Vec<String> {
        inputs.iter().map(|input| self.stages[input.stage.0].output_name(input.port)).collect()
    }

    /// Adds the data of the parts of a stage for their placement; fails with the number of cores
    /// and of parts.
    fn request(
        &mut self,
        layout: &Layout,
        parts: &[Part],
        region: usize,
        cores: &[usize],
    ) -> Result<(), (usize, usize)> {
        let (first, stage) = (self.parts.len(), self.stages.len());
        let copied = layout.copied(first);
        let is_divided = copied.len() > 1;
        // A stage whose copies do not all fit into the memory leaves cores unused.
        if cores.len() > parts.len() && !is_divided {
            return Err((cores.len(), parts.len()));
        }
        let leaders = self.lanes.entry(region).or_insert_with(|| copied.clone()).clone();
        for (position, part) in parts.iter().enumerate() {
            let index = first + position;
            let core = layout.core_of(parts.len(), position, cores);
            let (mut load, mut with) = (part.load, None);
            if is_divided && copied.contains(&index) {
                let leader = leaders.start + (index - copied.start);
                load = Load::Worker;
                with = (core.is_none() && leader != index).then_some(leader);
            }
            self.requests.push(PartRequest { stage, load, core, with });
        }
        Ok(())
    }

    /// Links the inputs to the parts `entries` that are added next: one part, or the copies of one.
    fn link_inputs(
        &mut self,
        inputs: &[OutputPort],
        has_one_port: bool,
        (entries, region): (Range<usize>, usize),
    ) {
        let mut gathers = 0;
        for (position, input) in inputs.iter().enumerate() {
            let exit = self.stages[input.stage.0].exits[input.port].clone();
            let (from_port, to_port) = (exit.port, if has_one_port { 0 } else { position });
            let link = |from, to, route| Link { from, from_port, to, to_port, route };
            match (exit.parts.len(), entries.len()) {
                (1, 1) => self.links.push(link(exit.parts.start, entries.start, Route::Direct)),
                (1, _) => {
                    let route = Route::Dealt(self.dealt);
                    self.dealt += 1;
                    self.links.extend(entries.clone().map(|to| link(exit.parts.start, to, route)));
                }
                (_, 1) => {
                    let route = Route::Gathered(gathers);
                    gathers += 1;
                    let to = entries.start;
                    self.links.extend(exit.parts.map(|from| link(from, to, route)));
                }
                (copies, others) => {
                    assert_eq!(self.regions[input.stage.0], region, "copies read their own region");
                    assert_eq!(copies, others, "stages of a region have equally many copies");
                    let lanes = exit.parts.zip(entries.clone());
                    self.links.extend(lanes.map(|(from, to)| link(from, to, Route::Lane)));
                }
            }
        }
    }

    /// Adds the parts of a stage; returns the indices of the parts.
    fn add_parts(
        &mut self,
        (id, operator): (&str, &'static str),
        parts: Vec<Part>,
        layout: &Layout,
        outputs: &[SchemaRef],
    ) -> Vec<usize> {
        let first = self.parts.len();
        let count = parts.len();
        let (entries, last) = (layout.entries(first), layout.last(first));
        for (index, part) in (first..).zip(parts) {
            let label = if count == 1 { id.to_owned() } else { format!("{id}/{}", part.name) };
            let sends_rows = entries.contains(&index) || last.contains(&index);
            let declared = if sends_rows { outputs.to_vec() } else { Vec::new() };
            let (stage, chunk_ports) = (id.to_owned(), layout.chunk_ports(index - first));
            self.parts.push(PlacedPart { stage, label, operator, part, declared, chunk_ports });
        }
        (first..self.parts.len()).collect()
    }

    /// Connects the parts of a stage.
    fn join_parts(&mut self, parts: &[usize], layout: &Layout) {
        let link = |from, from_port, to, route| Link { from, from_port, to, to_port: 0, route };
        let first = parts[0];
        if layout.shape == Shape::Workers {
            for pair in parts[..=layout.fed].windows(2) {
                self.links.push(link(pair[0], 0, pair[1], Route::Direct));
            }
            if let &[prepare, ref workers @ .., collect] = &parts[layout.fed..] {
                for (port, &worker) in workers.iter().enumerate() {
                    self.links.push(link(prepare, port, worker, Route::Direct));
                    self.links.push(link(worker, 0, collect, Route::Direct));
                }
                self.replies.push(ReplyPath { from: collect, to: prepare });
            }
            return;
        }
        for step in 1..layout.len() {
            let (before, after) = (layout.at(step - 1, first), layout.at(step, first));
            let (to_copies, from_copies) = (layout.is_copied(step), layout.is_copied(step - 1));
            if !to_copies && !from_copies {
                let (from, to) = (before.start, after.start);
                self.links.push(link(from, 0, to, Route::Direct));
                self.replies.push(ReplyPath { from: to, to: from });
                self.queries.push(QueryPath { from, to });
            } else if to_copies {
                let route = Route::Dealt(self.dealt);
                self.dealt += 1;
                let from = before.start;
                self.links.extend(after.clone().map(|to| link(from, 0, to, route)));
                self.queries.extend(after.map(|to| QueryPath { from, to }));
            } else {
                let route = if layout.keeps_order { Route::Gathered(0) } else { Route::Merged };
                let to = after.start;
                self.links.extend(before.clone().map(|from| link(from, 0, to, route)));
                self.queries.extend(before.map(|from| QueryPath { from, to }));
            }
        }
    }
}

/// The places of the parts of a stage. The copies of a part take one place of the chain.
struct Layout {
    shape: Shape,
    /// Number of parts of the fragment, without copies.
    parts: usize,
    /// Number of sources, 0 or 1, before the other parts of an operator with workers.
    fed: usize,
    /// The place that is copied, and its number of copies.
    copied: (usize, usize),
    /// Whether the part after the copies takes their chunks in the order of the pieces.
    keeps_order: bool,
    /// Whether the copies have partial states.
    is_partial: bool,
}

impl Layout {
    fn new(parts: &[Part], shape: Shape, copies: Option<&Copies>, count: usize) -> Self {
        let is_fed = shape == Shape::Workers && matches!(parts[0].body, Body::Source(_));
        let copied = copies.map_or((0, 1), |copies| (copies.part, count));
        let is_partial = copies.is_some_and(|copies| copies.division == Division::Partial);
        let fed = usize::from(is_fed);
        Self { shape, parts: parts.len(), fed, copied, keeps_order: !is_partial, is_partial }
    }

    /// Number of places.
    fn len(&self) -> usize {
        self.parts
    }

    /// The parts at a place, of a stage whose first part has the index `first`.
    fn at(&self, place: usize, first: usize) -> Range<usize> {
        let (copied, count) = self.copied;
        let before = if place > copied { count - 1 } else { 0 };
        let begin = first + place + before;
        begin..begin + if place == copied { count } else { 1 }
    }

    /// Whether the part at a place has copies, or a partial state, of which there may be one.
    fn is_copied(&self, place: usize) -> bool {
        place == self.copied.0 && (self.copied.1 > 1 || self.is_partial)
    }

    /// The copies, or the first part of a stage without copies.
    fn copied(&self, first: usize) -> Range<usize> {
        self.at(self.copied.0, first)
    }

    /// The parts that do work side by side: the copies, or the workers.
    fn beside(&self, first: usize) -> Range<usize> {
        match self.shape {
            Shape::Workers => {
                first + self.fed + 1..(first + self.parts - 1).max(first + self.fed + 2)
            }
            Shape::Chain => self.copied(first),
        }
    }

    /// The parts that external inputs enter.
    fn entries(&self, first: usize) -> Range<usize> {
        self.at(self.fed, first)
    }

    /// The parts that rows leave.
    fn last(&self, first: usize) -> Range<usize> {
        self.at(self.parts - 1, first)
    }

    /// Number of ports by which a part sends chunks to later parts.
    fn chunk_ports(&self, position: usize) -> usize {
        let place = (0..self.parts).find(|&place| self.at(place, 0).contains(&position));
        let place = place.expect("each part has a place");
        let own = self.parts - self.fed;
        match self.shape {
            _ if place + 1 == self.parts => 0,
            // Without workers, the two parts are a chain.
            Shape::Workers if place == self.fed => (own - 2).max(1),
            Shape::Chain | Shape::Workers => 1,
        }
    }

    /// For each output of a stage, the parts that the rows leave, and their port, which comes after
    /// the ports for chunks. The last `early` outputs leave the first part.
    fn exits(&self, first: usize, outputs: &[SchemaRef], early: usize) -> Vec<Exit> {
        let late = outputs.len() - early;
        let exit = |port: usize| {
            // An operator of one part has no ports for chunks, so both cases are the same.
            let parts = if port < late { self.last(first) } else { self.entries(first) };
            let port = self.chunk_ports(parts.start - first) + port;
            Exit { parts, port }
        };
        (0..outputs.len()).map(exit).collect()
    }

    /// The core of one of `parts` parts of a stage that names `cores`. Further parts join the last
    /// core. The first worker shares the core of the first part, which has little to do.
    fn core_of(&self, parts: usize, position: usize, cores: &[usize]) -> Option<usize> {
        let place = match self.shape {
            Shape::Chain => position,
            Shape::Workers if position + 1 == parts => position,
            Shape::Workers => position.saturating_sub(1),
        };
        cores.get(place).or(cores.last()).copied()
    }
}

/// Tells the parts of a stage about its copies.
fn tell(parts: &mut [Part], layout: &Layout) {
    let copied = layout.copied(0);
    for (index, part) in parts.iter_mut().enumerate() {
        let Body::Operator(operator) = &mut part.body else { continue };
        if !copied.contains(&index) {
            operator.is_beside(copied.len());
        } else if copied.len() > 1 {
            operator.is_copied();
        }
    }
}

/// The parts of a stage, with `more` copies of one of them behind the first copy. Copies have
/// numbers from 1.
fn with_copies(parts: Vec<Part>, copies: Option<&Copies>, more: Vec<Body>) -> Vec<Part> {
    let Some(Copies { part: copied, .. }) = copies else { return parts };
    let mut more = Some(more);
    let mut all = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        if index != *copied {
            all.push(part);
            continue;
        }
        let Part { name, load, body } = part;
        let bodies = std::iter::once(body).chain(more.take().into_iter().flatten());
        let names = repeat_n(name, usize::MAX).zip(1_usize..);
        all.extend(bodies.zip(names).map(|(body, (name, number))| {
            let name =
                if name.is_empty() { number.to_string() } else { format!("{name} {number}") };
            Part { name: Cow::Owned(name), load, body }
        }));
    }
    all
}

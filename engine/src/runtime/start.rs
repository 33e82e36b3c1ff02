//! The start of a run: makes nodes of a topology, connects the nodes by local targets or edges, and
//! starts a thread for each group.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use crossbeam_channel::{Sender, bounded};
use rustix::event::{EventfdFlags, eventfd};

use super::group::RunningGroup;
use super::node::Node;
use super::node::outputs::OutputTarget;
use super::poller::{Poller, Readiness};
use super::queries::allowance::Allowance;
use super::queries::control::{Address, Control, MAILBOX_QUERIES_MAX};
use super::queries::{QueriedStage, QueryHandle};
use super::running::{Running, Worker};
use super::shared::{Shared, Together};
use super::{RunHandle, RunOptions, StageNumbers};
use crate::channel::{Doorbell, Mailbox, MailboxSender, QueueLimits, edge, mailbox};
use crate::error::{RunError, RunErrorCause};
use crate::graph::{Link, PlacedPart, ReplyPath, Route, StageInfo, Topology};
use crate::memory::{MemoryBudget, Reservation};
use crate::metrics::{Metrics, PartCounters, WatchedEdge};
use crate::placement::Plan;

/// Maximum number of replies that wait for a part. A part that awaits an answer gets one at a time;
/// but chunks to be recycled wait until the part takes them.
const REPLIES_MAX: usize = 2 * crate::operator::REPLIES_IN_FLIGHT_MAX;

/// The queues take at most one part in this many of the memory that is left to the pipeline.
const QUEUES_PART: usize = 4;

impl Topology {
    /// Starts the threads of this pipeline.
    ///
    /// # Errors
    /// If the operating system refuses a thread. The threads that were already started end.
    pub fn start(self, options: RunOptions) -> Result<Running, RunError> {
        start(self, options)
    }

    /// Runs this pipeline to its end.
    ///
    /// # Errors
    /// The first cause of a failure.
    pub fn run(self, options: RunOptions) -> Result<Metrics, RunError> {
        self.start(options)?.join()
    }
}

fn start(topology: Topology, options: RunOptions) -> Result<Running, RunError> {
    let Topology { stages, parts, links, replies, plan, memory, .. } = topology;
    let mut wiring = Wiring::new(&plan, parts, options);
    let of_queues = wiring.limit_queues(&links, &memory);
    let stage_numbers = wiring.stage_numbers(&stages);
    for link in links {
        wiring.join(link);
    }
    for path in replies {
        wiring.join_back(path);
    }
    let poller = wiring.add_poller();
    wiring.share_allowances(&stages);
    wiring.keep_copies(&stages);
    let asked = |stage: &StageInfo| QueriedStage {
        id: stage.id.clone(),
        copies: stage.asked_parts().map(|part| wiring.address(part)).collect(),
        queries: wiring.node(stage.asked_parts().start).queries(),
    };
    let addresses = stages.iter().map(asked).collect();
    let (ended_sender, ended) = bounded(plan.groups.len());
    let end_event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let end_event = Arc::new(end_event.map_err(|error| {
        let node = &wiring.nodes[0][0];
        node.error(RunErrorCause::Thread(error.into()))
    })?);
    let shared = Arc::new(Shared::new(wiring.bells.clone(), wiring.needy_sinks()));
    let mut running = Running {
        workers: Vec::new(),
        ended,
        end_event: Arc::clone(&end_event),
        workers_running: 0,
        poller: Some(poller),
        _memory: of_queues,
        handle: RunHandle {
            shared: Arc::clone(&shared),
            queries: QueryHandle::new(addresses),
            stages: stage_numbers.into(),
            edges: wiring.edges.into(),
        },
    };
    let groups = wiring.nodes.into_iter().zip(wiring.threads);
    for (index, (nodes, thread)) in groups.enumerate() {
        let ThreadEnds { bell, mailbox, allowance, .. } = thread;
        let mut group = RunningGroup::new(nodes, mailbox, bell, Arc::clone(&shared), allowance);
        group.may_spin = plan.has_core_per_group;
        let core = plan.groups[index].core;
        running.workers.push(spawn(
            index,
            group,
            core,
            ended_sender.clone(),
            Arc::clone(&end_event),
        )?);
        running.workers_running += 1;
    }
    Ok(running)
}

fn spawn(
    index: usize,
    group: RunningGroup,
    core: Option<usize>,
    ended: Sender<usize>,
    end_event: Arc<OwnedFd>,
) -> Result<Worker, RunError> {
    let label = |node: &Node| (node.label().to_owned(), node.operator());
    let labels: Vec<_> = group.nodes.iter().map(label).collect();
    let current = Arc::clone(&group.current);
    let first = labels[0].0.clone();
    let refused = |error| RunError {
        stage: labels[0].0.clone(),
        operator: labels[0].1,
        cause: RunErrorCause::Thread(error),
    };
    let handle = thread::Builder::new()
        .name(format!("trommel {first}"))
        .spawn(move || {
            // Locals are dropped in reverse order. So the end is announced after the edges of the
            // group are closed, even if closing an edge panics.
            let _announcement = Announcement { ended, end_event, index };
            let mut group = group;
            pin(core);
            work(&mut group);
        })
        .map_err(refused)?;
    Ok(Worker { handle: Some(handle), labels, current })
}

/// Announces the end of a worker when the value is dropped.
struct Announcement {
    ended: Sender<usize>,
    end_event: Arc<OwnedFd>,
    index: usize,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // There is no receiver when the run was dropped before its end.
        let _ = self.ended.send(self.index);
        // A write fails only at the greatest number, and a descriptor with that number is readable,
        // too.
        let _ = rustix::io::write(&self.end_event, &1_u64.to_ne_bytes());
    }
}

fn pin(core: Option<usize>) {
    if let Some(id) = core
        && !core_affinity::set_for_current(core_affinity::CoreId { id })
    {
        tracing::warn!(core = id, "the operating system refused to pin a thread");
    }
}

fn work(group: &mut RunningGroup) {
    let shared = Arc::clone(&group.shared);
    let result = catch_unwind(AssertUnwindSafe(|| group.run()));
    let error = match result {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(payload) => {
            let node = &group.nodes[group.current.load(Ordering::Relaxed)];
            node.error(RunErrorCause::panicked(&*payload))
        }
    };
    group.publish_last();
    shared.fail(error);
}

/// The ends by which others reach a thread.
struct ThreadEnds {
    bell: Arc<Doorbell>,
    mail: MailboxSender<Control>,
    mailbox: Mailbox<Control>,
    allowance: Arc<Allowance>,
}

impl ThreadEnds {
    fn new() -> Self {
        let (mail, mailbox) = mailbox(MAILBOX_QUERIES_MAX);
        Self { bell: Arc::new(Doorbell::new()), mail, mailbox, allowance: Arc::default() }
    }
}

/// The nodes and threads of a run while they are connected.
struct Wiring {
    /// Group of each part, and its index in the group.
    places: Vec<(usize, usize)>,
    nodes: Vec<Vec<Node>>,
    threads: Vec<ThreadEnds>,
    bells: Vec<Arc<Doorbell>>,
    edges: Vec<WatchedEdge>,
    counters: Vec<(String, Arc<PartCounters>)>,
    options: RunOptions,
}

impl Wiring {
    /// Number of sinks that need input. The caller has connected all parts before.
    fn needy_sinks(&mut self) -> usize {
        let nodes = self.nodes.iter_mut().flatten();
        nodes.map(|node| node.note_need()).filter(|&needs_input| needs_input).count()
    }

    fn new(plan: &Plan, parts: Vec<PlacedPart>, options: RunOptions) -> Self {
        let mut places = vec![(0, 0); parts.len()];
        for (group, planned) in plan.groups.iter().enumerate() {
            for (index, &part) in planned.parts.iter().enumerate() {
                places[part] = (group, index);
            }
        }
        let threads: Vec<_> = plan.groups.iter().map(|_| ThreadEnds::new()).collect();
        let mut wiring = Self {
            places,
            nodes: plan.groups.iter().map(|_| Vec::new()).collect(),
            bells: threads.iter().map(|thread| Arc::clone(&thread.bell)).collect(),
            threads,
            edges: Vec::new(),
            counters: Vec::new(),
            options,
        };
        // Parts come in topological order, so the parts of each group are in that order.
        for (index, placed) in parts.into_iter().enumerate() {
            let counters = Arc::new(PartCounters::new());
            wiring.counters.push((placed.part.name.to_string(), Arc::clone(&counters)));
            let node = Node::new(placed, counters);
            wiring.nodes[wiring.places[index].0].push(node);
        }
        wiring
    }

    /// Lowers the byte limit of each queue so that all queues together take at most a part of the
    /// memory that is left to the pipeline, and reserves that memory.
    fn limit_queues(&mut self, links: &[Link], memory: &MemoryBudget) -> Option<Reservation> {
        let is_queue = |link: &&Link| self.places[link.from].0 != self.places[link.to].0;
        let queues = links.iter().filter(is_queue).count();
        if queues == 0 {
            return None;
        }
        let share = memory.left() / QUEUES_PART / queues;
        let bytes = usize::try_from(self.options.queue.bytes).unwrap_or(usize::MAX).min(share);
        self.options.queue.bytes = bytes as u64;
        let reserved = memory.reserve(bytes * queues);
        Some(reserved.expect("no one else reserves before the threads start"))
    }

    fn stage_numbers(&self, stages: &[StageInfo]) -> Vec<StageNumbers> {
        let numbers = |stage: &StageInfo| StageNumbers {
            id: stage.id.clone(),
            operator: stage.operator,
            parts: stage.parts.iter().map(|&part| self.counters[part].clone()).collect(),
            beside: stage.beside.start - stage.parts[0]..stage.beside.end - stage.parts[0],
        };
        stages.iter().map(numbers).collect()
    }

    fn node(&mut self, part: usize) -> &mut Node {
        let (group, index) = self.places[part];
        &mut self.nodes[group][index]
    }

    fn address(&mut self, part: usize) -> Address {
        let (group, index) = self.places[part];
        let (stage, thread) = (self.nodes[group][index].stage(), &self.threads[group]);
        Address::new(thread.mail.clone(), Arc::clone(&thread.bell), index, stage)
    }

    /// Lets every node wait for descriptors.
    fn add_poller(&mut self) -> Arc<Poller> {
        let groups = self.nodes.iter().zip(&self.bells);
        let bells = groups.flat_map(|(nodes, bell)| nodes.iter().map(|_| Arc::clone(bell)));
        let poller = Poller::new(bells);
        for (index, node) in self.nodes.iter_mut().flatten().enumerate() {
            node.set_readiness(Readiness::new(&poller, index));
        }
        poller
    }

    /// Lets the first part of each stage see whether later parts have time for queries.
    fn share_allowances(&mut self, stages: &[StageInfo]) {
        for stage in stages {
            let first = self.places[stage.parts[0]];
            let groups: BTreeSet<usize> =
                stage.parts.iter().map(|&part| self.places[part].0).collect();
            let later = groups.into_iter().filter(|&group| group != first.0);
            let later = later.map(|group| Arc::clone(&self.threads[group].allowance)).collect();
            self.nodes[first.0][first.1].tickets.set_later_allowances(later);
        }
    }

    /// Keeps the threads of copies that are asked together until the last of these copies ends.
    fn keep_copies(&mut self, stages: &[StageInfo]) {
        for stage in stages {
            let copies = stage.asked_parts();
            if copies.len() < 2 || self.node(copies.start).queries().is_empty() {
                continue;
            }
            let bell = |part: usize| Arc::clone(&self.bells[self.places[part].0]);
            let together = Arc::new(Together::new(copies.clone().map(bell).collect()));
            for part in copies {
                self.node(part).ends_together(Arc::clone(&together));
            }
        }
    }

    /// Connects an output of one part to an input of another.
    fn join(&mut self, link: Link) {
        let (from, to) = (self.places[link.from], self.places[link.to]);
        if from.0 == to.0 {
            let inputs = &mut self.node(link.to).inputs;
            let lane = match link.route {
                Route::Gathered(gather) => {
                    Some((gather, inputs.add_lane(gather, link.to_port, None)))
                }
                Route::Direct | Route::Lane | Route::Dealt(_) => {
                    inputs.add_local(link.to_port);
                    None
                }
            };
            let target = OutputTarget::Local { node: to.1, port: link.to_port, lane, pushed: 0 };
            self.node(link.from).outputs.add_target(link.from_port, link.route, target);
            return;
        }
        let (producer, consumer) = (Arc::clone(&self.bells[from.0]), Arc::clone(&self.bells[to.0]));
        let (sender, receiver, state) = edge(self.options.queue, producer, consumer);
        let [from, to] = [link.from, link.to].map(|part| self.node(part).label().to_owned());
        self.edges.push(WatchedEdge { from, to, state });
        let target = OutputTarget::Remote(sender);
        self.node(link.from).outputs.add_target(link.from_port, link.route, target);
        let inputs = &mut self.node(link.to).inputs;
        match link.route {
            Route::Gathered(gather) => {
                inputs.add_lane(gather, link.to_port, Some(receiver));
            }
            Route::Direct | Route::Lane | Route::Dealt(_) => {
                inputs.add_edge(link.to_port, receiver)
            }
        }
    }

    /// Connects a part to the earlier part that takes its replies.
    fn join_back(&mut self, path: ReplyPath) {
        let (from, to) = (self.places[path.from], self.places[path.to]);
        if from.0 == to.0 {
            let target = OutputTarget::Local { node: to.1, port: 0, lane: None, pushed: 0 };
            self.node(path.from).outputs.set_reply_target(target);
            return;
        }
        let [producer, consumer] = [from.0, to.0].map(|group| Arc::clone(&self.bells[group]));
        // The edge has room for all replies: two parts that wait for each other would never go on.
        let limits = QueueLimits { batches: REPLIES_MAX, bytes: u64::MAX };
        let (sender, receiver, _) = edge(limits, producer, consumer);
        self.node(path.from).outputs.set_reply_target(OutputTarget::Remote(sender));
        self.node(path.to).inputs.set_reply_edge(receiver);
        if path.has_queries {
            let address = self.address(path.from);
            self.node(path.to).outputs.set_next_part(address);
        }
    }
}

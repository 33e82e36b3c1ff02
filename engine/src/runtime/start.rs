//! From a topology to threads: makes nodes, joins them by local targets or edges, and starts the
//! groups.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use crossbeam_channel::{Sender, bounded};

use super::control::{Address, Control, MAILBOX_QUERIES_MAX};
use super::group::Group;
use super::node::{Input, Node, Target};
use super::shared::Shared;
use super::{RunOptions, Running, StageNumbers, Worker};
use crate::channel::{Doorbell, Mailbox, QueueLimits, Slot, edge, mailbox};
use crate::error::{RunError, RunErrorCause};
use crate::graph::{Link, PlacedPart, StageInfo, Topology};
use crate::metrics::{PartCounters, WatchedEdge};
use crate::placement::Plan;
use crate::query::QueryHandle;

/// Replies that may wait for a part. To one that asks and waits there is one at a time; but what is
/// given back to it, to be used again, waits until it looks.
const REPLIES_MAX: usize = 2 * crate::operator::GIVEN_BACK_MAX;

pub(super) fn start(topology: Topology, options: RunOptions) -> Result<Running, RunError> {
    let Topology { stages, parts, links, plan } = topology;
    let mut wiring = Wiring::new(&plan, parts, options);
    let stage_numbers = wiring.stage_numbers(&stages);
    for link in links {
        wiring.join(link);
    }
    let may_spin = plan.has_core_per_group;
    let addresses =
        stages.iter().map(|stage| (stage.id.clone(), wiring.address(stage.parts[0]))).collect();
    let (ended_sender, ended) = bounded(plan.groups.len());
    let mut running = Running {
        workers: Vec::new(),
        ended,
        workers_running: 0,
        shared: Arc::new(Shared::new(wiring.bells.clone())),
        queries: QueryHandle::new(addresses),
        stages: stage_numbers,
        edges: wiring.edges,
        ended_at: None,
    };
    let groups = wiring.nodes.into_iter().zip(wiring.bells).zip(wiring.mailboxes);
    for (index, ((nodes, bell), (_, mailbox))) in groups.enumerate() {
        let group = Group::new(nodes, mailbox, bell, Arc::clone(&running.shared), may_spin);
        let core = plan.groups[index].core;
        running.workers.push(spawn(index, group, core, ended_sender.clone())?);
        running.workers_running += 1;
    }
    Ok(running)
}

fn spawn(
    index: usize,
    group: Group,
    core: Option<usize>,
    ended: Sender<usize>,
) -> Result<Worker, RunError> {
    let labels: Vec<_> = group.nodes.iter().map(|n| (n.label.clone(), n.operator)).collect();
    let current = Arc::clone(&group.current);
    let first = group.nodes[0].label.clone();
    let refused = |error| RunError {
        stage: labels[0].0.clone(),
        operator: labels[0].1,
        cause: RunErrorCause::Thread(error),
    };
    let handle = thread::Builder::new()
        .name(format!("trommel {first}"))
        .spawn(move || {
            // Locals are dropped in reverse order, so the end is announced when all that the group
            // owned is closed, even if closing it panics.
            let _announcement = Announcement { ended, index };
            let mut group = group;
            pin(core);
            work(&mut group);
        })
        .map_err(refused)?;
    Ok(Worker { handle: Some(handle), labels, current })
}

/// Says that a worker has ended, when it is dropped.
struct Announcement {
    ended: Sender<usize>,
    index: usize,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // Nobody listens when the run was dropped without waiting for it.
        let _ = self.ended.send(self.index);
    }
}

fn pin(core: Option<usize>) {
    if let Some(id) = core
        && !core_affinity::set_for_current(core_affinity::CoreId { id })
    {
        tracing::warn!(core = id, "the operating system refused to pin a thread");
    }
}

fn work(group: &mut Group) {
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
    shared.fail(error);
}

/// The threads of a run while they are put together.
struct Wiring {
    /// Of each part, its group and its index in it.
    places: Vec<(usize, usize)>,
    nodes: Vec<Vec<Node>>,
    bells: Vec<Arc<Doorbell>>,
    mailboxes: Vec<(Slot<Control>, Mailbox<Control>)>,
    edges: Vec<WatchedEdge>,
    counters: Vec<(String, Arc<PartCounters>)>,
    options: RunOptions,
}

impl Wiring {
    fn new(plan: &Plan, parts: Vec<PlacedPart>, options: RunOptions) -> Self {
        let mut places = vec![(0, 0); parts.len()];
        for (group, planned) in plan.groups.iter().enumerate() {
            for (index, &part) in planned.parts.iter().enumerate() {
                places[part] = (group, index);
            }
        }
        let mut wiring = Self {
            places,
            nodes: plan.groups.iter().map(|_| Vec::new()).collect(),
            bells: plan.groups.iter().map(|_| Arc::new(Doorbell::new())).collect(),
            mailboxes: plan.groups.iter().map(|_| mailbox(MAILBOX_QUERIES_MAX)).collect(),
            edges: Vec::new(),
            counters: Vec::new(),
            options,
        };
        // Parts come in topological order, and so each group lists its own.
        for (index, placed) in parts.into_iter().enumerate() {
            let counters = Arc::new(PartCounters::new());
            wiring.counters.push((placed.part.name.to_string(), Arc::clone(&counters)));
            let node = Node::new(placed, counters);
            wiring.nodes[wiring.places[index].0].push(node);
        }
        wiring
    }

    fn stage_numbers(&self, stages: &[StageInfo]) -> Vec<StageNumbers> {
        let numbers = |stage: &StageInfo| StageNumbers {
            id: stage.id.clone(),
            operator: stage.operator,
            parts: stage.parts.iter().map(|&part| self.counters[part].clone()).collect(),
        };
        stages.iter().map(numbers).collect()
    }

    fn node(&mut self, part: usize) -> &mut Node {
        let (group, index) = self.places[part];
        &mut self.nodes[group][index]
    }

    fn address(&mut self, part: usize) -> Address {
        let (group, index) = self.places[part];
        let stage = &self.nodes[group][index].stage;
        Address::new(self.mailboxes[group].0.clone(), Arc::clone(&self.bells[group]), index, stage)
    }

    /// Makes the way from one part to another, and for parts of one operator the way back for
    /// replies.
    fn join(&mut self, link: Link) {
        self.node(link.to).open_inputs += 1;
        let (from, to) = (self.places[link.from], self.places[link.to]);
        if from.0 == to.0 {
            let target = Target::Local { node: to.1, port: link.to_port, pushed: 0 };
            self.node(link.from).add_target(link.from_port, target);
            if link.is_inner {
                let back = Target::Local { node: from.1, port: 0, pushed: 0 };
                self.node(link.to).reply_output = Some(back);
            }
            return;
        }
        let (producer, consumer) = (Arc::clone(&self.bells[from.0]), Arc::clone(&self.bells[to.0]));
        let (sender, receiver, state) =
            edge(self.options.queue, Arc::clone(&producer), Arc::clone(&consumer));
        let labels = (self.node(link.from).label.clone(), self.node(link.to).label.clone());
        self.edges.push(WatchedEdge { from: labels.0, to: labels.1, state });
        self.node(link.from).add_target(link.from_port, Target::Remote(sender));
        let input = Input { port: link.to_port, edge: receiver, has_ended: false };
        self.node(link.to).inputs.push(input);
        if link.is_inner {
            let limits = QueueLimits { batches: REPLIES_MAX, bytes: u64::MAX };
            let (sender, receiver, _) = edge(limits, consumer, producer);
            self.node(link.to).reply_output = Some(Target::Remote(sender));
            self.node(link.from).reply_input = Some(receiver);
            self.node(link.from).next_part = Some(self.address(link.to));
        }
    }
}

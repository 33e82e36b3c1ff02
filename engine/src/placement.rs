//! Placement: groups of parts that share a thread, and the cores that threads are pinned to.
//!
//! Parts are grouped into at most as many threads as the process may use cores. Consecutive parts
//! of the graph stay together. Heavy parts are spread evenly over the free cores, and light parts
//! join the part before. Moderate parts count as heavy if there are cores for all of them. The
//! workers of a stage are spread over the cores that are left, and then over all cores. A stage
//! that names cores gets threads for its parts that are pinned to these cores. If the named cores
//! leave none, the other parts join the threads of the named cores.
//!
//! The operating system places the other threads, since it knows the other load of the machine: two
//! pipelines that pinned themselves would share their first cores while other cores idle. With
//! `pin`, each thread is pinned to a core of its own. With at most as many threads as cores, a
//! thread spins for a moment before it parks; with more threads, spinning is tens of times slower.

use std::ops::Range;
use std::sync::OnceLock;
use std::thread::available_parallelism;

use crate::operator::Load;

/// Limit of the numbers of cores to which a thread can be pinned: the size of a fixed-size affinity
/// mask of the operating system.
const CORE_LIMIT: usize = 1024;

/// The cores that this process may use: the affinity mask at the first call.
///
/// The mask is read once, because the operating system reports the mask of the *calling thread*: a
/// thread that was pinned before would see a single core.
pub fn available_cores() -> &'static [usize] {
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    CORES.get_or_init(|| {
        let ids = core_affinity::get_core_ids().unwrap_or_default();
        let mut cores: Vec<usize> = ids.iter().map(|c| c.id).filter(|&c| c < CORE_LIMIT).collect();
        cores.sort_unstable();
        cores.dedup();
        cores
    })
}

/// Number of cores that this process may use at once: all [`available_cores`], or fewer where the
/// control group had a quota of processor time at the first call.
pub fn parallelism() -> usize {
    static PARALLELISM: OnceLock<usize> = OnceLock::new();
    *PARALLELISM.get_or_init(|| {
        let cores = available_cores().len();
        // Where the operating system does not tell the number, the affinity mask decides.
        available_parallelism().map_or(cores, |allowed| allowed.get().min(cores))
    })
}

/// Placement of parts that name no core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Placement {
    /// Heavy parts on cores of their own, while there are cores.
    #[default]
    Auto,
    /// All parts that name no core on one thread.
    Fused,
}

/// The data of a part that placement depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartRequest {
    /// The number of its stage. Parts of a stage follow each other.
    pub stage: usize,
    /// Its amount of work.
    pub load: Load,
    /// The core that the configuration names for the part.
    pub core: Option<usize>,
    /// An earlier part whose thread this part shares; `None` if the part is placed by itself.
    pub with: Option<usize>,
}

/// One thread: its parts, in topological order, and its core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Indices of parts.
    pub parts: Vec<usize>,
    /// The core to which the thread is pinned, if it is pinned.
    pub core: Option<usize>,
}

/// The result of placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The threads.
    pub groups: Vec<Group>,
    /// Whether there are at most as many threads as cores. Only then may a thread spin.
    pub has_core_per_group: bool,
}

/// The cores that parts are placed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cores<'a> {
    /// The numbers of the cores.
    pub ids: &'a [usize],
    /// Number of cores that may be busy at once, at least 1.
    pub parallelism: usize,
    /// Whether every thread is pinned, not only the threads of named cores.
    pub pin: bool,
}

/// Groups `parts` (in topological order) on `cores`.
///
/// # Examples
/// ```
/// use trommel_engine::operator::Load;
/// use trommel_engine::placement::{Cores, PartRequest, Placement, place};
///
/// let part = |(stage, load)| PartRequest { stage, load, core: None, with: None };
/// let parts = [(0, Load::Heavy), (1, Load::Light), (2, Load::Heavy), (3, Load::Heavy)].map(part);
/// let cores = Cores { ids: &[0, 1], parallelism: 2, pin: false };
/// let plan = place(&parts, cores, Placement::Auto);
/// assert_eq!(plan.groups[0].parts, [0, 1, 2]);
/// assert_eq!(plan.groups[1].parts, [3]);
/// ```
#[must_use]
pub fn place(parts: &[PartRequest], cores: Cores<'_>, placement: Placement) -> Plan {
    let mut groups = named_groups(parts);
    let named: Vec<usize> = groups.iter().filter_map(|g| g.core).collect();
    let free: Vec<usize> = cores.ids.iter().copied().filter(|c| !named.contains(c)).collect();
    let threads_max = match placement {
        Placement::Auto => free.len().min(cores.parallelism.saturating_sub(named.len())).max(1),
        Placement::Fused => 1,
    };
    if free.is_empty() && !groups.is_empty() {
        join_named_groups(parts, &mut groups);
    } else {
        groups.extend(shared_groups(parts, threads_max));
    }
    join_companions(parts, &mut groups);
    let has_core_per_group = groups.len() <= cores.ids.len().min(cores.parallelism);
    if cores.pin && groups.len() <= cores.ids.len() {
        let unpinned = groups.iter_mut().filter(|group| group.core.is_none());
        unpinned.zip(free).for_each(|(group, core)| group.core = Some(core));
    }
    groups.sort_by_key(|g| g.parts[0]);
    Plan { groups, has_core_per_group }
}

/// Puts each part that shares the thread of an earlier part into the group of that part.
fn join_companions(parts: &[PartRequest], groups: &mut [Group]) {
    let companions = || parts.iter().enumerate().filter(|(_, part)| part.with.is_some());
    if companions().next().is_none() {
        return;
    }
    let mut group_of = vec![0; parts.len()];
    for (index, group) in groups.iter().enumerate() {
        group.parts.iter().for_each(|&part| group_of[part] = index);
    }
    for (index, part) in companions() {
        let with = part.with.expect("a companion has a leader");
        group_of[index] = group_of[with];
        groups[group_of[with]].parts.push(index);
    }
    groups.iter_mut().for_each(|group| group.parts.sort_unstable());
}

/// One group for each core that was named.
fn named_groups(parts: &[PartRequest]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let Some(core) = part.core else { continue };
        match groups.iter_mut().find(|g| g.core == Some(core)) {
            Some(group) => group.parts.push(index),
            None => groups.push(Group { parts: vec![index], core: Some(core) }),
        }
    }
    groups
}

/// Without a free core, a part that names no core joins the group of the part before. Parts before
/// the first named part join the group of that part.
fn join_named_groups(parts: &[PartRequest], groups: &mut [Group]) {
    let mut current = parts.iter().position(|part| part.core.is_some()).unwrap_or(0);
    for (index, part) in parts.iter().enumerate() {
        if part.core.is_some() {
            current = index;
            continue;
        }
        if part.with.is_some() {
            continue;
        }
        let group = groups.iter_mut().find(|group| group.parts.contains(&current));
        group.expect("a named part has a group").parts.push(index);
    }
    for group in groups {
        group.parts.sort_unstable();
    }
}

/// Puts the parts that name no core into at most `threads_max` groups: runs of consecutive parts
/// with about the same number of heavy parts. The workers of each stage are spread over these
/// groups and the threads that are left.
fn shared_groups(parts: &[PartRequest], threads_max: usize) -> Vec<Group> {
    let is_shared = |part: &PartRequest| part.core.is_none() && part.with.is_none();
    let shared = (0..parts.len()).filter(|&i| is_shared(&parts[i]));
    let (workers, others): (Vec<usize>, Vec<usize>) =
        shared.partition(|&i| parts[i].load == Load::Worker);
    let mut groups = runs(parts, &others, threads_max);
    let stages = || workers.chunk_by(|&a, &b| parts[a].stage == parts[b].stage);
    let most = stages().map(<[usize]>::len).max().unwrap_or(0);
    let (first_own, own) = (groups.len(), most.min(threads_max - groups.len()));
    groups.resize_with(first_own + own, || Group { parts: Vec::new(), core: None });
    let mut held = vec![0_usize; groups.len()];
    for workers in stages() {
        let mut of_stage = vec![0_usize; groups.len()];
        let mut add = |worker, among: Range<usize>| {
            let least = among.min_by_key(|&group| (of_stage[group], held[group]));
            let least = least.expect("there is at least one thread");
            groups[least].parts.push(worker);
            held[least] += 1;
            of_stage[least] += 1;
        };
        // The first worker shares a thread before the other workers do, as on named cores.
        let (sharing, alone) = workers.split_at(workers.len() - own.min(workers.len()));
        alone.iter().for_each(|&worker| add(worker, first_own..first_own + own));
        sharing.iter().for_each(|&worker| add(worker, 0..first_own + own));
    }
    groups.iter_mut().for_each(|group| group.parts.sort_unstable());
    groups
}

/// Cuts the `shared` parts into at most `threads_max` runs with about the same number of heavy
/// parts.
fn runs(parts: &[PartRequest], shared: &[usize], threads_max: usize) -> Vec<Group> {
    let count = |load| shared.iter().filter(|&&i| parts[i].load == load).count();
    let (moderate, heavy) = (count(Load::Moderate), count(Load::Heavy));
    // Moderate parts are promoted together: if only the first ones were, one core would be left to
    // all parts that follow.
    let has_cores = moderate + heavy <= threads_max;
    let heavy = if has_cores { moderate + heavy } else { heavy };
    let threads = heavy.clamp(1, threads_max);
    let mut groups: Vec<Group> = Vec::new();
    let mut heavy_seen = 0_usize;
    for &index in shared {
        heavy_seen += usize::from(match parts[index].load {
            Load::Light | Load::Worker => false,
            Load::Moderate => has_cores,
            Load::Heavy => true,
        });
        let thread = heavy_seen.saturating_sub(1) * threads / heavy.max(1);
        if groups.len() <= thread {
            groups.push(Group { parts: Vec::new(), core: None });
        }
        groups[thread].parts.push(index);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAVY: PartRequest = PartRequest { stage: 0, load: Load::Heavy, core: None, with: None };
    const LIGHT: PartRequest = PartRequest { stage: 0, load: Load::Light, core: None, with: None };

    fn cores(ids: &[usize]) -> Cores<'_> {
        Cores { ids, parallelism: ids.len(), pin: false }
    }

    fn pinned(ids: &[usize]) -> Cores<'_> {
        Cores { pin: true, ..cores(ids) }
    }

    fn parts_of(plan: &Plan) -> Vec<Vec<usize>> {
        plan.groups.iter().map(|g| g.parts.clone()).collect()
    }

    fn cores_of(plan: &Plan) -> Vec<Option<usize>> {
        plan.groups.iter().map(|g| g.core).collect()
    }

    #[test]
    fn every_heavy_part_gets_a_thread_while_there_are_cores() {
        let parts = [HEAVY, LIGHT, HEAVY, LIGHT, HEAVY];
        let plan = place(&parts, cores(&[0, 1, 2, 3]), Placement::Auto);
        assert_eq!(parts_of(&plan), [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(cores_of(&plan), [None; 3], "no core was named");
        let plan = place(&parts, pinned(&[0, 1, 2, 3]), Placement::Auto);
        assert_eq!(cores_of(&plan), [Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn heavy_parts_are_spread_evenly_over_too_few_cores() {
        let plan = place(&[HEAVY, HEAVY, HEAVY, HEAVY, LIGHT], pinned(&[4, 6]), Placement::Auto);
        assert_eq!(parts_of(&plan), [vec![0, 1], vec![2, 3, 4]]);
        assert_eq!(cores_of(&plan), [Some(4), Some(6)]);
        assert!(plan.has_core_per_group);
    }

    #[test]
    fn moderate_parts_are_light_where_the_cores_do_not_suffice() {
        let moderate = PartRequest { stage: 0, load: Load::Moderate, core: None, with: None };
        let parts = [HEAVY, HEAVY, moderate, LIGHT];
        let on = |ids: &[usize]| parts_of(&place(&parts, cores(ids), Placement::Auto));
        assert_eq!(on(&[0]), [vec![0, 1, 2, 3]]);
        assert_eq!(on(&[0, 1]), [vec![0], vec![1, 2, 3]]);
        assert_eq!(on(&[0, 1, 2]), [vec![0], vec![1], vec![2, 3]]);
    }

    #[test]
    fn workers_are_spread_over_all_threads() {
        let worker = PartRequest { stage: 0, load: Load::Worker, core: None, with: None };
        let with = |sources: usize, workers: usize, ids: &[usize]| {
            let mut parts = vec![HEAVY; sources];
            parts.push(LIGHT);
            parts.extend(vec![worker; workers]);
            parts.push(LIGHT);
            parts_of(&place(&parts, cores(ids), Placement::Auto))
        };
        assert_eq!(with(1, 2, &[0, 1]), [vec![0, 1, 2, 4], vec![3]]);
        assert_eq!(with(2, 2, &[0, 1]), [vec![0, 3], vec![1, 2, 4, 5]]);
        assert_eq!(with(1, 3, &[0, 1, 2]), [vec![0, 1, 2, 5], vec![3], vec![4]]);
        assert_eq!(with(1, 4, &[0, 1]), [vec![0, 1, 2, 3, 6], vec![4, 5]]);
        assert_eq!(with(1, 3, &[0]), [vec![0, 1, 2, 3, 4, 5]]);
    }

    #[test]
    fn workers_of_each_stage_are_spread_over_all_threads() {
        let part = |(stage, load)| PartRequest { stage, load, core: None, with: None };
        let stage = |stage| {
            [
                (stage, Load::Light),
                (stage, Load::Worker),
                (stage, Load::Worker),
                (stage, Load::Light),
            ]
        };
        let parts: Vec<PartRequest> = [[(0, Load::Heavy)].as_slice(), &stage(1), &stage(2)]
            .concat()
            .into_iter()
            .map(part)
            .collect();
        let on = |ids: &[usize]| parts_of(&place(&parts, cores(ids), Placement::Auto));
        assert_eq!(on(&[0, 1]), [vec![0, 1, 2, 4, 5, 6, 8], vec![3, 7]]);
        assert_eq!(on(&[0, 1, 2, 3]), [vec![0, 1, 4, 5, 8], vec![2, 6], vec![3, 7]]);
        assert_eq!(on(&[0]), [(0..9).collect::<Vec<_>>()]);
    }

    #[test]
    fn a_quota_of_processor_time_limits_the_threads() {
        let quota = Cores { ids: &[0, 1, 2, 3], parallelism: 2, pin: false };
        let plan = place(&[HEAVY, HEAVY, HEAVY, HEAVY], quota, Placement::Auto);
        assert_eq!(parts_of(&plan), [vec![0, 1], vec![2, 3]]);
        assert!(plan.has_core_per_group);
        let named =
            |core| PartRequest { stage: 0, load: Load::Heavy, core: Some(core), with: None };
        let plan = place(&[named(0), named(1), named(2)], quota, Placement::Auto);
        assert_eq!(cores_of(&plan), [Some(0), Some(1), Some(2)], "named cores are kept");
        assert!(!plan.has_core_per_group, "three threads on two cores must not spin");
    }

    #[test]
    fn there_are_never_more_groups_than_cores_unless_cores_are_named() {
        for count in 1..6 {
            let ids: Vec<usize> = (0..count).collect();
            for parts in 1..8 {
                let plan = place(&vec![HEAVY; parts], cores(&ids), Placement::Auto);
                assert_eq!(plan.groups.len(), parts.min(count));
                let placed: Vec<usize> = plan.groups.iter().flat_map(|g| g.parts.clone()).collect();
                assert_eq!(placed, (0..parts).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn named_cores_are_kept_and_shared_parts_take_the_others() {
        let named = PartRequest { stage: 0, load: Load::Heavy, core: Some(0), with: None };
        let plan = place(&[HEAVY, named, LIGHT], cores(&[0, 1]), Placement::Auto);
        assert_eq!(parts_of(&plan), [vec![0, 2], vec![1]]);
        assert_eq!(cores_of(&plan), [None, Some(0)], "only the named core is pinned");
        let plan = place(&[HEAVY, named, LIGHT], pinned(&[0, 1]), Placement::Auto);
        assert_eq!(cores_of(&plan), [Some(1), Some(0)]);
    }

    #[test]
    fn parts_join_their_neighbours_when_the_named_cores_leave_none() {
        let named =
            |core| PartRequest { stage: 0, load: Load::Light, core: Some(core), with: None };
        let plan = place(&[HEAVY, named(0), named(1), HEAVY], cores(&[0, 1]), Placement::Auto);
        assert_eq!(parts_of(&plan), [vec![0, 1], vec![2, 3]]);
        assert_eq!(cores_of(&plan), [Some(0), Some(1)]);
        assert!(plan.has_core_per_group);
    }

    #[test]
    fn fused_placement_uses_one_thread() {
        let plan = place(&[HEAVY, HEAVY, HEAVY], cores(&[0, 1, 2]), Placement::Fused);
        assert_eq!(parts_of(&plan), [vec![0, 1, 2]]);
    }

    #[test]
    fn a_process_has_at_least_one_core() {
        assert!(!available_cores().is_empty());
        assert!((1..=available_cores().len()).contains(&parallelism()));
    }
}

//! Epsilon joins of vectors.

use std::sync::Arc;

use trommel_kernels::cuda::vectors::{
    Answer, DeviceVectors, Filter, JoinJob, JoinLimits, JoinUnit, Method, NearPair, Policy,
    VectorJoin, VectorLimits,
};
use trommel_kernels::cuda::{Device, DeviceError, FailureKind, Kernels, Lane, Memory, Slot};

use super::super::device;
use super::super::vectors::{self, VectorCase};
use super::BUDGET;

/// The memory, streams and kernels that run cases on a device.
pub(crate) struct Bench {
    memory: Arc<Memory>,
    lane: Arc<Lane>,
    kernels: Arc<Kernels<VectorJoin>>,
}

/// A case on the device.
pub(crate) struct Loaded {
    left: Arc<DeviceVectors>,
    right: Option<Arc<DeviceVectors>>,
    epsilon: f64,
    policy: Policy,
}

impl Loaded {
    fn units(&self) -> Vec<JoinUnit> {
        self.left.units(self.right.as_deref(), &self.policy)
    }
}

impl Bench {
    pub(crate) fn new(device: &Device) -> Result<Self, DeviceError> {
        Ok(Self {
            memory: Memory::new(device, BUDGET, BUDGET),
            lane: Arc::new(Lane::new(device)?),
            kernels: Kernels::load(device)?,
        })
    }

    /// Room of exactly the size of the vectors, so that an access past its end is outside of
    /// memory.
    fn vectors(
        &self,
        values: &[f32],
        case: &VectorCase,
        method: Method,
    ) -> Result<Arc<DeviceVectors>, DeviceError> {
        let limits = VectorLimits { len: values.len() / case.dims, dims: case.dims, method };
        let mut vectors = DeviceVectors::with_room(&self.memory, limits)?;
        vectors.load(&self.kernels, values, 0, case.epsilon)?;
        Ok(Arc::new(vectors))
    }

    pub(crate) fn load(
        &self,
        case: &VectorCase,
        method: Method,
        policy: Policy,
    ) -> Result<Loaded, DeviceError> {
        let right = case.right.as_ref().map(|right| self.vectors(right, case, method));
        let left = self.vectors(&case.left, case, method)?;
        Ok(Loaded { left, right: right.transpose()?, epsilon: case.epsilon, policy })
    }

    fn ask(
        &self,
        slot: Slot<VectorJoin>,
        loaded: &Loaded,
        units: &[JoinUnit],
        answer: Answer,
    ) -> Result<Slot<VectorJoin>, DeviceError> {
        let &Loaded { ref left, ref right, epsilon, policy } = loaded;
        let job = JoinJob { units, left, right: right.as_ref(), epsilon, policy, answer };
        slot.submit(&self.lane, &self.kernels, &job)?.collect()
    }

    /// Asks until no unit is unfinished; returns all pairs in order.
    pub(crate) fn join(&self, loaded: &Loaded, room: usize) -> Result<Vec<NearPair>, DeviceError> {
        let mut units = loaded.units();
        let is_tiled = loaded.left.limits().method == Method::Tiles;
        let candidates = if is_tiled { room } else { 0 };
        let limits = JoinLimits { units: units.len(), pairs: room, partners: 0, candidates };
        let mut slot = Slot::new(&self.memory, limits)?;
        let mut pairs = Vec::new();
        while !units.is_empty() {
            slot = self.ask(slot, loaded, &units, Answer::Pairs)?;
            let is_going_on = slot.unfinished().is_empty() || !slot.pairs().is_empty();
            assert!(is_tiled || is_going_on, "it goes on");
            pairs.extend_from_slice(slot.pairs());
            units = slot.unfinished().to_vec();
        }
        pairs.sort_unstable_by_key(|pair| (pair.left, pair.right));
        Ok(pairs)
    }

    /// The number of pairs, and of partners of each vector.
    fn count(&self, loaded: &Loaded) -> Result<(u64, [Vec<u32>; 2]), DeviceError> {
        let partners = loaded.left.len().max(loaded.right.as_ref().map_or(0, |right| right.len()));
        let is_tiled = loaded.left.limits().method == Method::Tiles;
        // Candidates without room leave tiles unfinished.
        let room = if is_tiled { partners * partners / 9 + 1 } else { 1 };
        let candidates = if is_tiled { room } else { 0 };
        let limits = JoinLimits { units: loaded.units().len(), pairs: room, partners, candidates };
        let right_len = loaded.right.as_ref().map_or(0, |right| right.len());
        let mut counts = [0; 2];
        let mut of_each = [vec![0; loaded.left.len()], vec![0; right_len]];
        for (count, answer) in counts.iter_mut().zip([Answer::Count, Answer::Partners]) {
            let mut slot = Slot::new(&self.memory, limits)?;
            let mut units = loaded.units();
            while !units.is_empty() {
                slot = self.ask(slot, loaded, &units, answer)?;
                *count += slot.count();
                let more = slot.partners().into_iter().flatten();
                for (sum, more) in of_each.iter_mut().flatten().zip(more) {
                    *sum += more;
                }
                units = slot.unfinished().to_vec();
            }
        }
        assert_eq!(counts[0], counts[1]);
        Ok((counts[0], of_each))
    }
}

/// Partners of each vector, by the pairs.
fn partners(case: &VectorCase, pairs: &[NearPair]) -> [Vec<u32>; 2] {
    let len = |values: &[f32]| values.len() / case.dims;
    let mut left = vec![0; len(&case.left)];
    let mut right = vec![0; case.right.as_deref().map_or(0, len)];
    for pair in pairs {
        left[pair.left as usize] += 1;
        let side = if case.right.is_some() { &mut right } else { &mut left };
        side[pair.right as usize] += 1;
    }
    [left, right]
}

/// Room for pairs: for all pairs, for all but one, and so little room that several rounds are
/// needed.
fn rooms(pairs: usize) -> [usize; 3] {
    [pairs.max(1), pairs.saturating_sub(1).max(1), pairs / 7 + 1]
}

/// Cases for a device: all cases for a real device, some cases for the slow stand-in.
fn cases(device: &Device, all: Vec<VectorCase>) -> Vec<VectorCase> {
    let step = if device.properties().name.contains("stand-in") { 8 } else { 1 };
    all.into_iter().step_by(step).collect()
}

fn check(bench: &Bench, case: &VectorCase, method: Method, policies: &[Policy]) {
    let expected = case.expected();
    let mut loaded = bench.load(case, method, policies[0]).unwrap();
    for policy in policies {
        loaded.policy = *policy;
        let shown = |what: &str| format!("{}, {method}, {policy:?}: {what}", case.name);
        for room in rooms(expected.len()) {
            let found = bench.join(&loaded, room).unwrap();
            let lost = expected.iter().filter(|pair| !found.contains(pair)).count();
            let shown = shown(&format!("{lost} pairs of {} are lost", expected.len()));
            assert!(found == expected, "{shown}, {} are found, room for {room}", found.len());
        }
        let (count, of_each) = bench.count(&loaded).unwrap();
        assert_eq!(count, expected.len() as u64, "{}", shown("count"));
        assert_eq!(of_each, partners(case, &expected), "{}", shown("partners"));
    }
}

/// The usual policy, and each filter with both numbers of leaves and few blocks.
fn policies(bench: &Bench) -> Vec<Policy> {
    let device = bench.memory.device().properties();
    let usual = Policy::of(device, 0);
    let few = Policy { blocks_per_multiprocessor_max: 1, ..usual };
    let mut policies = vec![few, Policy { leaves: 4, ..usual }];
    policies.push(Policy { filter: Filter::Float, ..usual });
    policies
}

/// This test serves the search for missing barriers, and all kinds of devices.
#[test]
fn small_joins_of_vectors_by_each_method_are_those_of_a_plain_loop() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    let small = vectors::small();
    for method in [Method::NestedLoop, Method::Directory, Method::Boxes] {
        for case in &small {
            check(&bench, case, method, &policies(&bench)[..1]);
        }
    }
    check_tiles(&bench, &small);
}

#[test]
fn near_pairs_by_nested_loops_are_those_of_a_plain_loop() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    for case in &cases(&device, [vectors::few(), vectors::many()].concat()) {
        check(&bench, case, Method::NestedLoop, &policies(&bench)[..1]);
    }
}

#[test]
fn near_pairs_by_a_directory_are_those_of_a_plain_loop() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    for case in &cases(&device, [vectors::few(), vectors::many()].concat()) {
        check(&bench, case, Method::Directory, &policies(&bench)[..1]);
    }
}

#[test]
fn near_pairs_by_boxes_are_those_of_a_plain_loop() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    let few = cases(&device, vectors::few());
    for case in few.iter().filter(|case| Method::Boxes.takes(case.dims)) {
        check(&bench, case, Method::Boxes, &policies(&bench));
    }
}

#[test]
fn near_pairs_by_boxes_of_several_groups_are_those_of_a_plain_loop() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    for case in &cases(&device, vectors::many()) {
        check(&bench, case, Method::Boxes, &policies(&bench));
    }
}

/// Tiles join vectors with themselves, in devices that have the units.
fn check_tiles(bench: &Bench, cases: &[VectorCase]) {
    let policies = policies(bench);
    if !Method::Tiles.is_available(bench.memory.device().properties()) {
        return;
    }
    for case in cases.iter().filter(|case| case.right.is_none()) {
        check(bench, case, Method::Tiles, &policies[..1]);
    }
}

#[test]
fn near_pairs_by_tiles_are_those_of_a_plain_loop() {
    let Some(device) = device() else { return };
    let few = cases(&device, vectors::few());
    check_tiles(&Bench::new(&device).unwrap(), &few);
}

#[test]
fn near_pairs_by_tiles_of_several_panels_are_those_of_a_plain_loop() {
    let Some(device) = device() else { return };
    check_tiles(&Bench::new(&device).unwrap(), &vectors::wide());
}

#[test]
fn near_pairs_of_several_super_groups_are_those_of_a_plain_loop() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    let case = vectors::supers();
    let loaded = bench.load(&case, Method::Boxes, policies(&bench)[0]).unwrap();
    let expected = case.expected();
    assert!(expected.len() > 1_000, "{}", expected.len());
    assert!(bench.join(&loaded, expected.len() / 2 + 1).unwrap() == expected);
}

#[test]
fn numbers_of_near_vectors_begin_at_the_base() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    let limits = VectorLimits { len: 3, dims: 1, method: Method::Boxes };
    let mut sides = [0, 1].map(|_| DeviceVectors::with_room(&bench.memory, limits).unwrap());
    sides[0].load(&bench.kernels, &[1.0, 2.0, 9.0], 10, 0.5).unwrap();
    sides[1].load(&bench.kernels, &[9.25, 2.5], 4_000_000_000, 0.5).unwrap();
    assert!((sides[0].limits(), sides[1].len(), sides[1].is_empty()) == (limits, 2, false));
    sides[1].wait().unwrap();
    let policy = Policy::of(device.properties(), 3);
    let [left, right] = sides.map(Arc::new);
    let loaded = Loaded { left, right: Some(right), epsilon: 0.5, policy };
    let pair = |left, right, square| NearPair { left, right, square };
    let expected = [pair(11, 4_000_000_001, 0.25), pair(12, 4_000_000_000, 0.0625)];
    let found = bench.join(&loaded, 5).unwrap();
    assert_eq!(found, expected);
    assert!(found.iter().all(|pair| pair.distance() * pair.distance() == pair.square));
}

#[test]
fn a_budget_of_vectors_is_kept() {
    let Some(device) = device() else { return };
    let limits = JoinLimits { units: 7, pairs: 9, partners: 11, candidates: 5 };
    let memory = Memory::new(&device, limits.bytes(), limits.bytes());
    let slot = Slot::<VectorJoin>::new(&memory, limits).unwrap();
    let pinned = limits.bytes() - 5 * 8;
    assert_eq!(memory.used_bytes(), (limits.bytes(), pinned), "as large as announced");
    assert!(slot.pairs().is_empty() && slot.unfinished().is_empty() && slot.count() == 0);
    drop(slot);
    for method in Method::ALL {
        for (len, dims) in [(0, 1), (5, 3), (300, 9), (9000, 2)] {
            let limits = VectorLimits { len, dims, method: *method };
            let memory = Memory::new(&device, limits.bytes(), 0);
            let vectors = DeviceVectors::with_room(&memory, limits).unwrap();
            assert_eq!(memory.used_bytes().0, limits.bytes(), "{limits:?}");
            drop(vectors);
            let memory = Memory::new(&device, limits.bytes() - 1, 0);
            let error = DeviceVectors::with_room(&memory, limits).unwrap_err();
            assert_eq!(error.kind(), FailureKind::OutOfMemory);
        }
    }
}

#[test]
#[should_panic(expected = "boxes cannot join vectors of 17 dimensions")]
fn boxes_of_many_dimensions_are_refused() {
    let device = device().expect("boxes cannot join vectors of 17 dimensions, and no device");
    let memory = Memory::new(&device, BUDGET, 0);
    let limits = VectorLimits { len: 1, dims: 17, method: Method::Boxes };
    let _ = DeviceVectors::with_room(&memory, limits);
}

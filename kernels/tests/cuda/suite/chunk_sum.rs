//! The device layer under a primitive that can hardly be wrong.

use trommel_kernels::cuda::chunk_sum::{ChunkSum, Job};
use trommel_kernels::cuda::{Device, FailureKind, Flights, Slot};

use super::super::device;

/// Numbers whose sums need more than 32 bits.
fn numbers(count: usize) -> Vec<u32> {
    (0..count).map(|at| u32::MAX - u32::try_from(at % 1000).unwrap()).collect()
}

fn by_hand(values: &[u32], len: u32) -> Vec<u64> {
    let sum = |chunk: &[u32]| chunk.iter().map(|value| u64::from(*value)).sum();
    values.chunks(len as usize).map(sum).collect()
}

#[test]
fn chunk_sums_match_a_loop() {
    let Some(device) = device() else { return };
    let mut flights = Flights::<ChunkSum>::open(&device, 1, 5000, 0).unwrap();
    for count in [0, 1, 31, 32, 33, 100, 5000] {
        let values = numbers(count);
        for len in [1, 31, 32, 33, 5000, 1 << 30] {
            flights.submit(&Job { values: &values, len }, 5).unwrap();
            let mut sums = Vec::new();
            let cost = flights.collect(|slot| sums.extend_from_slice(slot.sums())).unwrap();
            assert_eq!(sums, by_hand(&values, len), "{count} values in chunks of {len}");
            assert_eq!(cost.bytes_to_device, 4 * count as u64 + 5);
            assert_eq!(cost.bytes_from_device, 8 * sums.len() as u64);
        }
    }
}

#[test]
fn flights_land_in_order_and_give_their_slots_back() {
    let Some(device) = device() else { return };
    let mut flights = Flights::<ChunkSum>::open(&device, 3, 100, 0).unwrap();
    let used = flights.memory().used_bytes();
    assert!(flights.has_room() && flights.is_idle() && !flights.is_done().unwrap());
    let values = numbers(100);
    let mut sums = Vec::new();
    for part in values.chunks(7) {
        if !flights.has_room() {
            while !flights.is_done().unwrap() {}
            flights.collect(|slot| sums.extend_from_slice(slot.sums())).unwrap();
        }
        flights.submit(&Job { values: part, len: 7 }, 0).unwrap();
    }
    while !flights.is_idle() {
        flights.collect(|slot| sums.extend_from_slice(slot.sums())).unwrap();
    }
    assert_eq!(sums, by_hand(&values, 7));
    assert_eq!(flights.memory().used_bytes(), used, "buffers were made on the way");
}

/// Two devices, whose flights start and land in turns on one thread.
#[test]
fn devices_do_not_disturb_each_other() {
    let (Some(first), Ok(second)) = (device(), Device::probe(1)) else {
        println!("SKIPPED, no second device");
        return;
    };
    let mut both =
        [&first, &second].map(|device| Flights::<ChunkSum>::open(device, 2, 100, 0).unwrap());
    let values = numbers(100);
    let mut sums = [Vec::new(), Vec::new()];
    for part in values.chunks(10) {
        both.iter_mut().for_each(|one| one.submit(&Job { values: part, len: 10 }, 0).unwrap());
        for (one, sums) in both.iter_mut().rev().zip(sums.iter_mut().rev()) {
            one.collect(|slot| sums.extend_from_slice(slot.sums())).unwrap();
        }
    }
    assert_eq!(sums, [(); 2].map(|()| by_hand(&values, 10)));
    let [one, other] = both;
    drop(one);
    assert!(other.is_idle());
}

#[test]
fn memory_beyond_the_slots_is_for_shared_inputs() {
    let Some(device) = device() else { return };
    let flights = Flights::<ChunkSum>::open(&device, 2, 10, 64).unwrap();
    let shared = flights.memory().device_buffer::<u32>(16).unwrap();
    let error = flights.memory().device_buffer::<u32>(1).unwrap_err();
    assert_eq!(error.kind(), FailureKind::OutOfMemory);
    drop(shared);
    assert!(Slot::<ChunkSum>::new(flights.memory(), 10).is_err(), "pinned memory is for slots");
}

#[test]
#[should_panic(expected = "3 values in buffers of 2")]
fn a_job_beyond_the_limits_is_refused() {
    let device = device().expect("3 values in buffers of 2, and no device");
    let mut flights = Flights::<ChunkSum>::open(&device, 1, 2, 0).unwrap();
    let _ = flights.submit(&Job { values: &[1, 2, 3], len: 1 }, 0);
}

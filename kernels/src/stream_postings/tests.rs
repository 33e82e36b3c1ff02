//! Every level of the machine against the definition of a hit.

use proptest::prelude::*;

use super::*;
use crate::simd::Base;

/// The hits by their definition.
fn by_hand(postings: &[Posting], look_ups: &[LookUp]) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (look_up, asked) in (0..).zip(look_ups) {
        for posting in asked.begin..asked.begin + asked.len {
            let Posting { size, signature, .. } = postings[posting as usize];
            let differing = (0..64).filter(|bit| (signature ^ asked.signature) >> bit & 1 == 1);
            let is_near = differing.count() <= asked.distance_max as usize;
            if is_near && (asked.size_min..=asked.size_max).contains(&size) {
                hits.push(Hit { look_up, posting });
            }
        }
    }
    hits
}

/// Compares all levels with the definition, in steps of about `step` hits.
fn check(postings: &[Posting], look_ups: &[LookUp], step: usize) {
    let expected = by_hand(postings, look_ups);
    for isa in Isa::available() {
        let (mut hits, mut done) = (Vec::new(), 0);
        while done < look_ups.len() {
            let (seen, hits_max) = (hits.len(), hits.len() + step);
            let of_step = probe_lists(isa, postings, &look_ups[done..], &mut hits, hits_max);
            let begin = u32::try_from(done).unwrap();
            hits[seen..].iter_mut().for_each(|hit| hit.look_up += begin);
            assert!(of_step > 0, "{isa}: a step does something");
            let is_stopped = done + of_step < look_ups.len();
            assert!(!is_stopped || hits.len() >= hits_max, "{isa}: it stops for its hits");
            done += of_step;
        }
        assert_eq!(hits, expected, "{isa}");
        // The level without its extension gives the same hits.
        hits.clear();
        let call = ProbeLists { postings, look_ups, hits: &mut hits, hits_max: usize::MAX };
        dispatch::<Base, _>(isa, call);
        assert_eq!(hits, expected, "{isa} without extension");
    }
}

fn postings() -> impl Strategy<Value = Vec<Posting>> {
    let signature = prop_oneof![Just(0), Just(u64::MAX), (0..64_u32).prop_map(|bit| 1 << bit)];
    let size = prop_oneof![0..9_u16, Just(PLACE_MAX - 1), Just(PLACE_MAX)];
    let posting = (any::<u32>(), size, any::<u16>(), signature);
    let posting = posting.prop_map(|(set, size, position, signature)| Posting {
        set,
        size,
        position,
        signature,
    });
    prop::collection::vec(posting, 0..80)
}

proptest! {
    #[test]
    fn postings_pass_as_by_hand(
        postings in postings(),
        asked in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u64>(), 0..70_u32,
             0..9_u16, prop_oneof![0..9_u16, Just(PLACE_MAX)]),
            0..40,
        ),
        step in prop_oneof![Just(1), 1..20_usize, Just(usize::MAX / 2)],
    ) {
        let look_up = |(from, to, signature, distance_max, low, more): (
            prop::sample::Index, prop::sample::Index, u64, u32, u16, u16)| {
            let [from, to] = [from, to].map(|index| index.index(postings.len() + 1));
            let narrow = |number: usize| u32::try_from(number).unwrap();
            LookUp {
                begin: narrow(from.min(to)),
                len: narrow(from.abs_diff(to)),
                // The bits are sparse enough for signatures that are near to some postings.
                signature: signature & signature.rotate_left(17) & signature.rotate_left(31),
                distance_max,
                size_min: low,
                size_max: low.saturating_add(more),
            }
        };
        let look_ups: Vec<LookUp> = asked.into_iter().map(look_up).collect();
        check(&postings, &look_ups, step);
    }
}

#[test]
fn borders_are_within() {
    let posting = |size, signature| Posting { set: 7, size, position: 0, signature };
    let postings = [posting(3, 0b11), posting(4, 0b111), posting(5, 0b1111), posting(6, 0)];
    let look_up = |size_min, size_max, distance_max| LookUp {
        begin: 0,
        len: 4,
        signature: 0,
        distance_max,
        size_min,
        size_max,
    };
    let passed = |look_up| {
        check(&postings, &[look_up], 1);
        by_hand(&postings, &[look_up]).iter().map(|hit| hit.posting).collect::<Vec<_>>()
    };
    assert_eq!(passed(look_up(4, 5, 4)), [1, 2]);
    assert_eq!(passed(look_up(3, 6, 3)), [0, 1, 3]);
    assert_eq!(passed(look_up(0, PLACE_MAX, 64)), [0, 1, 2, 3]);
    assert_eq!(passed(look_up(7, 7, 64)), []);
}

#[test]
#[should_panic(expected = "out of range")]
fn a_list_outside_of_the_postings_is_refused() {
    let look_up = LookUp { begin: 0, len: 2, ..LookUp::default() };
    probe_lists(Isa::Scalar, &[Posting::default()], &[look_up], &mut Vec::new(), 1);
}

//! The state of the operator as bytes.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};

use super::*;
use crate::testing::{bind_operator, run_operator};

#[test]
fn an_operator_takes_over_and_adds_the_state_of_another() {
    let batch = |items: &[u32]| {
        let column: ArrayRef = Arc::new(UInt32Array::from(items.to_vec()));
        RecordBatch::try_from_iter_with_nullable([("item", column, false)]).unwrap()
    };
    let schema = batch(&[]).schema();
    for algorithm in [Algorithm::SpaceSaving, Algorithm::Filter, Algorithm::Sieve] {
        let new = || {
            let spec = FrequentItems::new().counters(20).algorithm(algorithm);
            bind_operator(spec, &schema)
        };
        let (mut left, mut right) = (new(), new());
        run_operator(&mut *left, [batch(&[7, 7, 1])]).unwrap();
        run_operator(&mut *right, [batch(&[7, 2])]).unwrap();
        let state = right.snapshot().unwrap();
        left.merge(&state).unwrap();
        let mut both = new();
        both.restore(&left.snapshot().unwrap()).unwrap();
        let rows = run_operator(&mut *both, []).unwrap();
        let expected = run_operator(&mut *new(), [batch(&[7, 7, 7, 1, 2])]).unwrap();
        assert_eq!(rows, expected, "{algorithm:?}");
        assert!(left.merge(&state[1..]).is_err());
        let mut fading = bind_operator(FrequentItems::new().decay(Decay::items(9)), &schema);
        assert_eq!(fading.snapshot(), None);
        assert!(fading.restore(&state).is_err() && fading.merge(&state).is_err());
    }
}

//! Several operators, each with the vectors of a cell and its halo.

use trommel_kernels::vectors::{Epsilon, VectorCells, Vectors};

use super::*;

/// The pairs that the workers of all cells keep.
fn divided(inputs: &[&[Row]], dims: i32, epsilon: f64, cells: usize) -> Vec<(u32, u32, u64)> {
    let sample: Vec<f32> = inputs[0].iter().flatten().flatten().copied().collect();
    let sample = Vectors::new(&sample, usize::try_from(dims).unwrap());
    let cells = VectorCells::new(sample, Epsilon::new(epsilon).unwrap(), cells);
    let cell = |row: &Row| row.as_ref().map(|row| cells.cell(row));
    let mut members = Vec::new();
    let mut pairs = Vec::new();
    for worker in 0..u32::try_from(cells.len()).unwrap() {
        // Rows of other workers are nulls, so that ids are the same in each run.
        let mut part = |input: &[Row]| -> Vec<Row> {
            let mut keep = |row: &Vec<f32>| {
                cells.members(row, &mut members);
                members.contains(&worker)
            };
            input.iter().map(|row| row.clone().filter(&mut keep)).collect()
        };
        let parts: Vec<Vec<Row>> = inputs.iter().map(|input| part(input)).collect();
        let parts: Vec<&[Row]> = parts.iter().map(|part| &part[..]).collect();
        let (rows, ended) =
            run(EpsilonJoin::new(epsilon).on_error(OnError::Skip), &parts, dims, Run::small());
        ended.unwrap();
        let is_own = |pair: &(u32, u32, u64)| cell(&inputs[0][pair.0 as usize]) == Some(worker);
        pairs.extend(pairs_of(&rows).into_iter().filter(is_own));
    }
    pairs.sort_unstable();
    pairs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn pairs_of_cells_are_all_pairs(
        (dims, left, right) in (1_usize..4).prop_flat_map(|d| (Just(d), rows(d, 60), rows(d, 40))),
        epsilon in prop::sample::select(vec![0.0, 1.0, std::f64::consts::SQRT_2, 2.0, 100.0]),
        cells in 1_usize..6,
    ) {
        let dims = i32::try_from(dims).unwrap();
        let within = divided(&[&left], dims, epsilon, cells);
        prop_assert_eq!(within, oracle(&left, None, epsilon));
        let between = divided(&[&left, &right], dims, epsilon, cells);
        prop_assert_eq!(between, oracle(&left, Some(&right), epsilon));
    }
}

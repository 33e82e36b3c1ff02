//! Rows of a fixed width.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt32Type, UInt64Type};

use super::*;
use crate::source::read::fixed::integers::Integers;
use crate::source::read::fixed::source::RowFormat;
use crate::source::read::fixed::vectors::{NpyVectors, RawVectors};

const DIMS: u32 = 3;

fn rows_of<F: RowFormat>(
    files: Files,
    reading: Reading,
    new: impl Fn() -> F,
    sizes: Sizes,
) -> Result<Outcome, String> {
    drain(reading.copies_of_rows(files, BindContext::new(0), new), sizes)
}

/// Checks that copies send what one copy sends.
fn check_rows<F: RowFormat>(
    contents: &[Vec<u8>],
    reading: impl Fn() -> Reading,
    new: impl Fn() -> F,
    sizes: Sizes,
) -> Result<Result<Outcome, String>, TestCaseError> {
    let folder = Folder::new(contents);
    let expected = rows_of(folder.files(), reading(), &new, sizes.alone());
    let found = rows_of(folder.files(), reading(), &new, sizes);
    prop_assert_eq!(&found, &expected);
    Ok(found)
}

/// Integers of files, and further bytes at the end of each file.
fn words() -> impl Strategy<Value = Vec<(Vec<u64>, usize)>> {
    let file =
        (prop::collection::vec(any::<u64>(), 0..60), prop_oneof![4 => Just(0), 1 => 1_usize..4]);
    prop::collection::vec(file, 1..4)
}

fn ids_and_vectors(rows: Option<&RecordBatch>) -> Vec<(u32, Vec<f32>)> {
    let Some(rows) = rows else { return Vec::new() };
    let ids = rows.column(0).as_primitive::<UInt32Type>().values();
    let vectors = rows.column(1).as_fixed_size_list();
    let vector = |row| vectors.value(row).as_primitive::<Float32Type>().values().to_vec();
    ids.iter().copied().zip((0..rows.num_rows()).map(vector)).collect()
}

/// A file of NumPy.
fn npy(descr: &str, rows: usize, numbers: &[u8]) -> Vec<u8> {
    let text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {DIMS}), }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(text.len()).unwrap().to_le_bytes());
    file.extend(text.as_bytes());
    file.extend(numbers);
    file
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn integers_are_those_of_the_files(files in words(), sizes in sizes(), on_error in actions()) {
        let mut expected = Vec::new();
        let contents: Vec<Vec<u8>> = files
            .iter()
            .map(|(words, more)| {
                expected.extend(words.iter().copied());
                let bytes = words.iter().flat_map(|word| word.to_le_bytes());
                bytes.chain(std::iter::repeat_n(7, *more)).collect()
            })
            .collect();
        let is_whole = files.iter().all(|(_, more)| *more == 0);
        let new = || reading(on_error, Invalid::of(on_error), sizes).rows(8);
        let found = check_rows(&contents, new, Integers::<UInt64Type>::new, sizes)?;
        prop_assert_eq!(found.is_ok(), is_whole || on_error.goes_on());
        if let Ok(Outcome { rows, .. }) = found {
            let found = rows.iter().flat_map(|rows| {
                rows.column(0).as_primitive::<UInt64Type>().values().to_vec()
            });
            prop_assert!(found.eq(expected));
        }
        let new = || reading(on_error, Invalid::of(on_error), sizes).rows(4);
        check_rows(&contents, new, Integers::<UInt32Type>::new, sizes)?.ok();
    }

    #[test]
    fn vectors_and_their_ids_are_those_of_the_files(
        counts in prop::collection::vec(0_usize..20, 1..4),
        sizes in sizes(),
        is_double in any::<bool>(),
    ) {
        let mut next = 0_u16;
        let (mut raw, mut arrays, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        for count in counts {
            let numbers: Vec<f32> = (0..count * DIMS as usize).map(|_| {
                next += 1;
                f32::from(next)
            }).collect();
            let floats: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            let doubles = numbers.iter().flat_map(|&number| f64::from(number).to_le_bytes());
            // Arrays of both types may follow each other.
            arrays.push(match is_double && count % 2 == 0 {
                true => npy("<f8", count, &doubles.collect::<Vec<_>>()),
                false => npy("<f4", count, &floats),
            });
            raw.push(floats);
            expected.extend(numbers.chunks(DIMS as usize).map(<[f32]>::to_vec));
        }
        let expected: Vec<_> = (0..).zip(expected).collect();
        let whole = || reading(OnError::Fail, Invalid::Fail, sizes).with_row_ids();
        let found =
            check_rows(&raw, || whole().rows(12), || RawVectors::new(DIMS, None), sizes)?.unwrap();
        prop_assert_eq!(ids_and_vectors(found.rows.as_ref()), expected.clone());
        let found =
            check_rows(&arrays, || whole().arrays(DIMS), || NpyVectors::new(DIMS, None), sizes)?;
        prop_assert_eq!(ids_and_vectors(found.unwrap().rows.as_ref()), expected);
    }

    #[test]
    fn bad_arrays_are_those_of_one_reader(
        said in 0_usize..12,
        there in 0_usize..12,
        more in 0_usize..4,
        sizes in sizes(),
        on_error in prop_oneof![Just(OnError::Fail), Just(OnError::Skip)],
    ) {
        let numbers = vec![0; there * 12 + more];
        let good = npy("<f4", 5, &[1; 60]);
        let contents = [good.clone(), npy("<f4", said, &numbers), npy("<i4", 5, &[0; 60]), good];
        let new = || reading(on_error, Invalid::of(on_error), sizes).with_row_ids().arrays(DIMS);
        check_rows(&contents, new, || NpyVectors::new(DIMS, None), sizes)?.ok();
    }
}

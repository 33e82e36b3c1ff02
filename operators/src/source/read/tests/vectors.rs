//! Vectors of `f32le` and `npy`.

use arrow_array::types::Float32Type;

use super::super::fixed::vectors::next_ids;
use super::*;
use crate::source::read::fixed::npy::NpyError;

type Vectors = Vec<(u32, Vec<f32>)>;

fn vectors_of(batches: &[RecordBatch]) -> Vectors {
    let mut rows = Vec::new();
    for batch in batches {
        let ids = batch.column(0).as_primitive::<UInt32Type>().values();
        let vectors = batch.column(1).as_fixed_size_list();
        for (id, vector) in ids.iter().zip(vectors.iter().flatten()) {
            rows.push((*id, vector.as_primitive::<Float32Type>().values().to_vec()));
        }
    }
    rows
}

fn read_with<F: RowFormat>(
    format: F,
    files: &[&[u8]],
    sizes: Sizes,
    on_error: OnError,
) -> Result<(Vectors, Counters), OperatorError> {
    let mut source = RowSource::new(inputs_of(files, sizes.step, on_error), format, sizes.batch);
    let batches = drain_source(&mut source)?;
    assert!(batches.iter().all(|b| b.num_rows() <= sizes.batch));
    Ok((vectors_of(&batches), source.counters()))
}

fn read_npy(files: &[&[u8]], dims: u32, on_error: OnError) -> Result<Vectors, OperatorError> {
    read_with(NpyVectors::new(dims, None), files, ROOMY, on_error).map(|(vectors, _)| vectors)
}

/// A file as NumPy writes it.
fn npy(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    with_header(1, &text, data)
}

fn with_header(version: u8, text: &str, data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    let length = u32::try_from(text.len()).unwrap().to_le_bytes();
    file.extend(&length[..if version == 1 { 2 } else { 4 }]);
    file.extend(text.as_bytes());
    file.extend(data);
    file
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn rows_of(dims: usize, values: &[f32]) -> Vectors {
    (0..).zip(values.chunks_exact(dims).map(<[f32]>::to_vec)).collect()
}

proptest! {
    #[test]
    fn vectors_match_the_definition_at_all_boundaries(
        sizes in any_sizes(),
        dims in 1_u32..5,
        first in prop::collection::vec(any::<u8>(), 0..60),
        second in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let width = dims as usize * 4;
        let expected: Vec<Vec<u32>> = [&first, &second]
            .into_iter()
            .flat_map(|file| file.chunks_exact(width))
            .map(|row| row.as_chunks().0.iter().map(|&b| u32::from_le_bytes(b)).collect())
            .collect();
        let format = RawVectors::new(dims, None);
        let (read, counters) =
            read_with(format, &[&first, &second], sizes, OnError::Skip).unwrap();
        // Compared as bits, since a NaN differs from itself.
        let bits: Vec<Vec<u32>> =
            read.iter().map(|(_, row)| row.iter().map(|x| x.to_bits()).collect()).collect();
        prop_assert_eq!(&bits, &expected);
        prop_assert!((0..).zip(&read).all(|(id, row)| row.0 == id));
        let partial = [&first, &second].iter().filter(|file| file.len() % width > 0).count();
        prop_assert_eq!(skipped(&counters), partial);
    }

    #[test]
    fn arrays_of_both_types_match_the_definition_at_all_boundaries(
        sizes in any_sizes(),
        dims in 1_usize..4,
        values in prop::collection::vec(any::<f32>(), 0..30),
        is_second in any::<bool>(),
    ) {
        let values = &values[..values.len() / dims * dims];
        let rows = values.len() / dims;
        let shape = format!("({rows}, {dims})");
        let wide: Vec<u8> =
            values.iter().flat_map(|&value| f64::from(value).to_le_bytes()).collect();
        let mut files = [
            npy("<f4", "False", &shape, &bytes_of(values)),
            npy("<f8", "False", &shape, &wide),
        ];
        files[usize::from(is_second)] = with_header(
            2,
            &format!("{{\"shape\":[{rows},{dims}],'fortran_order':False ,\"descr\":'<f4'}}\n"),
            &bytes_of(values),
        );
        let format = NpyVectors::new(u32::try_from(dims).unwrap(), None);
        let (read, _) = read_with(format, &[&files[0], &files[1]], sizes, OnError::Fail).unwrap();
        let twice = [values, values].concat();
        let bits = |rows: &Vectors| -> Vec<(u32, Vec<u32>)> {
            let of = |row: &[f32]| row.iter().map(|x| x.to_bits()).collect();
            rows.iter().map(|(id, row)| (*id, of(row))).collect()
        };
        prop_assert_eq!(bits(&read), bits(&rows_of(dims, &twice)));
    }

    #[test]
    fn no_header_makes_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), cut in 0_usize..200) {
        let file = npy("<f4", "False", "(1, 2)", &bytes);
        let cut = cut.min(file.len());
        let _ = read_npy(&[&file[..cut]], 2, OnError::Fail);
        let changed = [&file[..10], &bytes[..]].concat();
        let _ = read_npy(&[&changed], 2, OnError::Fail);
    }
}

#[test]
fn headers_that_cannot_be_used_say_why() {
    let data = bytes_of(&[1.0, 2.0]);
    let cases: [(Vec<u8>, &str); 12] = [
        (b"1.0,2.0\n3.0,4.0\n".to_vec(), "not a .npy file"),
        (npy("<f2", "False", "(1, 2)", &data), "unsupported type `<f2`"),
        (npy(">f4", "False", "(1, 2)", &data), "unsupported type `>f4`"),
        (npy("<f4", "True", "(2, 2)", &[&data[..], &data].concat()), "Fortran order"),
        (npy("<f4", "False", "(1, 1, 2)", &data), "an array of 3 dimensions"),
        (npy("<f4", "False", "()", &data), "an array of 0 dimensions"),
        (npy("<f4", "False", "(1, 3)", &data), "vectors of 3 coordinates; expected 2"),
        (npy("<f4", "False", "(2, 2)", &data), "has 1 vectors; its header says 2"),
        (with_header(1, "{'shape': (1, 2)}", &data), "no valid `descr`"),
        (with_header(1, "{'descr': '<f4', ", &data), "malformed .npy header at byte 17"),
        (with_header(9, "{}", &data), "unknown version 9.0"),
        (b"\x93NUMPY\x01".to_vec(), "ends after 7 bytes, within its header"),
    ];
    for (file, expected) in cases {
        let error = read_npy(&[&file], 2, OnError::Fail).unwrap_err().to_string();
        assert!(error.starts_with("a.txt") && error.contains(expected), "{error}");
    }
    for (order, shape, dims) in
        [("True", "(1, 2)", 2), ("True", "(2, 1)", 1), ("True", "(2,)", 1), ("False", "(2, 1)", 1)]
    {
        let vectors = read_npy(&[&npy("<f4", order, shape, &data)], dims, OnError::Fail).unwrap();
        assert_eq!(vectors.len(), 2 / dims as usize, "{order} {shape}");
    }
    let advice = |descr: &str| {
        let file = npy(descr, "False", "(1, 2)", &data);
        read_npy(&[&file], 2, OnError::Fail).unwrap_err().to_string().contains("astype")
    };
    assert_eq!(
        ["<f2", "|b1", ">i8", "<c8", "<U7", "<M8[ns]"].map(advice),
        [true, true, true, false, false, false]
    );
    let records = with_header(1, "{'descr': [('x', '<f4')], 'shape': (1,)}", &data);
    let error = read_npy(&[&records], 2, OnError::Fail).unwrap_err().to_string();
    assert!(error.contains("unsupported type `a record`"), "{error}");
    assert_eq!(
        NpyError::TooLong(70_000).to_string(),
        "a .npy header of 70000 bytes; at most 65536 are supported"
    );
}

#[test]
fn unusable_arrays_are_left_out_and_others_read() {
    let good = npy("<f4", "False", "(1, 2)", &bytes_of(&[1.0, 2.0]));
    let other = npy("<f4", "False", "(1, 3)", &bytes_of(&[1.0, 2.0, 3.0]));
    let empty = npy("<f4", "False", "(0, 7)", b"");
    let read = read_npy(&[&other, &good, b"x"], 2, OnError::Skip).unwrap();
    assert_eq!(read, [(0, vec![1.0, 2.0])]);
    let read = read_npy(&[&empty, &good], 2, OnError::Fail).unwrap();
    assert_eq!(read, [(0, vec![1.0, 2.0])]);
    let line = npy("<f4", "False", "(2,)", &bytes_of(&[1.0, 2.0]));
    assert_eq!(read_npy(&[&line], 1, OnError::Fail).unwrap(), [(0, vec![1.0]), (1, vec![2.0])]);
}

#[test]
fn coordinates_of_64_bits_are_rounded_to_32() {
    let values = [0.1_f64, 1e-60, -1e300];
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let file = npy("<f8", "False", "(1, 3)", &data);
    let read = read_npy(&[&file], 3, OnError::Fail).unwrap();
    assert_eq!(read, [(0, vec![0.1_f32, 0.0, f32::NEG_INFINITY])]);
}

#[test]
fn the_first_file_says_the_length_of_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy").to_string_lossy().into_owned();
    fs::write(&path, npy("<f4", "False", "(2, 3)", &bytes_of(&[1.0; 6]))).unwrap();
    let read = Read::new([path.clone()], ReadFormat::Npy);
    let batches = drain_source(&mut *bind_source(read)).unwrap();
    assert_eq!(vectors_of(&batches), rows_of(3, &[1.0; 6]));
    let refused = |read: Read| bind(read, &[]).unwrap_err();
    let error = refused(Read::new([path.clone()], ReadFormat::Npy).dims(0));
    assert_eq!(error.parameter, Some("dims"));
    let error = refused(Read::new(["-"], ReadFormat::Npy));
    assert!(error.to_string().contains("need `dims`"), "{error}");
    let error = refused(Read::new([path.clone()], ReadFormat::F32le));
    assert!(error.to_string().contains("`f32le` needs `dims`"), "{error}");
    let error = refused(Read::new([path.clone()], ReadFormat::Lines).dims(3));
    assert!(error.to_string().contains("`f32le`, `npy` or `csv` only"), "{error}");
    fs::write(&path, npy("<f4", "False", "(1, 9000)", b"")).unwrap();
    let error = refused(Read::new([path], ReadFormat::Npy));
    assert!(error.to_string().contains("vectors of 1 to 4096 coordinates"), "{error}");
}

#[test]
fn vector_numbers_end_at_32_bits() {
    let mut next = u64::from(u32::MAX) - 1;
    let ids = next_ids(&mut next, 2).unwrap();
    assert_eq!(ids.values(), &[u32::MAX - 1, u32::MAX]);
    assert!(next_ids(&mut next, 1).is_none());
}

#[test]
fn lines_of_a_file_name_the_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    fs::write(path("a.npy"), npy("<f4", "False", "(3, 1)", &bytes_of(&[1.0, 2.0, 3.0]))).unwrap();
    let names_of = |names: &[u8]| {
        fs::write(path("names.txt"), names).unwrap();
        let read = Read::new([path("a.npy")], ReadFormat::Npy).names(path("names.txt")).batch(2);
        drain_source(&mut *bind_source(read)).map(|batches| {
            let names = batches.iter().flat_map(|b| b.column(2).as_string::<i32>().iter());
            names.flatten().map(str::to_owned).collect::<Vec<_>>()
        })
    };
    assert_eq!(names_of("a\r\n\nä".as_bytes()).unwrap(), ["a", "", "ä"]);
    let error = |names| names_of(names).unwrap_err().to_string();
    assert!(error(b"a\nb\n").ends_with("has 2 names; there are more vectors"));
    assert!(error(b"a\nb\nc\nd").ends_with("has more names than there are vectors, which are 3"));
    assert!(error(b"a\n\xff\nc").ends_with(":2: byte 0 of the line is not valid UTF-8"));
    let read = || Read::new([path("a.npy")], ReadFormat::Npy).names(path("none"));
    assert_eq!(bind(read(), &[]).unwrap_err().parameter, Some("names"));
    assert_eq!(bind(read().on_error(OnError::Skip), &[]).unwrap_err().parameter, Some("names"));
    let folder_as_names = Read::new([path("a.npy")], ReadFormat::Npy).names(folder.path());
    let error = bind(folder_as_names, &[]).unwrap_err().to_string();
    assert!(error.contains("it is no regular file"), "{error}");
}

//! Tests of arrays in files as tiled tensors: a tile has the elements of its part of the array, for both orders of axes
//! and both byte orders in the file.

use crate::random::{self, ALL};
use cembra_runtime::Scalar;
use cembra_tiles::{ArrayPlace, Evaluator, Float, Options, Tiled, Tiling, Tiling1};
use cembra_value::tensor::{Tensor, TensorErrorKind as Kind};
use fastrand::Rng;
use std::fs;
use std::path::Path;

/// The bytes of a file with the array `whole` in the format `place`, after `place.first` other bytes.
fn written<T: Float>(whole: &Tensor, place: ArrayPlace) -> Vec<u8> {
    let order: Vec<usize> = match place.is_column_major {
        true => (0..whole.extents().len()).rev().collect(),
        false => (0..whole.extents().len()).collect(),
    };
    let mut bytes = vec![0xaa; place.first as usize];
    for element in whole.transposed(&order).and_then(|turned| turned.to_vec::<T>()).expect("elements") {
        let mut element = element.bits().to_le_bytes()[..size_of::<T>()].to_vec();
        if place.is_big_endian {
            element.reverse();
        }
        bytes.extend(element);
    }
    bytes
}

/// Asserts that the tiles that are read from a file have the elements of the array that was written to it.
fn check<T: Float>(path: &Path, tiling: &Tiling, whole: &Tensor) {
    let expected = Tiled::from_tensor(whole, tiling, &ALL).expect("tiles");
    for (is_big_endian, is_column_major, first) in
        [(false, false, 0), (true, false, 5), (false, true, 128), (true, true, 1)]
    {
        let place = ArrayPlace { first, scalar: T::SCALAR, is_big_endian, is_column_major };
        let mut bytes = written::<T>(whole, place);
        // Bytes after the array are ignored.
        bytes.push(0xbb);
        fs::write(path, bytes).expect("written");
        let tiled = Tiled::from_file(path, place, tiling).expect("an array");
        assert!(tiled.is_lazy() && tiled.shape().norms().iter().all(|norm| *norm == f64::INFINITY));
        assert_eq!(tiled.shape().tiles(), expected.shape().tiles());
        assert_eq!(random::bits(&tiled), random::bits(&expected), "{tiling:?}, {place:?}");
        for (one, other) in tiled.tiles().zip(expected.tiles()) {
            let (one, other) = (one.expect("a tile").1, other.expect("a tile").1);
            assert!(one.elements::<T>().iter().zip(other.elements::<T>()).all(|(a, b)| a.bits() == b.bits()));
        }
    }
}

#[test]
fn tiles_of_files_are_parts_of_their_arrays() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("array");
    let mut rng = Rng::with_seed(1);
    for round in 0..60 {
        let tiling = random::tiling(&mut rng, round % 5);
        check::<f64>(&path, &tiling, &random::dense::<f64>(&tiling, round as u64).to_tensor().expect("a tensor"));
        check::<f32>(&path, &tiling, &random::dense::<f32>(&tiling, round as u64).to_tensor().expect("a tensor"));
    }
    // Tiles whose adjacent elements are read in several pieces, and tiles that have the whole range of some axes.
    let axes = |boundaries: [&[i64]; 3]| {
        Tiling::new(boundaries.map(|axis| Tiling1::new(axis.iter().copied()).expect("a tiling"))).expect("a tiling")
    };
    for boundaries in [
        [&[0, 1, 3][..], &[0, 9000], &[0, 3]],
        [&[0, 3], &[0, 1, 9000], &[0, 3]],
        [&[0, 3], &[0, 3], &[0, 8999, 9000]],
        [&[0, 2, 3], &[-1, 2], &[0, 4500, 9000]],
    ] {
        let tiling = axes(boundaries);
        let whole = random::dense::<f64>(&tiling, 7).to_tensor().expect("a tensor");
        let elements = whole.to_vec::<f64>().expect("floats");
        // NaNs keep their payloads.
        let odd = elements
            .iter()
            .enumerate()
            .map(|(at, x)| if at % 7 == 0 { f64::from_bits((0x7ff0 << 48) + 1 + at as u64) } else { *x });
        check::<f64>(&path, &tiling, &Tensor::new(whole.extents(), odd.collect()).expect("a tensor"));
    }
}

#[test]
fn arrays_that_files_do_not_have_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("array");
    fs::write(&path, [0; 100]).expect("written");
    let place = ArrayPlace { first: 4, scalar: Scalar::Float64, is_big_endian: false, is_column_major: false };
    let line = |elements: u64| Tiling::new([Tiling1::blocked(elements, 5).expect("a tiling")]).expect("a tiling");
    let error = |place: ArrayPlace, elements: u64| {
        let error = Tiled::from_file(&path, place, &line(elements)).expect_err("an error");
        (error.tensor_kind().expect("a kind"), error.to_string())
    };
    assert!(Tiled::from_file(&path, place, &line(12)).is_ok());
    let said = format!("{}: the file has 100 bytes, but an array of shape [13] would end at byte 108", path.display());
    assert_eq!(error(place, 13), (Kind::File, said));
    assert_eq!(error(ArrayPlace { first: 5, ..place }, 12).0, Kind::File);
    assert_eq!(error(ArrayPlace { first: u64::MAX, ..place }, 12).0, Kind::File);
    assert_eq!(error(ArrayPlace { scalar: Scalar::Int64, ..place }, 12).0, Kind::ElementType);
    // No memory is allocated for elements that the file does not have.
    assert_eq!(error(place, 1 << 50).0, Kind::File);
    let axis = Tiling1::blocked(1 << 62, 1 << 62).expect("a tiling");
    let huge = Tiled::from_file(&path, place, &Tiling::new([&axis, &axis]).expect("a tiling"));
    assert_eq!(huge.expect_err("an error").tensor_kind(), Some(Kind::Limit));
    let missing = Tiled::from_file(directory.path().join("none"), place, &line(1)).expect_err("an error");
    assert!(missing.to_string().ends_with("none: the file does not exist"), "{missing}");
    let no_file = Tiled::from_file(directory.path(), place, &line(1)).expect_err("an error");
    assert!(no_file.to_string().ends_with(": the path does not lead to a file"), "{no_file}");
    // If a file is cut short after it was opened, a tile whose elements are missing is an error.
    let cut = Tiled::from_file(&path, place, &line(12)).expect("an array");
    fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(90)).expect("cut");
    assert!(cut.tile(0).expect("a tile").is_some());
    assert_eq!(cut.tile(2).expect_err("an error").tensor_kind(), Some(Kind::File));
}

#[test]
fn a_file_is_an_operand() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("array");
    let axis = Tiling1::blocked(30, 8).expect("a tiling");
    let tiling = Tiling::new([&axis, &axis]).expect("a tiling");
    let dense = random::dense::<f64>(&tiling, 1);
    let place = ArrayPlace { first: 0, scalar: Scalar::Float64, is_big_endian: false, is_column_major: true };
    fs::write(&path, written::<f64>(&dense.to_tensor().expect("a tensor"), place)).expect("written");
    let lazy = Tiled::from_file(&path, place, &tiling).expect("an array");
    let run = Evaluator::new(Options::default()).threads(2);
    let [made, expected] = [&lazy, &dense].map(|a| run.product("ij,jk->ik", a, &dense).expect("a product"));
    assert_eq!(random::bits(&made), random::bits(&expected));
    assert_eq!(run.materialized(&lazy).expect("a tensor").shape(), dense.shape());
}

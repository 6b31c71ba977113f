//! Tests of operators that move, sort and aggregate the elements of groups. Results are compared with simple
//! implementations, element by element and window by window.

use super::arranging::{array, call, floats, ints, longs, mapping, shown, sizes, typed};
use cembra_runtime::{ArrayKind, EdgeType, QType, Scalar};
use cembra_value::{ScalarValue, Value};

const NAN: f64 = f64::NAN;
const EDGE: QType = QType::Edge(EdgeType::Arrays(ArrayKind::Dense));

const WINDOWS: [&str; 4] = ["array.rolling_sum", "array.rolling_mean", "array.rolling_min", "array.rolling_max"];

#[test]
fn windows_have_the_types_of_their_elements() {
    let dense = |scalar| QType::Array(ArrayKind::Dense, scalar);
    for name in WINDOWS {
        for scalar in [Scalar::Int32, Scalar::Int64, Scalar::Float32, Scalar::Float64, Scalar::WeakFloat] {
            let mean_of_integers = name == "array.rolling_mean" && scalar.is_integer();
            let expected = if mean_of_integers { Scalar::Float32 } else { scalar };
            assert_eq!(typed(name, &[dense(scalar), QType::INT64, EDGE]), Ok(dense(expected)), "{name} {scalar}");
        }
        for refused in [
            vec![dense(Scalar::Text), QType::INT32],
            vec![dense(Scalar::Int32), QType::FLOAT32],
            vec![dense(Scalar::Int32), dense(Scalar::Int32)],
            vec![QType::INT32, QType::INT32],
            vec![QType::Array(ArrayKind::Sparse, Scalar::Int32), QType::INT32, EDGE],
        ] {
            assert!(typed(name, &refused).is_err(), "{name} {refused:?}");
        }
    }
    assert_eq!(typed("array.rolling_max", &[dense(Scalar::Date), QType::INT32]), Ok(dense(Scalar::Date)));
    assert!(typed("array.rolling_sum", &[dense(Scalar::Date), QType::INT32]).is_err());
    for scalar in [Scalar::Text, Scalar::Unit, Scalar::UInt64, Scalar::Boolean] {
        assert_eq!(typed("array.sort", &[dense(scalar), EDGE]), Ok(dense(scalar)));
        assert_eq!(typed("array.shift", &[dense(scalar), QType::INT32, EDGE]), Ok(dense(scalar)));
    }
    assert!(typed("array.sort", &[dense(Scalar::Int32), QType::Unspecified, QType::INT32]).is_err());
    assert!(typed("array.shift", &[dense(Scalar::Int32), QType::Optional(Scalar::Int32)]).is_err());
}

/// The results of the rolling operators for all windows, computed one window after the other.
fn by_windows(elements: &[Option<i64>], groups: &[Vec<usize>], length: usize) -> [Vec<Option<f64>>; 4] {
    let mut all = [(); 4].map(|()| vec![None; elements.len()]);
    for group in groups {
        for end in length..=group.len() {
            let window: Vec<i64> = group[end - length..end].iter().filter_map(|at| elements[*at]).collect();
            let (Some(min), Some(max)) = (window.iter().min(), window.iter().max()) else { continue };
            let sum = window.iter().sum::<i64>() as f64;
            let values = [sum, sum / window.len() as f64, *min as f64, *max as f64];
            for (all, value) in all.iter_mut().zip(values) {
                all[group[end - 1]] = Some(value);
            }
        }
    }
    all
}

#[test]
fn windows_are_aggregated_as_one_after_the_other() {
    let mut random = fastrand::Rng::with_seed(4);
    for turn in 0..300 {
        let size = random.usize(0..40);
        let present = [0.0, 0.3, 0.8, 1.0][turn % 4];
        let elements: Vec<Option<i64>> =
            (0..size).map(|_| (random.f64() < present).then(|| random.i64(-20..20))).collect();
        let length = random.usize(1..=size + 2);
        let of_floats: Vec<Option<f64>> = elements.iter().map(|element| element.map(|x| x as f64)).collect();
        let x = array(Scalar::Float64, &of_floats);
        let cut = random.usize(0..=size);
        let parents: Vec<Option<i64>> = (0..size).map(|_| (random.u8(0..9) > 0).then(|| random.i64(0..3))).collect();
        let of_parent = |parent| (0..size).filter(|at| parents[*at] == Some(parent)).collect();
        let forms = [
            (Value::Unspecified, vec![(0..size).collect()]),
            (sizes(&[0, cut as i64, (size - cut) as i64]), vec![(0..cut).collect(), (cut..size).collect()]),
            (mapping(&parents, 4), (0..3).map(of_parent).collect()),
        ];
        for (edge, groups) in forms {
            for (name, expected) in WINDOWS.iter().zip(by_windows(&elements, &groups, length)) {
                let found = call(name, &[x.clone(), (length as i64).into(), edge.clone()]).expect("values");
                let expected = array(Scalar::Float64, &expected);
                assert_eq!(found.to_string(), expected.to_string(), "{name} of {x} by {length} over {edge}");
            }
        }
    }
}

#[test]
fn windows_end_where_arrays_and_groups_do() {
    for name in WINDOWS {
        assert_eq!(shown(name, &[floats(&[]), 3.into()]), "[]", "{name}");
        assert_eq!(shown(name, &[floats(&[1.0, 2.0]), 3.into()]), "[NA, NA]", "{name}");
        assert_eq!(shown(name, &[floats(&[1.0, 2.0]), i64::MAX.into()]), "[NA, NA]", "{name}");
        assert_eq!(shown(name, &[array::<f64>(Scalar::Float64, &[None, None, None]), 2.into()]), "[NA, NA, NA]");
        for length in [0, -1] {
            assert_eq!(shown(name, &[floats(&[1.0]), length.into()]), "invalid", "{name}");
            assert_eq!(shown(name, &[floats(&[]), length.into()]), "invalid", "{name}");
        }
        assert_eq!(shown(name, &[floats(&[1.0]), 1.into(), sizes(&[2])]), "size-mismatch", "{name}");
    }
    let x = ints(&[Some(i32::MAX), Some(1), Some(-5)]);
    assert_eq!(shown("array.rolling_sum", &[x.clone(), 2.into()]), "[NA, -2147483648, -4]");
    assert_eq!(shown("array.rolling_mean", &[longs(&[1, 2, 4]), 2.into()]), "[NA, 1.5, 3]");
    assert_eq!(shown("array.rolling_min", &[x, 1.into()]), "[2147483647, 1, -5]");
}

/// Elements before a window have no effect on its result: no rounding error, no NaN and no infinity remains of them.
#[test]
fn windows_depend_on_their_elements_alone() {
    let x = floats(&[1e300, NAN, f64::INFINITY, 0.1, 0.2, 0.3, -0.0, -0.0]);
    assert_eq!(
        shown("array.rolling_sum", &[x.clone(), 2.into()]),
        "[NA, nan, nan, inf, 0.30000000000000004, 0.5, 0.3, 0]"
    );
    assert_eq!(shown("array.rolling_max", &[x.clone(), 2.into()]), "[NA, nan, nan, inf, 0.2, 0.3, 0.3, -0]");
    assert_eq!(shown("array.rolling_min", &[x, 3.into()]), "[NA, NA, nan, nan, 0.1, 0.1, -0, -0]");
    let x = array(Scalar::Float32, &[Some(16_777_216.0_f32), Some(1.0), Some(1.0), Some(1.0)]);
    assert_eq!(shown("array.rolling_sum", &[x, 3.into()]), "[NA, NA, 16777218, 3]");
    let zeros = floats(&[0.0, -0.0, 0.0]);
    assert_eq!(shown("array.rolling_min", &[zeros.clone(), 2.into()]), "[NA, 0, -0]");
    assert_eq!(shown("array.rolling_max", &[zeros, 2.into()]), "[NA, 0, -0]");
}

#[test]
fn elements_are_moved_within_their_groups() {
    let x = ints(&[Some(1), None, Some(3), Some(4), Some(5)]);
    let moved = |n: i64| shown("array.shift", &[x.clone(), n.into()]);
    assert_eq!(moved(0), "[1, NA, 3, 4, 5]");
    assert_eq!(moved(2), "[NA, NA, 1, NA, 3]");
    assert_eq!(moved(-1), "[NA, 3, 4, 5, NA]");
    for n in [5, -5, i64::MAX, i64::MIN] {
        assert_eq!(moved(n), "[NA, NA, NA, NA, NA]");
    }
    assert_eq!(shown("array.shift", &[x.clone(), 1.into(), sizes(&[2, 0, 3])]), "[NA, 1, NA, 3, 4]");
    let groups = mapping(&[Some(1), Some(0), Some(1), None, Some(1)], 2);
    assert_eq!(shown("array.shift", &[x.clone(), 1.into(), groups.clone()]), "[NA, NA, 1, NA, 3]");
    assert_eq!(shown("array.shift", &[x.clone(), (-1).into(), groups]), "[3, NA, 5, NA, NA]");
    assert_eq!(shown("array.shift", &[x, 1.into(), sizes(&[4])]), "size-mismatch");
    let texts = array(
        Scalar::Text,
        &["a", "a longer text than a view has", "c"].map(|text| Some(ScalarValue::Text(text.into()))),
    );
    let texts = |n: i64| shown("array.shift", &[texts.clone(), n.into()]);
    assert_eq!(texts(1), "[NA, 'a', 'a longer text than a view has']");
    assert_eq!(shown("array.shift", &[ints(&[]), 1.into()]), "[]");
}

#[test]
fn elements_are_sorted_within_their_groups() {
    let x = floats(&[2.0, NAN, -0.0, f64::NEG_INFINITY, 0.0, 1.0]);
    let sorted = |x: &Value, edge: Value, descending: bool| shown("array.sort", &[x.clone(), edge, descending.into()]);
    assert_eq!(sorted(&x, Value::Unspecified, false), "[-inf, -0, 0, 1, 2, nan]");
    assert_eq!(sorted(&x, Value::Unspecified, true), "[2, 1, -0, 0, -inf, nan]");
    let x = array(Scalar::Float64, &[None, Some(NAN), Some(3.0), None, Some(1.0)]);
    assert_eq!(sorted(&x, Value::Unspecified, false), "[1, 3, nan, NA, NA]");
    assert_eq!(sorted(&x, Value::Unspecified, true), "[3, 1, nan, NA, NA]");
    assert_eq!(sorted(&x, sizes(&[3, 2]), false), "[3, nan, NA, 1, NA]");
    // Elements of a group go to the positions of the group, and an element in no group is missing.
    let x = ints(&[Some(9), Some(4), Some(7), Some(1), Some(3)]);
    let groups = mapping(&[Some(1), Some(0), Some(1), None, Some(1)], 2);
    assert_eq!(sorted(&x, groups, false), "[3, 4, 7, NA, 9]");
    let texts = array(Scalar::Text, &["b", "", "ab"].map(|text| Some(ScalarValue::Text(text.into()))));
    assert_eq!(sorted(&texts, Value::Unspecified, false), "['', 'ab', 'b']");
    assert_eq!(sorted(&texts, Value::Unspecified, true), "['b', 'ab', '']");
    assert_eq!(sorted(&ints(&[]), Value::Unspecified, false), "[]");
    assert_eq!(sorted(&ints(&[Some(1)]), sizes(&[2]), false), "size-mismatch");
}

#[test]
fn running_products_go_on_over_what_is_missing() {
    let x = ints(&[Some(2), None, Some(3), Some(i32::MAX), Some(5)]);
    assert_eq!(shown("math.cum_prod", &[x.clone(), sizes(&[0, 4, 0, 1])]), "[2, NA, 6, -6, 5]");
    let groups = mapping(&[Some(2), Some(2), None, Some(2), Some(0)], 4);
    assert_eq!(shown("math.cum_prod", &[x.clone(), groups]), "[2, NA, NA, -2, 5]");
    assert_eq!(shown("math.cum_prod", &[x, sizes(&[4])]), "size-mismatch");
    assert_eq!(shown("math.cum_prod", &[floats(&[-0.0, 2.0, f64::INFINITY, 1.0])]), "[-0, -0, nan, nan]");
    // Products of f32 are kept in f64.
    let x = array(Scalar::Float32, &[Some(1e30_f32), Some(1e30), Some(1e-30)]);
    let expected = array(Scalar::Float32, &[Some(1e30_f32), Some(f32::INFINITY), Some(1e30)]);
    assert_eq!(shown("math.cum_prod", &[x]), expected.to_string());
    assert_eq!(shown("math.cum_prod", &[ints(&[])]), "[]");
}

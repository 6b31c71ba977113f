//! Tests of operators on whole arrays that scan, rank, choose and arrange elements: the types that they accept, and
//! cases that the golden data lack, such as empty groups, elements in no group, ties, NaNs, arrays of different sizes,
//! and results that could be arbitrarily large.

use cembra_ops::{Argument, ArrayOperands, OpDef, OverArrays, Registry, TypeFault};
use cembra_runtime::{ArrayKind, EdgeType, FaultKind, QType, Scalar, ShapeType};
use cembra_value::{Array, Edge, ScalarValue, Value};

const NAN: f64 = f64::NAN;

fn operator(name: &str) -> &'static OpDef {
    let registry = Registry::standard();
    registry.get(registry.find(name).expect("an operator"))
}

/// The result type of an operator on operands of these types; parameters without an operand get their defaults.
pub(crate) fn typed(name: &str, operands: &[QType]) -> Result<QType, TypeFault> {
    let def = operator(name);
    let defaults: Vec<&Value> =
        def.params.iter().skip(operands.len()).filter_map(|param| param.default.as_ref()).collect();
    let types: Vec<QType> = operands.iter().cloned().chain(defaults.iter().map(|value| value.qtype())).collect();
    let literals = operands.iter().map(|_| None).chain(defaults.into_iter().map(Some));
    let args: Vec<Argument<'_>> =
        types.iter().zip(literals).map(|(qtype, literal)| Argument { qtype, literal }).collect();
    Ok(def.resolve(&args)?.signature.ret)
}

/// The result of an operator on these operands; parameters without an operand get their defaults.
pub(crate) fn call(name: &str, operands: &[Value]) -> Result<Value, FaultKind> {
    let def = operator(name);
    let defaults = def.params.iter().skip(operands.len()).filter_map(|param| param.default.clone());
    let all: Vec<Value> = operands.iter().cloned().chain(defaults).collect();
    let ret = typed(name, &all.iter().map(Value::qtype).collect::<Vec<_>>()).expect("types that it takes");
    let OverArrays::Kernel(kernel) = def.over_arrays else { panic!("{name} has no kernel") };
    let made = (kernel.evaluate)(&ArrayOperands::of_call(&all), &ret).map_err(|fault| fault.kind)?;
    assert!(made.is_of(&ret), "{name} makes {made} of type {}, not {ret}", made.qtype());
    Ok(made)
}

pub(crate) fn array<T>(scalar: Scalar, elements: &[Option<T>]) -> Value
where
    T: Clone + Into<ScalarValue>,
{
    let elements = elements.iter().map(|element| element.clone().map(Into::into));
    Value::Array(ArrayKind::Dense, Array::from_scalars(scalar, elements).into())
}

pub(crate) fn ints(elements: &[Option<i32>]) -> Value {
    array(Scalar::Int32, elements)
}

pub(crate) fn longs(elements: &[i64]) -> Value {
    array(Scalar::Int64, &elements.iter().map(|element| Some(*element)).collect::<Vec<_>>())
}

pub(crate) fn floats(elements: &[f64]) -> Value {
    array(Scalar::Float64, &elements.iter().map(|element| Some(*element)).collect::<Vec<_>>())
}

pub(crate) fn sizes(sizes: &[i64]) -> Value {
    Edge::from_sizes(ArrayKind::Dense, sizes.iter().copied()).expect("an edge").into()
}

pub(crate) fn mapping(groups: &[Option<i64>], parents: usize) -> Value {
    let groups = Array::from_scalars(Scalar::Int64, groups.iter().map(|group| group.map(ScalarValue::Int64)));
    Edge::from_mapping(ArrayKind::Dense, groups, parents).expect("an edge").into()
}

/// The result of an operator as listings print it, or the kind of its fault.
pub(crate) fn shown(name: &str, operands: &[Value]) -> String {
    call(name, operands).map_or_else(|kind| kind.name().to_owned(), |value| value.to_string())
}

const DENSE: fn(Scalar) -> QType = |scalar| QType::Array(ArrayKind::Dense, scalar);
const SPARSE: fn(Scalar) -> QType = |scalar| QType::Array(ArrayKind::Sparse, scalar);
const EDGE: QType = QType::Edge(EdgeType::Arrays(ArrayKind::Dense));
const TO_SCALAR: QType = QType::Edge(EdgeType::ToScalar(ArrayKind::Dense));
const SCALARS: QType = QType::Edge(EdgeType::Scalars);
const SHAPE: QType = QType::ArrayShape(ArrayKind::Dense);

#[test]
fn the_types_are_arollas() {
    let (i32s, i64s, f32s) = (DENSE(Scalar::Int32), DENSE(Scalar::Int64), DENSE(Scalar::Float32));
    let (masks, texts, bools) = (DENSE(Scalar::Unit), DENSE(Scalar::Text), DENSE(Scalar::Boolean));
    let optional = |scalar| QType::Optional(scalar);
    let pair = |a: &QType, b: &QType| QType::tuple([a.clone(), b.clone()]);
    let taken: Vec<(&str, Vec<QType>, QType)> = vec![
        ("math.cum_sum", vec![i32s.clone(), TO_SCALAR], i32s.clone()),
        ("math.cum_max", vec![DENSE(Scalar::WeakFloat), EDGE], DENSE(Scalar::WeakFloat)),
        ("array.cum_count", vec![texts.clone()], i64s.clone()),
        ("array.agg_index", vec![masks.clone(), EDGE], i64s.clone()),
        ("array.inverse_mapping", vec![i32s.clone()], i32s.clone()),
        ("array.ordinal_rank", vec![texts.clone()], i64s.clone()),
        ("array.ordinal_rank", vec![bools.clone(), i32s.clone(), EDGE, QType::BOOLEAN], i64s.clone()),
        ("array.dense_rank", vec![masks.clone(), TO_SCALAR], i64s.clone()),
        ("array.expand", vec![texts.clone(), EDGE], texts.clone()),
        ("array.expand", vec![optional(Scalar::Int32), TO_SCALAR], i32s.clone()),
        ("array.expand", vec![optional(Scalar::Int32), SCALARS], optional(Scalar::Int32)),
        ("array.concat", vec![texts.clone(), texts.clone()], texts.clone()),
        ("array.slice", vec![texts.clone(), QType::INT32, QType::INT64], texts.clone()),
        ("array.select", vec![i32s.clone(), masks.clone()], i32s.clone()),
        ("array.take", vec![texts.clone(), i32s.clone()], texts.clone()),
        ("array.take", vec![texts.clone(), i32s.clone(), EDGE, EDGE], texts.clone()),
        ("array.take", vec![texts.clone(), i32s.clone(), TO_SCALAR, TO_SCALAR], texts.clone()),
        ("array.unique", vec![DENSE(Scalar::UInt64)], DENSE(Scalar::UInt64)),
        ("array.present_indices", vec![SPARSE(Scalar::Text)], SPARSE(Scalar::Int64)),
        ("array.present_values", vec![texts.clone()], texts.clone()),
        ("array.from_indices_and_values", vec![i32s.clone(), texts.clone(), QType::INT64], texts.clone()),
        ("array.interleave", vec![i32s.clone(), optional(Scalar::Float32)], pair(&f32s, &EDGE)),
        ("array.interleave", vec![QType::INT32, optional(Scalar::Float32)], pair(&f32s, &TO_SCALAR)),
        ("array.iota", vec![SHAPE], i64s.clone()),
        ("array.iota", vec![QType::Shape(ShapeType::OptionalScalar)], optional(Scalar::Int64)),
        ("array.shaped", vec![QType::TEXT, QType::ArrayShape(ArrayKind::Sparse)], SPARSE(Scalar::Text)),
        ("array.shaped", vec![SPARSE(Scalar::Text), SHAPE], texts.clone()),
        ("array.resize_array_shape", vec![SHAPE, QType::INT32], SHAPE),
        ("array.array_shape_size", vec![SHAPE], QType::INT64),
        ("array.make_dense_array_shape", vec![QType::INT32], SHAPE),
        ("array.make_array_shape", vec![QType::INT64], QType::ArrayShape(ArrayKind::Sparse)),
        ("array.as_dense_array", vec![SPARSE(Scalar::Text)], texts.clone()),
        ("array.as_dense_array", vec![pair(&QType::INT32, &optional(Scalar::Float32))], f32s.clone()),
        ("array.as_dense_array", vec![optional(Scalar::Text)], texts.clone()),
        ("array.as_array", vec![texts.clone()], SPARSE(Scalar::Text)),
        ("array.randint_with_shape", vec![SHAPE], i64s.clone()),
        ("array.randint_with_shape", vec![SHAPE, optional(Scalar::Int32), i64s.clone(), QType::INT32], i64s.clone()),
        ("array.randint_like", vec![texts.clone()], i64s.clone()),
        ("edge.group_by", vec![f32s.clone(), EDGE], EDGE),
        ("edge.group_by", vec![pair(&f32s, &texts)], EDGE),
    ];
    for (name, operands, ret) in taken {
        assert_eq!(typed(name, &operands), Ok(ret), "{name} {operands:?}");
    }
    let refused: Vec<(&str, Vec<QType>)> = vec![
        ("math.cum_sum", vec![bools.clone(), EDGE]),
        ("math.cum_min", vec![DENSE(Scalar::UInt64), EDGE]),
        ("math.cum_max", vec![SPARSE(Scalar::Int32), EDGE]),
        ("array.cum_count", vec![i32s.clone(), SCALARS]),
        ("array.inverse_mapping", vec![f32s.clone()]),
        ("array.ordinal_rank", vec![DENSE(Scalar::UInt64)]),
        ("array.ordinal_rank", vec![i32s.clone(), f32s.clone()]),
        ("array.ordinal_rank", vec![i32s.clone(), SPARSE(Scalar::Int32)]),
        ("array.ordinal_rank", vec![i32s.clone(), QType::Unspecified, EDGE, optional(Scalar::Boolean)]),
        ("array.dense_rank", vec![QType::INT32]),
        ("array.expand", vec![QType::INT32, EDGE]),
        ("array.expand", vec![i32s.clone(), TO_SCALAR]),
        ("array.expand", vec![SPARSE(Scalar::Int32), EDGE]),
        ("array.expand", vec![QType::INT32, QType::Unspecified]),
        ("array.concat", vec![i32s.clone(), i64s.clone()]),
        ("array.concat", vec![i32s.clone(), SPARSE(Scalar::Int32)]),
        ("array.slice", vec![i32s.clone(), optional(Scalar::Int32), QType::INT32]),
        ("array.select", vec![i32s.clone(), bools]),
        ("array.select", vec![i32s.clone(), optional(Scalar::Unit)]),
        ("array.take", vec![i32s.clone(), QType::INT64]),
        ("array.take", vec![i32s.clone(), f32s.clone()]),
        ("array.take", vec![i32s.clone(), i32s.clone(), QType::Unspecified]),
        ("array.take", vec![i32s.clone(), i32s.clone(), TO_SCALAR, EDGE]),
        ("array.take", vec![i32s.clone(), i32s.clone(), EDGE, TO_SCALAR]),
        ("array.unique", vec![QType::INT32]),
        ("array.from_indices_and_values", vec![i32s.clone(), SPARSE(Scalar::Text), QType::INT64]),
        ("array.from_indices_and_values", vec![i32s.clone(), texts.clone(), optional(Scalar::Int64)]),
        ("array.interleave", vec![]),
        ("array.interleave", vec![i32s.clone(), SPARSE(Scalar::Int32)]),
        ("array.interleave", vec![i32s.clone(), texts.clone()]),
        ("array.interleave", vec![pair(&QType::INT32, &QType::INT32)]),
        ("array.iota", vec![QType::INT64]),
        ("array.shaped", vec![optional(Scalar::Int32), SHAPE]),
        ("array.shaped", vec![QType::INT32, QType::Shape(ShapeType::Scalar)]),
        ("array.array_shape_size", vec![QType::Shape(ShapeType::Scalar)]),
        ("array.make_dense_array_shape", vec![QType::FLOAT32]),
        ("array.make_dense_array_shape", vec![optional(Scalar::Int32)]),
        ("array.as_dense_array", vec![QType::tuple([])]),
        ("array.as_dense_array", vec![pair(&QType::INT32, &QType::TEXT)]),
        ("array.as_dense_array", vec![pair(&i32s, &QType::INT32)]),
        ("array.as_array", vec![pair(&QType::INT32, &QType::INT32)]),
        ("array.randint_with_shape", vec![QType::Shape(ShapeType::Scalar)]),
        ("array.randint_like", vec![QType::INT32]),
        ("array.randint_like", vec![i32s.clone(), SPARSE(Scalar::Int32)]),
        ("array.randint_like", vec![i32s.clone(), QType::INT32, QType::INT32, optional(Scalar::Int32)]),
        ("edge.group_by", vec![QType::tuple([])]),
        ("edge.group_by", vec![pair(&i32s, &QType::INT32)]),
        ("edge.group_by", vec![pair(&i32s, &SPARSE(Scalar::Int32))]),
        ("edge.group_by", vec![i32s, SCALARS]),
    ];
    for (name, operands) in refused {
        assert!(typed(name, &operands).is_err(), "{name} {operands:?}");
    }
}

#[test]
fn scans_go_on_over_what_is_missing_and_end_with_their_group() {
    let x = ints(&[Some(1), None, Some(3), Some(i32::MAX), Some(5)]);
    assert_eq!(shown("math.cum_sum", &[x.clone(), sizes(&[0, 4, 0, 1])]), "[1, NA, 4, -2147483645, 5]");
    let groups = mapping(&[Some(2), Some(2), None, Some(2), Some(0)], 4);
    assert_eq!(shown("math.cum_sum", &[x.clone(), groups.clone()]), "[1, NA, NA, -2147483648, 5]");
    assert_eq!(shown("array.cum_count", &[x.clone(), groups.clone()]), "[1, NA, NA, 2, 1]");
    assert_eq!(shown("array.agg_index", &[x.clone(), groups]), "[0, NA, NA, 2, 0]");
    assert_eq!(shown("array.cum_count", &[ints(&[])]), "[]");
    assert_eq!(shown("array.cum_count", &[ints(&[None, None])]), "[NA, NA]");
    // Arolla has no scans but counts without an edge; here all elements are one group.
    assert_eq!(shown("math.cum_sum", std::slice::from_ref(&x)), "[1, NA, 4, -2147483645, -2147483640]");
    assert_eq!(shown("math.cum_max", &[x.clone(), Value::Unspecified]), "[1, NA, 3, 2147483647, 2147483647]");
    assert_eq!(shown("math.cum_min", std::slice::from_ref(&x)), "[1, NA, 1, 1, 1]");
    assert_eq!(shown("array.agg_index", std::slice::from_ref(&x)), "[0, NA, 2, 3, 4]");
    assert_eq!(shown("math.cum_sum", &[x, sizes(&[4])]), "size-mismatch");
}

#[test]
fn running_sums_of_floats_are_kept_in_float64() {
    let x = array(Scalar::Float32, &[Some(16_777_216.0_f32), Some(1.0), Some(1.0), Some(-16_777_216.0)]);
    assert_eq!(shown("math.cum_sum", &[x, sizes(&[4])]), "[16777216, 16777216, 16777218, 2]");
    // A sum begins with 0, not with the first element.
    assert_eq!(shown("math.cum_sum", &[floats(&[-0.0]), sizes(&[1])]), "[0]");
}

#[test]
fn of_equal_extremes_the_first_stays_and_a_nan_for_good() {
    assert_eq!(shown("math.cum_max", &[floats(&[-0.0, 0.0, 1.0, NAN, 2.0]), sizes(&[5])]), "[-0, -0, 1, nan, nan]");
    assert_eq!(shown("math.cum_min", &[floats(&[0.0, -0.0, NAN, -1.0]), sizes(&[2, 2])]), "[0, 0, nan, nan]");
    let x = ints(&[Some(2), None, Some(i32::MIN), Some(3)]);
    assert_eq!(shown("math.cum_max", &[x.clone(), sizes(&[4])]), "[2, NA, 2, 3]");
    assert_eq!(shown("math.cum_min", &[x, sizes(&[4])]), "[2, NA, -2147483648, -2147483648]");
}

#[test]
fn nans_are_ranked_last_in_either_direction() {
    let x = floats(&[NAN, 1.0, NAN, 2.0, NAN, 3.0, NAN, -0.0, 0.0]);
    let [up, down] = [false, true].map(Value::from);
    let none = Value::Unspecified;
    let ordinal =
        |direction: &Value| shown("array.ordinal_rank", &[x.clone(), none.clone(), none.clone(), direction.clone()]);
    assert_eq!(ordinal(&up), "[5, 2, 6, 3, 7, 4, 8, 0, 1]");
    assert_eq!(ordinal(&down), "[5, 2, 6, 1, 7, 0, 8, 3, 4]");
    // Arolla's partition moves them.
    let x = floats(&[NAN, 1.0, NAN, 2.0, NAN, 3.0, NAN]);
    assert_eq!(shown("array.dense_rank", &[x.clone(), none.clone(), up]), "[5, 0, 3, 1, 4, 2, 6]");
    assert_eq!(shown("array.dense_rank", &[x, none, down]), "[5, 2, 3, 1, 4, 0, 6]");
}

#[test]
fn ties_are_broken_upwards_then_by_position() {
    let x = ints(&[Some(7), Some(7), Some(7), None, Some(7), Some(1)]);
    let breakers = ints(&[Some(2), Some(1), Some(1), Some(0), None, Some(9)]);
    let rank = |descending: bool| {
        shown("array.ordinal_rank", &[x.clone(), breakers.clone(), Value::Unspecified, descending.into()])
    };
    assert_eq!(rank(false), "[3, 1, 2, NA, NA, 0]");
    assert_eq!(rank(true), "[2, 0, 1, NA, NA, 3]");
    // Weak floats are ranked as FLOAT32 with such tie breakers: two of these are equal then, and what is missing stays so.
    let weak = |float: f64| Some(ScalarValue::WeakFloat(float));
    let weak = array(Scalar::WeakFloat, &[weak(1.0), None, weak(1.0 + 1e-12), weak(0.5)]);
    let breakers = ints(&[Some(5), Some(0), Some(4), Some(3)]);
    assert_eq!(shown("array.ordinal_rank", &[weak, breakers]), "[2, NA, 1, 0]");
    let groups = mapping(&[Some(1), None, Some(1), Some(0), Some(0), Some(1)], 3);
    assert_eq!(shown("array.ordinal_rank", &[x.clone(), Value::Unspecified, groups.clone()]), "[1, NA, 2, NA, 0, 0]");
    assert_eq!(shown("array.dense_rank", &[x.clone(), groups]), "[1, NA, 1, NA, 0, 0]");
    assert_eq!(shown("array.ordinal_rank", &[x, ints(&[Some(1)])]), "size-mismatch");
    let near = [1.0 + 1e-12, 1.0].map(|element| Some(ScalarValue::WeakFloat(element)));
    let near = array(Scalar::WeakFloat, &near);
    assert_eq!(shown("array.ordinal_rank", &[near.clone(), longs(&[0, 1])]), "[1, 0]");
    assert_eq!(shown("array.ordinal_rank", &[near, ints(&[Some(0), Some(1)])]), "[0, 1]", "as f32 they are equal");
    let texts = array(Scalar::Text, &["b", "", "ab", "b"].map(|text| Some(ScalarValue::Text(text.into()))));
    assert_eq!(shown("array.dense_rank", &[texts]), "[2, 0, 1, 2]");
}

#[test]
fn parts_are_of_the_array() {
    let x = ints(&[Some(5), None, Some(7)]);
    let slice = |offset: i64, size: i64| shown("array.slice", &[x.clone(), offset.into(), size.into()]);
    assert_eq!(slice(1, 2), "[NA, 7]");
    assert_eq!(slice(3, -1), "[]");
    assert_eq!(slice(3, 0), "[]");
    for (offset, size) in [(4, 0), (4, -1), (-1, 1), (0, 4), (0, -2), (2, 2), (1 << 62, 1 << 62), (i64::MAX, -1)] {
        assert_eq!(slice(offset, size), "invalid", "{offset} {size}");
    }
    let masks = |present: &[bool]| {
        array(Scalar::Unit, &present.iter().map(|present| present.then_some(ScalarValue::Unit)).collect::<Vec<_>>())
    };
    assert_eq!(shown("array.select", &[x.clone(), masks(&[true, true, false])]), "[5, NA]");
    assert_eq!(shown("array.select", &[x.clone(), masks(&[true])]), "size-mismatch");
    assert_eq!(shown("array.present_values", std::slice::from_ref(&x)), "[5, 7]");
    assert_eq!(shown("array.concat", &[x.clone(), ints(&[])]), "[5, NA, 7]");
    assert_eq!(shown("array.present_indices", &[ints(&[None])]), "[]");
}

#[test]
fn values_of_groups_are_expanded_to_their_elements() {
    let x = ints(&[Some(5), None, Some(7)]);
    assert_eq!(shown("array.expand", &[x.clone(), sizes(&[2, 1, 0])]), "[5, 5, NA]");
    assert_eq!(shown("array.expand", &[x.clone(), mapping(&[Some(2), None, Some(0)], 3)]), "[7, NA, 5]");
    assert_eq!(shown("array.expand", &[x, sizes(&[1])]), "size-mismatch");
    let to_scalar = |size| Value::from(Edge::to_scalar(ArrayKind::Dense, size));
    assert_eq!(shown("array.expand", &[Value::Missing(Scalar::Int32), to_scalar(2)]), "[NA, NA]");
    assert_eq!(shown("array.expand", &[5.into(), Edge::scalars().into()]), "5");
    assert_eq!(shown("array.expand", &[5.into(), to_scalar(usize::MAX)]), "arena-limit");
    assert_eq!(shown("array.expand", &[ints(&[Some(1)]), sizes(&[i64::MAX])]), "arena-limit");
    // Not elements alone count: each would be written out.
    let text = Value::from("x".repeat(1 << 20).as_str());
    assert_eq!(shown("array.expand", &[text, to_scalar(1 << 20)]), "arena-limit");
}

#[test]
fn elements_are_taken_from_the_group_of_the_index() {
    let x = ints(&[Some(5), Some(6), None, Some(8)]);
    let ids = ints(&[Some(3), None, Some(0), Some(0), Some(2)]);
    assert_eq!(shown("array.take", &[x.clone(), ids]), "[8, NA, 5, 5, NA]");
    assert_eq!(shown("array.take", &[x.clone(), ints(&[Some(4)])]), "index-range");
    assert_eq!(shown("array.take", &[x.clone(), ints(&[Some(-1)])]), "index-range");
    let over = mapping(&[Some(1), Some(0), Some(1), Some(1)], 2);
    let take = |ids: &[Option<i32>], groups: &[Option<i64>]| {
        shown("array.take", &[x.clone(), ints(ids), over.clone(), mapping(groups, 2)])
    };
    assert_eq!(take(&[Some(2), Some(0), Some(9)], &[Some(1), Some(0), None]), "[8, 6, NA]");
    assert_eq!(take(&[Some(1)], &[Some(0)]), "index-range");
    // Without an edge of its own an index belongs to the group of the element at its place.
    assert_eq!(shown("array.take", &[x.clone(), ints(&[Some(2), Some(0), Some(0), None]), over]), "[8, 6, 5, NA]");
    assert_eq!(shown("array.take", &[x.clone(), ints(&[Some(0)]), sizes(&[4]), sizes(&[1, 0])]), "size-mismatch");
    assert_eq!(shown("array.take", &[x, ints(&[Some(0)]), sizes(&[4]), sizes(&[2])]), "size-mismatch");
}

#[test]
fn a_permutation_is_turned_around_in_its_group() {
    let inverse = |indices: &[Option<i32>]| shown("array.inverse_mapping", &[ints(indices)]);
    assert_eq!(inverse(&[Some(2), None, Some(0)]), "[2, NA, 0]");
    assert_eq!(inverse(&[Some(1), Some(1)]), "invalid");
    assert_eq!(inverse(&[Some(2), Some(0)]), "invalid");
    assert_eq!(inverse(&[Some(-1)]), "invalid");
    assert_eq!(inverse(&[]), "[]");
    // An element in no group may be anything.
    let groups = mapping(&[Some(0), None, Some(0)], 1);
    assert_eq!(shown("array.inverse_mapping", &[longs(&[1, 99, 0]), groups]), "[1, NA, 0]");
}

#[test]
fn values_are_put_at_indices_that_go_up() {
    let put = |indices: &[Option<i32>], size: i64| {
        let values = ints(&[Some(5), None][..indices.len().min(2)]);
        shown("array.from_indices_and_values", &[ints(indices), values, size.into()])
    };
    assert_eq!(put(&[Some(0), Some(2)], 4), "[5, NA, NA, NA]");
    assert_eq!(put(&[], 2), "[NA, NA]");
    for indices in [[Some(2), Some(1)], [Some(1), Some(1)], [Some(1), None]] {
        assert_eq!(put(&indices, 4), "invalid", "{indices:?}");
    }
    assert_eq!(put(&[Some(1), Some(4)], 4), "index-range");
    assert_eq!(put(&[Some(-1), Some(1)], 4), "index-range");
    assert_eq!(put(&[], -1), "invalid");
    assert_eq!(put(&[], i64::MAX), "arena-limit");
    assert_eq!(put(&[Some(1), Some(2), Some(3)], 4), "size-mismatch");
}

#[test]
fn equal_elements_are_found_in_the_order_in_which_they_come() {
    assert_eq!(shown("array.unique", &[floats(&[2.0, -0.0, NAN, 0.0, NAN, 2.0])]), "[2, -0, nan, nan]");
    assert_eq!(shown("array.unique", &[ints(&[None, None])]), "[]");
    let x = ints(&[Some(3), Some(1), None, Some(3), Some(1)]);
    let group_by = |x: Value, over: Value| shown("edge.group_by", &[x, over]);
    assert_eq!(group_by(x.clone(), Value::Unspecified), "edge.from_mapping([0, 1, NA, 0, 1], 2)");
    assert_eq!(group_by(x.clone(), sizes(&[2, 3])), "edge.from_mapping([0, 1, NA, 2, 3], 4)");
    let over = mapping(&[Some(1), None, Some(0), Some(1), Some(0)], 2);
    assert_eq!(group_by(x.clone(), over.clone()), "edge.from_mapping([0, NA, NA, 0, 1], 2)");
    let pair = Value::Tuple([x.clone(), floats(&[0.0, 1.0, NAN, -0.0, 2.0])].into());
    assert_eq!(group_by(pair, Value::Unspecified), "edge.from_mapping([0, 1, NA, 0, 2], 3)");
    // Of what is in no group nothing is asked.
    let nan = floats(&[1.0, NAN, 1.0, 1.0, 1.0]);
    assert_eq!(group_by(nan.clone(), over), "edge.from_mapping([0, NA, 1, 0, 1], 2)");
    assert_eq!(group_by(nan, Value::Unspecified), "invalid");
    assert_eq!(group_by(x.clone(), sizes(&[4])), "size-mismatch");
    assert_eq!(group_by(Value::Tuple([x, ints(&[None])].into()), Value::Unspecified), "size-mismatch");
}

#[test]
fn shapes_have_any_size_and_arrays_have_not() {
    assert_eq!(shown("array.make_dense_array_shape", &[(1_i64 << 40).into()]), "dense_array_shape{1099511627776}");
    assert_eq!(shown("array.make_array_shape", &[(-1).into()]), "invalid");
    let huge = Value::ArrayShape(ArrayKind::Dense, usize::MAX);
    assert_eq!(shown("array.resize_array_shape", &[huge.clone(), 2.into()]), "dense_array_shape{2}");
    assert_eq!(shown("array.resize_array_shape", &[huge.clone(), (-2).into()]), "invalid");
    for operands in [vec![huge.clone()], vec![5.into(), huge.clone()]] {
        let name = if operands.len() == 1 { "array.iota" } else { "array.shaped" };
        assert_eq!(shown(name, &operands), "arena-limit");
    }
    assert_eq!(shown("core.const_with_shape", &[huge.clone(), 5.into()]), "arena-limit");
    assert_eq!(shown("array.randint_with_shape", &[huge]), "arena-limit");
    assert_eq!(shown("array.iota", &[Value::ArrayShape(ArrayKind::Sparse, 0)]), "[]");
}

#[test]
fn interleaved_arrays_are_of_one_size() {
    let (x, y) = (ints(&[Some(1), None]), ints(&[Some(3), Some(4)]));
    let kernel = "array._interleave";
    assert_eq!(shown(kernel, &[x.clone(), y]), "([1, 3, NA, 4], edge.from_split_points([0, 2, 4]))");
    assert_eq!(shown(kernel, &[x.clone(), ints(&[None])]), "size-mismatch");
    assert_eq!(shown(kernel, &[ints(&[]), 5.into()]), "([], edge.from_split_points([0]))");
    assert_eq!(shown(kernel, &[x]), "([1, NA], edge.from_split_points([0, 1, 2]))");
}

#[test]
fn random_integers_are_arollas() {
    let shape = |size| Value::ArrayShape(ArrayKind::Dense, size);
    let drawn = |operands: &[Value]| shown("array.randint_with_shape", operands);
    assert_eq!(
        drawn(&[shape(3)]),
        drawn(&[shape(3), 0_i64.into(), i64::MAX.into(), 85_852_539_i64.into()]),
        "these are the defaults"
    );
    let first =
        "8378410159297370776, 5837394277986245652, 7175222267116307648, 9205726479959080485, 6739668074138303502";
    assert_eq!(drawn(&[shape(5)]), format!("[{first}]"));
    assert_eq!(drawn(&[shape(6), 0.into(), 10.into(), (-1).into()]), "[6, 8, 9, 2, 1, 9]");
    let all = drawn(&[shape(6), i64::MIN.into(), i64::MAX.into(), ((1_i64 << 33) + 1).into()]);
    assert!(all.starts_with("[4373510602295101677, 6944953204847917161, 3249025246727773718, "), "{all}");
    // A number is drawn only where there are both bounds.
    let low = ints(&[Some(1), None, Some(3)]);
    assert_eq!(drawn(&[shape(3), low.clone(), longs(&[2, 3, 10]), 1.into()]), "[1, NA, 7]");
    assert_eq!(drawn(&[shape(9), longs(&[1, 3]), 10.into(), 1.into()]).matches(',').count(), 1, "bounds say how many");
    assert_eq!(drawn(&[shape(2), Value::Missing(Scalar::Int32), 3.into()]), "[NA, NA]");
    assert_eq!(drawn(&[shape(1), 3.into(), 3.into()]), "invalid");
    assert_eq!(drawn(&[shape(0), 3.into(), 3.into()]), "invalid");
    assert_eq!(drawn(&[shape(3), low, longs(&[2, 3]), 1.into()]), "size-mismatch");
}

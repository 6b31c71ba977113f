//! Statistics of groups, such as variances and covariances, that are composed of other array operators. Each statistic
//! expands to the same sequence of operators as in Arolla, so that intermediate results are rounded in the same way.
//! Integers are computed in FLOAT32. If all elements are one group, the group's value is combined with the elements
//! directly. Otherwise each group's value is first expanded to the elements of the group.

use super::reduce::{aggregate_types, float};
use super::{ARRAY, array_argument, edge_argument};
use crate::cast::cast_operator;
use crate::definition::{Expansion, Meaning, NodeHandle, NodeResult, OpDef, Typing, ex, param, param_or};
use crate::typing::{Argument, Signature, TypeFault, common_type, no_common_type, refuse};
use crate::{OpId, id};
use cembra_expr::Integers;
use cembra_runtime::{EdgeType, QType, Scalar};
use cembra_value::{ScalarValue, Value};

const X_INTO: OpDef =
    OpDef { params: &[param("x"), param_or("into", Value::Unspecified)], integers: Integers::Widen, ..ARRAY };

const TRUE: Value = Value::Scalar(ScalarValue::Boolean(true));

/// Adds a literal node to the graph: a number of type `WEAK_FLOAT`, which adapts to the float type of other operands.
fn number(g: &mut dyn Expansion, value: f64) -> NodeHandle {
    g.literal(Value::Scalar(ScalarValue::WeakFloat(value)))
}

/// Casts `value` to the scalar type `to`, element by element if it is an array; returns `value` itself if it has that type.
pub(crate) fn cast(g: &mut dyn Expansion, value: NodeHandle, to: Scalar) -> NodeResult {
    match cast_operator(to).filter(|_| g.qtype(value).of_each().scalar() != Some(to)) {
        Some(operator) => g.apply(operator, &[value]),
        None => Ok(value),
    }
}

/// The type of the elements of an array.
fn scalar_of(g: &dyn Expansion, array: NodeHandle) -> Scalar {
    g.qtype(array).of_each().scalar().unwrap_or(Scalar::Float64)
}

/// Expands `values`, one value per group, to one value per element. Returns `values` itself if all elements are one
/// group.
fn expand(g: &mut dyn Expansion, values: NodeHandle, edge: NodeHandle) -> NodeResult {
    match g.qtype(edge) {
        QType::Edge(EdgeType::Arrays(_)) => g.apply(id::ARRAY_EXPAND, &[values, edge]),
        _ => Ok(values),
    }
}

/// Applies the binary `operator` to each element of `x` and the `aggregation` of its group.
fn against(g: &mut dyn Expansion, operator: OpId, x: NodeHandle, aggregation: OpId, edge: NodeHandle) -> NodeResult {
    let found = g.apply(aggregation, &[x, edge])?;
    let found = expand(g, found, edge)?;
    g.apply(operator, &[x, found])
}

/// The deviation of each element from the mean of its group.
fn deviations(g: &mut dyn Expansion, x: NodeHandle, into: NodeHandle) -> NodeResult {
    against(g, id::SUBTRACT, x, id::MATH_MEAN, into)
}

/// The number of present elements per group, as floats of the elements' type.
fn count(g: &mut dyn Expansion, x: NodeHandle, into: NodeHandle) -> NodeResult {
    let to = scalar_of(g, x);
    let count = g.apply(id::ARRAY_COUNT, &[x, into])?;
    cast(g, count, to)
}

/// The sum of the products `x * y` per group; missing for a group in which no product is present.
fn sum_of_products(g: &mut dyn Expansion, x: NodeHandle, y: NodeHandle, into: NodeHandle) -> NodeResult {
    let products = g.apply(id::MULTIPLY, &[x, y])?;
    g.apply(id::MATH_SUM_SPARSE, &[products, into])
}

/// Checks that an operand is a boolean.
fn check_boolean(operator: &str, args: &[Argument<'_>], at: usize, name: &str) -> Result<(), TypeFault> {
    match args[at].qtype {
        QType::Scalar(Scalar::Boolean) => Ok(()),
        found => refuse(at, format!("{operator} expects a boolean for `{name}`, found {found}")),
    }
}

fn moment_types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    aggregate_types(operator, args, Scalar::is_numeric, float, false)
}

fn variance_types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let ret = moment_types(operator, &args[..2])?.ret;
    check_boolean(operator, args, 2, "unbiased")?;
    Ok(Signature::unchanged(args, ret))
}

/// The signature of a statistic of two arrays, such as a covariance; the third operand is the edge with the groups. If
/// all elements are one group, the result is optional, unless `total` is set.
fn pair_types(operator: &'static str, args: &[Argument<'_>], total: bool) -> Result<Signature, TypeFault> {
    let (kind, x) = array_argument(operator, args, 0)?;
    let (_, y) = array_argument(operator, args, 1)?;
    for (at, scalar) in [x, y].into_iter().enumerate() {
        if !scalar.is_numeric() {
            return refuse(at, format!("{operator} does not take {}", args[at].qtype));
        }
    }
    let common = common_type(args[0].qtype, args[1].qtype).and_then(|common| common.of_each().scalar());
    let ret = float(common.ok_or_else(|| no_common_type(operator, &args[..2]))?);
    let grouped = edge_argument(operator, args, 2, kind)?;
    let ret = if grouped { QType::Array(kind, ret) } else { QType::of(ret, !total) };
    Ok(Signature::unchanged(args, ret))
}

fn variance(g: &mut dyn Expansion, args: &[NodeHandle]) -> NodeResult {
    let (x, into) = (args[0], args[1]);
    let differences = deviations(g, x, into)?;
    let squares = g.apply(id::MULTIPLY, &[differences, differences])?;
    // The count is over the array that is also summed, so that one pass does both.
    let count = count(g, squares, into)?;
    let fewer = cast(g, args[2], Scalar::WeakFloat)?;
    let squares = g.apply(id::MATH_SUM_SPARSE, &[squares, into])?;
    let is_enough = g.apply(id::GREATER, &[count, fewer])?;
    let count = g.apply(id::PRESENCE_AND, &[count, is_enough])?;
    let count = g.apply(id::SUBTRACT, &[count, fewer])?;
    g.apply(id::DIVIDE, &[squares, count])
}

const VARIANCE: OpDef =
    OpDef { params: &[param("x"), param_or("into", Value::Unspecified), param_or("unbiased", TRUE)], ..X_INTO };

pub(crate) static VAR: OpDef = OpDef {
    name: "math.var",
    aliases: &["var"],
    summary: "The variance of the present elements, per group of the edge `into` or for the whole array: the sum of the squared deviations from the mean, divided by the number of elements, or by one less if `unbiased` is true. Missing if that divisor is not positive.",
    typing: Typing::Rule(|args| variance_types(VAR.name, args)),
    meaning: Meaning::Expand(variance),
    examples: &[
        ex("var([1, 2, missing, 3])", "f64?{1}"),
        ex("var([1f64, 3f64, 5f64], edge.from_sizes([2, 1]), unbiased=false)", "[1, 0]"),
    ],
    ..VARIANCE
};

pub(crate) static STD: OpDef = OpDef {
    name: "math.std",
    aliases: &["std"],
    summary: "The standard deviation of the present elements, per group of the edge `into` or for the whole array: the square root of the variance that `math.var` gives for the same arguments. Missing where that variance is missing.",
    typing: Typing::Rule(|args| variance_types(STD.name, args)),
    meaning: Meaning::Expand(|g, args| {
        let (variance, half) = (variance(g, args)?, number(g, 0.5));
        g.apply(id::POW, &[variance, half])
    }),
    examples: &[ex("std([1, 5, missing], unbiased=false)", "f64?{2}")],
    ..VARIANCE
};

pub(crate) static SKEW: OpDef = OpDef {
    name: "math.skew",
    aliases: &["skew"],
    summary: "The skewness of the present elements, per group of the edge `into` or for the whole array, without a correction for small samples: 0 if they lie symmetrically about the mean. NaN if all are equal, missing if no element is present.",
    typing: Typing::Rule(|args| moment_types(SKEW.name, args)),
    meaning: Meaning::Expand(|g, args| {
        let (x, into) = (args[0], args[1]);
        let differences = deviations(g, x, into)?;
        let squares = g.apply(id::MULTIPLY, &[differences, differences])?;
        let second = g.apply(id::MATH_SUM_SPARSE, &[squares, into])?;
        let third = sum_of_products(g, squares, differences, into)?;
        let (count, half, power) = (count(g, squares, into)?, number(g, 0.5), number(g, 1.5));
        let root = g.apply(id::POW, &[count, half])?;
        let third = g.apply(id::MULTIPLY, &[root, third])?;
        let second = g.apply(id::POW, &[second, power])?;
        g.apply(id::DIVIDE, &[third, second])
    }),
    examples: &[ex("skew([1, 2, 3])", "f64?{0}"), ex("skew([2, 2])", "f64?{nan}")],
    ..X_INTO
};

pub(crate) static KURTOSIS: OpDef = OpDef {
    name: "math.kurtosis",
    aliases: &["kurtosis"],
    summary: "The excess kurtosis of the present elements, per group of the edge `into` or for the whole array, without a correction for small samples: about 0 for a normal distribution. NaN if all are equal, missing if no element is present.",
    typing: Typing::Rule(|args| moment_types(KURTOSIS.name, args)),
    meaning: Meaning::Expand(|g, args| {
        let (x, into) = (args[0], args[1]);
        let differences = deviations(g, x, into)?;
        let squares = g.apply(id::MULTIPLY, &[differences, differences])?;
        let second = g.apply(id::MATH_SUM_SPARSE, &[squares, into])?;
        let fourth = sum_of_products(g, squares, squares, into)?;
        let (count, three) = (count(g, squares, into)?, number(g, 3.0));
        let fourth = g.apply(id::MULTIPLY, &[count, fourth])?;
        let second = g.apply(id::MULTIPLY, &[second, second])?;
        let ratio = g.apply(id::DIVIDE, &[fourth, second])?;
        g.apply(id::SUBTRACT, &[ratio, three])
    }),
    examples: &[ex("kurtosis([1, 1, 3, 3])", "f64?{-2}")],
    ..X_INTO
};

/// The deviations of both arrays from their means. Only elements that are present in both arrays count.
fn paired_deviations(g: &mut dyn Expansion, args: &[NodeHandle]) -> Result<[NodeHandle; 2], TypeFault> {
    let (x, y, into) = (args[0], args[1], args[2]);
    let (has_x, has_y) = (g.apply(id::HAS, &[x])?, g.apply(id::HAS, &[y])?);
    let (x, y) = (g.apply(id::PRESENCE_AND, &[x, has_y])?, g.apply(id::PRESENCE_AND, &[y, has_x])?);
    Ok([deviations(g, x, into)?, deviations(g, y, into)?])
}

pub(crate) static COVARIANCE: OpDef = OpDef {
    name: "math.covariance",
    aliases: &["covariance"],
    summary: "The covariance of the elements that are present in both arrays, per group of the edge `into` or for the whole arrays. Missing if there is no such element, or only one and `unbiased` is true.",
    params: &[param("x"), param("y"), param_or("into", Value::Unspecified), param_or("unbiased", TRUE)],
    integers: Integers::Widen,
    typing: Typing::Rule(|args| {
        check_boolean(COVARIANCE.name, args, 3, "unbiased")?;
        pair_types(COVARIANCE.name, args, false)
    }),
    meaning: Meaning::Expand(|g, args| {
        let into = args[2];
        let [x, y] = paired_deviations(g, args)?;
        let products = g.apply(id::MULTIPLY, &[x, y])?;
        let count = g.apply(id::ARRAY_COUNT, &[products, into])?;
        let (fewer, zero) = (cast(g, args[3], Scalar::Int64)?, g.literal(Value::Scalar(ScalarValue::Int64(0))));
        let count = g.apply(id::SUBTRACT, &[count, fewer])?;
        let is_enough = g.apply(id::GREATER, &[count, zero])?;
        let count = g.apply(id::PRESENCE_AND, &[count, is_enough])?;
        let to = scalar_of(g, products);
        let (sum, count) = (g.apply(id::MATH_SUM, &[products, into])?, cast(g, count, to)?);
        g.apply(id::DIVIDE, &[sum, count])
    }),
    examples: &[ex("covariance([1, 2, missing, 3], [2, 4, 9, 6])", "f64?{2}")],
    ..ARRAY
};

pub(crate) static CORRELATION: OpDef = OpDef {
    name: "math.correlation",
    aliases: &["correlation"],
    summary: "Pearson's correlation of the elements that are present in both arrays, per group of the edge `into` or for the whole arrays: from -1 to 1. Missing if there is no such element, NaN if the elements of one array are all equal.",
    params: &[param("x"), param("y"), param_or("into", Value::Unspecified)],
    integers: Integers::Widen,
    typing: Typing::Rule(|args| pair_types(CORRELATION.name, args, false)),
    meaning: Meaning::Expand(|g, args| {
        let into = args[2];
        let [x, y] = paired_deviations(g, args)?;
        let mut sums = [(x, y), (x, x), (y, y)];
        for (a, b) in &mut sums {
            *a = g.apply(id::MULTIPLY, &[*a, *b])?;
            *b = g.apply(id::MATH_SUM, &[*a, into])?;
        }
        let [(products, together), (_, x), (_, y)] = sums;
        let (both, half) = (g.apply(id::MULTIPLY, &[x, y])?, number(g, 0.5));
        let root = g.apply(id::POW, &[both, half])?;
        let ratio = g.apply(id::DIVIDE, &[together, root])?;
        let has = g.apply(id::HAS, &[products])?;
        let any = g.apply(id::ANY, &[has, into])?;
        let ratio = g.apply(id::PRESENCE_AND, &[ratio, any])?;
        let (least, most) = (number(g, -1.0), number(g, 1.0));
        let ratio = g.apply(id::MAXIMUM, &[ratio, least])?;
        g.apply(id::MINIMUM, &[ratio, most])
    }),
    examples: &[ex("correlation([1, 2, missing, 3], [9, 6, 9, 3])", "f64?{-1}")],
    ..ARRAY
};

pub(crate) static WEIGHTED_AVERAGE: OpDef = OpDef {
    name: "math.weighted_average",
    aliases: &["weighted_average"],
    summary: "The average of the elements, weighted by `weights`, per group of the edge `into` or for the whole array. An element without a value or without a weight is left out. Sums and quotient are computed in f64, and the result is rounded once. It is never missing: if the weights add up to 0, it is an infinity or NaN.",
    params: &[param("values"), param("weights"), param_or("into", Value::Unspecified)],
    integers: Integers::Widen,
    typing: Typing::Rule(|args| pair_types(WEIGHTED_AVERAGE.name, args, true)),
    meaning: Meaning::Expand(|g, args| {
        let into = args[2];
        let common = common_type(&g.qtype(args[0]), &g.qtype(args[1])).and_then(|common| common.of_each().scalar());
        let ret = float(common.unwrap_or(Scalar::Float64));
        let mut values = [args[0], args[1]];
        for value in &mut values {
            *value = cast(g, *value, ret)?;
            *value = cast(g, *value, Scalar::Float64)?;
        }
        let [values, weights] = values;
        let products = g.apply(id::MULTIPLY, &[values, weights])?;
        let has = g.apply(id::HAS, &[values])?;
        let weights = g.apply(id::PRESENCE_AND, &[weights, has])?;
        let (sum, weight) = (g.apply(id::MATH_SUM, &[products, into])?, g.apply(id::MATH_SUM, &[weights, into])?);
        let average = g.apply(id::DIVIDE, &[sum, weight])?;
        cast(g, average, ret)
    }),
    examples: &[
        ex("weighted_average([1, 2, 3], [1, 1, missing])", "f64{1.5}"),
        ex("weighted_average([1f64, 4f64], [2f64, 1f64], edge.from_sizes([2]))", "[2]"),
    ],
    ..ARRAY
};

pub(crate) static SOFTMAX: OpDef = OpDef {
    name: "math.softmax",
    aliases: &["softmax"],
    summary: "For each element, `exp(beta * x)` divided by the sum of these exponentials over its group of the edge `over`, or over the whole array. Missing for a missing element.",
    params: &[
        param("x"),
        param_or("beta", Value::Scalar(ScalarValue::WeakFloat(1.0))),
        param_or("over", Value::Unspecified),
    ],
    integers: Integers::Widen,
    typing: Typing::Rule(|args| {
        let operator = SOFTMAX.name;
        let (kind, scalar) = array_argument(operator, args, 0)?;
        if !scalar.is_numeric() {
            return refuse(0, format!("{operator} does not take {}", args[0].qtype));
        }
        let beta = args[1].qtype;
        if !matches!(beta, QType::Scalar(scalar) if scalar.is_numeric()) {
            return refuse(1, format!("{operator} expects a number for `beta`, found {beta}"));
        }
        edge_argument(operator, args, 2, kind)?;
        let common = common_type(args[0].qtype, beta).and_then(|common| common.of_each().scalar());
        let ret = float(common.ok_or_else(|| no_common_type(operator, &args[..2]))?);
        Ok(Signature::unchanged(args, QType::Array(kind, ret)))
    }),
    meaning: Meaning::Expand(|g, args| {
        let over = args[2];
        // The maximum is subtracted first, so that no power is large.
        let below = against(g, id::SUBTRACT, args[0], id::MATH_MAX, over)?;
        let exponents = g.apply(id::MULTIPLY, &[args[1], below])?;
        let powers = g.apply(id::EXP, &[exponents])?;
        against(g, id::DIVIDE, powers, id::MATH_SUM, over)
    }),
    examples: &[
        ex("softmax([1, missing, 1])", "[0.5, NA, 0.5]"),
        ex("softmax([7f64, 7f64, 0f64], over=edge.from_sizes([2, 1]))", "[0.5, 0.5, 1]"),
    ],
    ..ARRAY
};

"""Tests of `cembra.arolla`: for each operator and type that both have, `cembra.arolla.eval` must give the result of `arolla.eval`."""

import random

import numpy as np
import pytest

pytest.importorskip("arolla")

from arolla import arolla  # noqa: E402

import cembra  # noqa: E402
import cembra.arolla  # noqa: E402
from cembra._cembra import _has_operator  # noqa: E402

L, M, P = arolla.L, arolla.M, arolla.P
BACKENDS = [cembra.arolla.eval, cembra.arolla.eval_interpreted]


def assert_same(got, want):
    """Returns true if two values have the same type and are equal, where all NaNs are equal."""
    assert got.qtype == want.qtype
    if arolla.is_namedtuple_qtype(want.qtype):
        for name in arolla.types.get_namedtuple_field_names(want.qtype):
            assert_same(got[name], want[name])
    elif arolla.is_tuple_qtype(want.qtype):
        for one, other in zip(got, want, strict=True):
            assert_same(one, other)
    elif want.qtype in (arolla.DENSE_ARRAY_EDGE, arolla.ARRAY_EDGE):
        assert got.parent_size == want.parent_size
        assert_same(got.mapping(), want.mapping())
    elif hasattr(want, "py_value"):
        arolla.testing.assert_qvalue_allequal(got, want)
    else:
        assert got.fingerprint == want.fingerprint


def check(expr, /, **leaves):
    want = arolla.eval(expr, **leaves)
    for evaluate in BACKENDS:
        assert_same(evaluate(expr, **leaves), want)


EDGE = arolla.types.DenseArrayEdge.from_sizes([2, 0, 1])
SPARSE_EDGE = arolla.types.ArrayEdge.from_mapping([2, None, 0], 3)
VALUES = {
    arolla.INT32: [0, 1, -7, 2**31 - 1, -(2**31)],
    arolla.INT64: [0, 1, -7, 2**63 - 1, -(2**63)],
    arolla.types.UINT64: [0, 1, 2**64 - 1],
    arolla.FLOAT32: [0.0, -0.0, 1.5, -2.5, float("inf"), float("nan"), 3e38],
    arolla.FLOAT64: [0.0, -0.0, 1.5, -2.5, float("-inf"), float("nan"), 1e300],
    arolla.WEAK_FLOAT: [0.0, 1.5, -2.5],
    arolla.BOOLEAN: [True, False],
    arolla.UNIT: [True],
    arolla.TEXT: ["", "a", "grün \"x\"\n", "12"],
    arolla.BYTES: [b"", b"a", b"\xff\x00\"\\"],
}
SCALARS = {
    arolla.INT32: arolla.int32,
    arolla.INT64: arolla.int64,
    arolla.types.UINT64: arolla.types.uint64,
    arolla.FLOAT32: arolla.float32,
    arolla.FLOAT64: arolla.float64,
    arolla.WEAK_FLOAT: arolla.weak_float,
    arolla.BOOLEAN: arolla.boolean,
    arolla.UNIT: lambda _: arolla.unit(),
    arolla.TEXT: arolla.text,
    arolla.BYTES: arolla.bytes,
}


# Sizes and groups, for which Arolla takes memory whatever they are; and bytes that its strips can do with.
SMALL = {**VALUES, arolla.BYTES: [b"", b"a", b"\x00\"\\"], arolla.INT32: [0, 1, 2], arolla.INT64: [0, 1, 2], arolla.types.UINT64: [0, 1, 2]}


def value_of(qtype, draw, values):
    """Returns some value of a type; `None` if this file has no value of the type."""
    if qtype in values:
        return SCALARS[qtype](draw.choice(values[qtype]))
    scalar = qtype.value_qtype
    if arolla.is_optional_qtype(qtype):
        if draw.random() < 0.3:
            return arolla.abc.invoke_op("core.empty_like", (arolla.abc.invoke_op("core.to_optional", (value_of(scalar, draw, values),)),))
        return arolla.abc.invoke_op("core.to_optional", (value_of(scalar, draw, values),))
    if scalar in values:
        drawn = [None if draw.random() < 0.3 else draw.choice(values[scalar]) for _ in range(3)]
        if arolla.is_dense_array_qtype(qtype):
            return arolla.dense_array(drawn, scalar)
        return arolla.array(drawn, scalar)
    return {
        arolla.DENSE_ARRAY_EDGE: EDGE,
        arolla.ARRAY_EDGE: SPARSE_EDGE,
        arolla.DENSE_ARRAY_SHAPE: arolla.types.DenseArrayShape(3),
        arolla.ARRAY_SHAPE: arolla.types.ArrayShape(3),
        arolla.DENSE_ARRAY_TO_SCALAR_EDGE: arolla.types.DenseArrayToScalarEdge(3),
        arolla.ARRAY_TO_SCALAR_EDGE: arolla.types.ArrayToScalarEdge(3),
        arolla.UNSPECIFIED: arolla.unspecified(),
    }.get(qtype)


# What random operands say nothing of: results that are only near each other, operators on literals, on other operators or on types.
APART = {
    "math.correlation", "math.covariance", "math.kurtosis", "math.skew", "math.softmax", "math.std", "math.var", "math.weighted_average",
    "math.cdf", "math.normal_distribution_inverse_cdf", "math.t_distribution_inverse_cdf", "math.beta_distribution_inverse_cdf",
    "math.exp", "math.expm1", "math.log", "math.log2", "math.log10", "math.log1p", "math.symlog1p", "math.pow", "math.sigmoid", "math.logit",
    "math.log_sigmoid", "math.trig.sin", "math.trig.cos", "math.trig.sinh", "math.trig.atan", "math.inverse_cdf",
    "core.with_assertion", "array.resize_array_shape", "array.iota", "array.concat",
}


def operators():
    names = [name for name in arolla.abc.list_registered_operators() if _has_operator(name) and "._" not in name and name not in APART]
    return [name for name in names if name.split(".")[0] in ("math", "core", "bool", "bitwise", "strings", "array", "edge")]


def test_values_of_every_kind_go_and_come_back():
    draw = random.Random(7)
    for qtype in [*SCALARS, *map(arolla.make_optional_qtype, SCALARS), *map(arolla.make_dense_array_qtype, SCALARS), *map(arolla.make_array_qtype, SCALARS)]:
        for _ in range(5):
            check(L.x, x=value_of(qtype, draw, VALUES))
    check(M.core.make_tuple(L.x, L.y, M.core.has(L.y)), x=1.5, y=arolla.optional_text("u"))
    check(M.core.get_nth(L.x, 1), x=arolla.tuple(1, arolla.tuple("a", arolla.dense_array([1, None]))))
    check(M.namedtuple.make(a=L.x, b=2), x=7)
    check(M.namedtuple.get_field(L.x, "b"), x=arolla.namedtuple(a=1, b=2.5))
    for edge in (EDGE, SPARSE_EDGE, arolla.types.DenseArrayEdge.from_mapping([None, 2, 0], 4)):
        check(M.edge.mapping(L.e), e=edge)
    check(M.edge.from_sizes(L.x), x=arolla.array_int64([1, 2]))
    check(M.core.shape_of(L.x), x=arolla.dense_array([1, None]))
    check(M.dict.get(L.d, L.k), d=arolla.types.Dict({"a": 1, "b": 2}), k="b")
    check(M.core.equal(L.x, L.x), x=arolla.dense_array([], arolla.FLOAT32))


def test_literals_lambdas_and_operators_as_operands():
    P_x = P.x
    increment = arolla.LambdaOperator("x", P_x + 1)
    check(increment(L.y) * increment(L.y), y=2)
    check(M.core.map(increment, L.x), x=arolla.array([1, None]))
    check(M.core.map(arolla.LambdaOperator("text", P.text * 2), L.date), date=arolla.array([1, None]))
    check(M.core.map_tuple(M.math.neg, L.x), x=arolla.tuple(1, 2.5))
    check(M.core.reduce_tuple(M.math.add, L.x), x=arolla.tuple(1, 2, 3))
    check(M.seq.reduce(M.math.add, L.s, 0), s=arolla.types.Sequence(1, 2, 3))
    check(M.math.sum(arolla.dense_array([1.5, None, 3.0])) + L.x, x=1.0)
    check(M.math.sum(L.x, into=EDGE), x=arolla.dense_array([1.5, None, 3.0]))
    check(M.core.cast(L.x, arolla.INT64), x=7)
    check(M.strings.printf("%s-%d", L.x, 5), x="a")
    for literal in [arolla.optional_float32(-2.5), arolla.optional_int64(None), arolla.present(), arolla.weak_float(float("inf")), arolla.types.uint64(7), arolla.bytes(b"\xff"), arolla.tuple(), arolla.unit()]:
        check(M.core.make_tuple(L.x, literal), x=1)
    check(M.core.make_tuple(L.x, arolla.float32(0.1), arolla.float64(0.1), arolla.int64(-7), arolla.int32(-7)), x=1)
    check(M.math.sum(arolla.dense_array([1.5])) - M.math.sum(arolla.dense_array([4.0, None])) * L.x, x=2.0)
    check(M.annotation.name(L.x + 1, "sum"), x=1)
    check(M.annotation.qtype(L.x, arolla.INT32) + 1, x=1)
    check(arolla.literal(7))
    check(M.strings.printf("%d", L.x), x=arolla.optional_text(None))
    check(M.strings.format("{x:.1f}", x=L.x), x=arolla.optional_text(None))
    check(M.strings.format("{x:.1f}", x=L.x), x=1.25)
    shared = M.math.sqrt(L.x)
    check(M.core.where(L.x > 0.0, shared, shared + 1.0), x=4.0)


def test_what_cembra_has_not_is_named():
    with pytest.raises(cembra.arolla.Unsupported, match="experimental.ewma") as raised:
        cembra.arolla.eval(M.experimental.ewma(arolla.dense_array([1.0, 2.0]), 0.5))
    assert raised.value.what == "operator experimental.ewma" and isinstance(raised.value, ValueError)
    with pytest.raises(cembra.arolla.Unsupported, match="untyped-output|dict"):
        cembra.arolla.eval(L.d, d=arolla.types.Dict({"a": 1}))
    with pytest.raises(cembra.arolla.Unsupported, match="slice"):
        cembra.arolla.eval(L.s, s=arolla.eval(M.core.make_slice(1, 2)))
    # Arolla keeps one element, cembra would keep all.
    sparse = arolla.array(ids=[7], values=[1], size=arolla.int64(10**18))
    with pytest.raises(cembra.arolla.Unsupported, match="each of the 1000000000000000000 elements"):
        cembra.arolla.eval(M.math.sum(L.x), x=sparse)
    with pytest.raises(ValueError, match="larger than the operators support"):
        cembra.arolla.eval(M.array.from_indices_and_values(arolla.array_int64([7]), arolla.array([1]), L.n), n=arolla.int64(10**15))
    with pytest.raises(ValueError, match="leaves without values: y"):
        cembra.arolla.eval(L.x + L.y, x=1)
    with pytest.raises(ValueError, match="division by zero") as raised:
        cembra.arolla.eval(L.x // 0, x=1)
    assert raised.value.operator == "math.floordiv" and isinstance(raised.value, cembra.Error)


def test_types_that_differ_are_no_results(monkeypatch):
    # As if Arolla knew another type than cembra.
    of_arolla = cembra.arolla.spelled
    monkeypatch.setattr(cembra.arolla, "spelled", lambda qtype: "f64" if qtype == arolla.FLOAT32 else of_arolla(qtype))
    with pytest.raises(cembra.arolla.Unsupported, match="the result is f32 in cembra, and f64 in Arolla"):
        cembra.arolla.eval(M.core.to_float32(L.x) + 0.25, x=12)


def test_a_model_of_an_expression_is_for_values_of_python():
    model = cembra.arolla.compile(M.annotation.qtype(L.x, arolla.FLOAT64) * 2 + L.y)
    assert list(model.inputs) == ["x", "y"] and model.inputs["x"] == "f64"
    assert model(1.5, 2.0) == 5.0 and model(x=np.array([1.0, 2.0]), y=1.0).tolist() == [3.0, 5.0]
    model = cembra.arolla.compile(L.x / L.y, types={"x": arolla.INT32, "y": arolla.OPTIONAL_INT32})
    assert model(1, 4) == 0.25 and model(1, None) is None
    with pytest.raises(cembra.arolla.Unsupported, match="make it a leaf"):
        cembra.arolla.compile(M.math.sum(arolla.dense_array([1, 2])))


def test_the_models_of_few_expressions_are_kept():
    cembra.arolla._models.clear()
    for at in range(1100):
        cembra.arolla.eval(L.x + at, x=1)
    assert len(cembra.arolla._models) == 1024
    assert cembra.arolla.eval(L.x + 1099, x=2.5).qtype == arolla.FLOAT32


def test_arrays_go_by_their_buffers():
    # A loop of Python over a million elements takes longer than this test may.
    x = arolla.dense_array_float64(np.arange(1e6))
    holes = arolla.eval(M.core.presence_and(L.x, L.x > 10.0), x=x)
    check(L.x * 2.0, x=x)
    check(L.x * 2.0, x=holes)
    check(L.x > 10.0, x=holes)


@pytest.mark.parametrize("family", ["math", "core", "bool", "bitwise", "strings", "array", "edge"])
def test_every_operator_on_every_type(family):
    draw, done = random.Random(1), 0
    differ, unsupported = [], []
    for name in operators():
        operator = arolla.abc.lookup_operator(name)
        if not name.startswith(family + "."):
            continue
        try:
            found = list(arolla.testing.detect_qtype_signatures(operator, max_arity=3))
        except ValueError:
            continue  # Those that take literals or operators.
        for *types, _ in draw.sample(found, min(len(found), 60)):
            operands = [value_of(qtype, draw, SMALL if family in ("array", "edge", "strings") else VALUES) for qtype in types]
            if any(operand is None for operand in operands):
                continue
            leaves = {f"x{at}": operand for at, operand in enumerate(operands)}
            expr = operator(*(arolla.literal(operand) if operand.qtype == arolla.UNSPECIFIED else L[name] for name, operand in leaves.items()))
            leaves = {name: operand for name, operand in leaves.items() if operand.qtype != arolla.UNSPECIFIED}
            try:
                want = arolla.eval(expr, **leaves)
                repr(want)
            except UnicodeDecodeError:
                continue  # A text of Arolla's that is no UTF-8.
            except ValueError:
                with pytest.raises(ValueError):
                    cembra.arolla.eval(expr, **leaves)
                continue
            for evaluate in BACKENDS:
                try:
                    assert_same(evaluate(expr, **leaves), want)
                except cembra.arolla.Unsupported as error:
                    unsupported.append(f"{name}: {error.what}")
                    continue
                except Exception as error:
                    differ.append(f"{expr} of {leaves}: {want} in Arolla: {error}")
            done += 1
    print(unsupported)
    print("\n".join(differ))
    assert not differ and len(unsupported) < done / 20
    assert done > 20

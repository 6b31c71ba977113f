"""The workloads of `peers.py`: their data, and what computes them in each package.

A workload is a text of `benches/workloads`, or one that is here. A function `PACKAGE_WORKLOAD` is what somebody who knows the package would
write. A missing value is a masked element for cembra, a null for Arolla, Polars and DuckDB, and a NaN for the others, which have nothing else.
"""

import math
import pathlib
from typing import NamedTuple

import numpy as np

TEXTS = pathlib.Path(__file__).parents[1] / "workloads"
PER_GROUP = 100


class Groups(NamedTuple):
    """Which rows are in which group: the group of each row, -1 for none, and for neighbours the points between groups too."""

    ids: np.ndarray
    count: int
    points: np.ndarray | None = None


# Data, for a number of rows.


def numbers(rows, rng, low=0.0, high=1.0):
    """Random numbers of a range."""
    return rng.uniform(low, high, rows)


def with_gaps(values, rng):
    """The values, a fifth of them missing."""
    return np.ma.MaskedArray(values, rng.random(len(values)) < 0.2)


def scattered(rows, rng, loose=0.0):
    """Groups in no order, of `PER_GROUP` rows on average; a share of the rows is in none, and then the last group is empty too."""
    count = max(rows // PER_GROUP, 2)
    ids = rng.integers(0, count - 1 if loose else count, rows)
    return Groups(np.where(rng.random(rows) < loose, -1, ids), count)


def neighbours(rows, rng):
    """Groups of 1 to 200 rows, one behind the other."""
    ends = np.cumsum(rng.integers(1, 201, rows // 50 + 10))
    points = np.concatenate([[0], ends[ends < rows], [rows]])
    return Groups(np.repeat(np.arange(len(points) - 1), np.diff(points)), len(points) - 1, points)


def data(name, rows, rng):
    """The inputs of a workload, by the names that its text gives them."""
    if name == "B1":
        return {"a": numbers(rows, rng), "b": numbers(rows, rng), "c": numbers(rows, rng)}
    if name == "B4":
        return {"x": numbers(rows, rng, -5.0, 5.0)}
    if name == "B5":
        return {"s": numbers(rows, rng, 50.0, 150.0), "k": numbers(rows, rng, 50.0, 150.0), "t": numbers(rows, rng, 0.1, 2.0)}
    if name == "A1":
        return {"x": with_gaps(rng.normal(size=rows), rng), "y": numbers(rows, rng, -1.0)}
    if name == "A2":
        return {"x": with_gaps(rng.normal(10.0, 3.0, rows), rng)}
    if name == "A3":
        return {"x": numbers(rows, rng), "w": numbers(rows, rng), "by": scattered(rows, rng, 0.01)}
    if name in ("A4", "A6"):
        return {"x": rng.normal(0.0, 3.0, rows), "by": neighbours(rows, rng)}
    if name == "A5":
        return {"x": with_gaps(rng.normal(size=rows), rng)}
    if name == "A7":
        return {"x": rng.normal(0.0, 2.0, rows).astype("f4"), "k": np.float32(1.5), "c": np.float32(-0.25)}
    if name == "A8":
        return {"x": rng.normal(size=rows), "by": scattered(rows, rng)}
    if name == "logistic":
        return {"x": rng.normal(size=(rows, 32)), "y": (rng.random(rows) < 0.5) * 1.0, "w": rng.normal(0.0, 0.1, 32)}
    assert name == "MLP"
    given = {"x": rng.normal(size=(rows, 64)), "y": np.eye(10)[rng.integers(0, 10, rows)]}
    given |= {"w1": rng.normal(0.0, 0.1, (64, 128)), "b1": np.zeros(128), "w2": rng.normal(0.0, 0.1, (128, 10)), "b2": np.zeros(10)}
    return {name: value.astype("f4") for name, value in given.items()} | {"rate": np.float32(0.1)}


# Formulas that packages share whose arrays have operators of Python.


def price(s, k, t, exp, log, sqrt, absolute, where, number=float):
    """The price of a call by the formula of Black and Scholes, by the functions of a package. `number` makes its literals of Python's."""

    def normal(d):
        q = 1.0 / (1.0 + number(0.2316419) * absolute(d))
        steps = q * number(1.330274429)
        for factor in (-1.821255978, 1.781477937, -0.356563782, 0.319381530):
            steps = q * (number(factor) + steps)
        tail = number(0.39894228040143267794) * exp(-0.5 * d * d) * steps
        return where(d > 0.0, 1.0 - tail, tail)

    v = number(0.3) * sqrt(t)
    d1 = (log(s / k) + number(0.065) * t) / v
    return s * normal(d1) - k * exp(number(-0.02) * t) * normal(d1 - v)


def price_as_text(log, where):
    """The same as a text, for packages that read one."""

    def normal(d):
        q = f"(1.0 / (1.0 + 0.2316419 * abs({d})))"
        steps = f"{q} * (0.319381530 + {q} * (-0.356563782 + {q} * (1.781477937 + {q} * (-1.821255978 + {q} * 1.330274429))))"
        tail = f"(0.39894228040143267794 * exp(-0.5 * {d} * {d}) * ({steps}))"
        return f"{where}({d} > 0.0, 1.0 - {tail}, {tail})"

    v = "(0.3 * sqrt(t))"
    d1 = f"(({log}(s / k) + 0.065 * t) / {v})"
    return f"s * {normal(d1)} - k * exp(-0.02 * t) * {normal(f'({d1} - {v})')}"


# cembra

LOGISTIC = """
input x: tensor[f64, 2], y: tensor[f64, 1], w: tensor[f64, 1]
let z("row") = x("row,feature") * w("feature")
output loss = tensor.mean(math.log1p(math.exp(z)) - y * z)
output slope = tensor.grad(loss, w)
"""

MLP = """
input x: tensor[f32, 2], y: tensor[f32, 2]
input w1: tensor[f32, 2], b1: tensor[f32, 1], w2: tensor[f32, 2], b2: tensor[f32, 1], rate: f32
let first("row,unit") = x("row,feature") * w1("feature,unit")
let hidden = tensor.relu(first + b1)
let second("row,class") = hidden("row,unit") * w2("unit,class")
output loss = tensor.softmax_cross_entropy(second + b2, y)
output next_w1 = w1 - rate * tensor.grad(loss, w1)
output next_b1 = b1 - rate * tensor.grad(loss, b1)
output next_w2 = w2 - rate * tensor.grad(loss, w2)
output next_b2 = b2 - rate * tensor.grad(loss, b2)
"""


def text(name):
    """The text of a workload as cembra compiles it."""
    texts = {"logistic": LOGISTIC, "MLP": MLP}
    return texts.get(name) or (TEXTS / f"{'B4f64' if name == 'B4' else name}.cem").read_text()


# NumPy, which is what the others are compared with.


def numpy_b1(a, b, c):
    return a * b + c


def numpy_b4(x):
    return 1.0 / (1.0 + np.exp(-x))


def numpy_b5(s, k, t):
    return price(s, k, t, np.exp, np.log, np.sqrt, np.abs, np.where)


def numpy_a1(x, y):
    return np.sum(np.where(x > 0.0, x * y, 0.0))


def numpy_a2(x):
    return (x - np.nanmean(x)) / np.nanstd(x, ddof=1)


def numpy_a3(x, w, by):
    inside = by.ids >= 0
    ids, v = by.ids[inside], (x * w)[inside]
    total, rows = np.bincount(ids, v, by.count), np.bincount(ids, minlength=by.count)
    with np.errstate(invalid="ignore"):
        return total, total / rows, rows


def numpy_a4(x, by):
    starts, sizes = by.points[:-1], np.diff(by.points)
    e = np.exp(x - np.repeat(np.maximum.reduceat(x, starts), sizes))
    return e / np.repeat(np.add.reduceat(e, starts), sizes)


def numpy_a5(x):
    gaps = np.isnan(x)
    total, peak = np.nancumsum(x), np.fmax.accumulate(x)
    total[gaps] = peak[gaps] = np.nan
    return total, peak


def numpy_a6(x, by):
    starts, sizes = by.points[:-1], np.diff(by.points)
    order = np.lexsort((x, by.ids))
    ordered = x[order]
    p90 = starts + np.ceil(np.float32(0.9) * sizes.astype("f4")).astype(int) - 1
    return order[by.points[1:] - 1] - starts, ordered[starts + (sizes - 1) // 2], ordered[p90]


def numpy_a7(x, k, c):
    s = 1.0 / (1.0 + np.exp(-(x * k + c)))
    return np.sum(s, dtype="f8"), np.mean(s, dtype="f8")


def numpy_a8(x, by):
    rows = np.bincount(by.ids, minlength=by.count)
    d = x - (np.bincount(by.ids, x, by.count) / rows)[by.ids]
    std = np.sqrt(np.bincount(by.ids, d * d, by.count) / (rows - 1))
    return np.count_nonzero(np.abs(d) > (2.0 * std)[by.ids])


def numpy_logistic(x, y, w):
    z = x @ w
    e = np.exp(z)
    return np.mean(np.log1p(e) - y * z), x.T @ ((e / (1.0 + e) - y) / len(y))


def numpy_mlp(x, y, w1, b1, w2, b2, rate):
    h = np.maximum(x @ w1 + b1, np.float32(0.0))
    z = h @ w2 + b2
    z = z - z.max(axis=1, keepdims=True)
    e = np.exp(z)
    sums = e.sum(axis=1, keepdims=True)
    loss = np.mean(np.log(sums[:, 0]) - np.sum(y * z, axis=1))
    dz = (e / sums - y) / np.float32(len(x))
    dh = (dz @ w2.T) * (h > 0)
    return loss, w1 - rate * (x.T @ dh), b1 - rate * dh.sum(axis=0), w2 - rate * (h.T @ dz), b2 - rate * dz.sum(axis=0)


# Numba: loops of Python, which `peers.py` gives to `numba.njit`.


def numba_b1(a, b, c):
    y = np.empty_like(a)
    for i in range(len(a)):
        y[i] = a[i] * b[i] + c[i]
    return y


def numba_b4(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = 1.0 / (1.0 + math.exp(-x[i]))
    return y


def numba_b5(s, k, t):
    y = np.empty_like(s)
    for i in range(len(s)):
        v = 0.3 * math.sqrt(t[i])
        d1 = (math.log(s[i] / k[i]) + 0.065 * t[i]) / v
        parts = (d1, d1 - v)
        shares = [0.0, 0.0]
        for j in range(2):
            d = parts[j]
            q = 1.0 / (1.0 + 0.2316419 * abs(d))
            steps = q * (0.319381530 + q * (-0.356563782 + q * (1.781477937 + q * (-1.821255978 + q * 1.330274429))))
            tail = 0.39894228040143267794 * math.exp(-0.5 * d * d) * steps
            shares[j] = 1.0 - tail if d > 0.0 else tail
        y[i] = s[i] * shares[0] - k[i] * math.exp(-0.02 * t[i]) * shares[1]
    return y


def numba_a1(x, y):
    dot = 0.0
    for i in range(len(x)):
        if x[i] > 0.0:
            dot += x[i] * y[i]
    return dot


def numba_a2(x):
    total, count = 0.0, 0
    for value in x:
        if not math.isnan(value):
            total += value
            count += 1
    mean, squares = total / count, 0.0
    for value in x:
        if not math.isnan(value):
            squares += (value - mean) ** 2
    return (x - mean) / math.sqrt(squares / (count - 1))


def numba_a3(x, w, ids, count):
    total, rows = np.zeros(count), np.zeros(count, np.int64)
    for i in range(len(x)):
        if ids[i] >= 0:
            total[ids[i]] += x[i] * w[i]
            rows[ids[i]] += 1
    average = np.full(count, np.nan)
    for group in range(count):
        if rows[group] > 0:
            average[group] = total[group] / rows[group]
    return total, average, rows


def numba_a4(x, points):
    p = np.empty_like(x)
    for group in range(len(points) - 1):
        first, end = points[group], points[group + 1]
        largest, total = -np.inf, 0.0
        for i in range(first, end):
            largest = max(largest, x[i])
        for i in range(first, end):
            p[i] = math.exp(x[i] - largest)
            total += p[i]
        for i in range(first, end):
            p[i] /= total
    return p


def numba_a5(x):
    total, peak = np.full_like(x, np.nan), np.full_like(x, np.nan)
    so_far, largest = 0.0, -np.inf
    for i in range(len(x)):
        if not math.isnan(x[i]):
            so_far += x[i]
            largest = max(largest, x[i])
            total[i], peak[i] = so_far, largest
    return total, peak


def numba_a6(x, points):
    count = len(points) - 1
    best, middle, p90 = np.empty(count, np.int64), np.empty(count), np.empty(count)
    for group in range(count):
        part = x[points[group] : points[group + 1]]
        best[group] = np.argmax(part)
        ordered = np.sort(part)
        middle[group] = ordered[(len(part) - 1) // 2]
        p90[group] = ordered[int(math.ceil(np.float32(0.9) * np.float32(len(part)))) - 1]
    return best, middle, p90


def numba_a7(x, k, c):
    total, one = 0.0, np.float32(1.0)
    for value in x:
        total += one / (one + math.exp(-(value * k + c)))
    return total, total / len(x)


def numba_a8(x, ids, count):
    mean, rows, squares = np.zeros(count), np.zeros(count), np.zeros(count)
    for i in range(len(x)):
        mean[ids[i]] += x[i]
        rows[ids[i]] += 1.0
    mean /= rows
    for i in range(len(x)):
        squares[ids[i]] += (x[i] - mean[ids[i]]) ** 2
    limit, outliers = 2.0 * np.sqrt(squares / (rows - 1.0)), 0
    for i in range(len(x)):
        outliers += abs(x[i] - mean[ids[i]]) > limit[ids[i]]
    return outliers


# A product of matrices is the same for both.
numba_logistic = numpy_logistic


# JAX. The number of groups is none of the traced values.

jax_b1 = numpy_b1


def jax_b4(x):
    import jax.numpy as jnp

    return 1.0 / (1.0 + jnp.exp(-x))


def jax_b5(s, k, t):
    import jax.numpy as jnp

    return price(s, k, t, jnp.exp, jnp.log, jnp.sqrt, jnp.abs, jnp.where)


def jax_a1(x, y):
    import jax.numpy as jnp

    return jnp.sum(jnp.where(x > 0.0, x * y, 0.0))


def jax_a2(x):
    import jax.numpy as jnp

    return (x - jnp.nanmean(x)) / jnp.nanstd(x, ddof=1)


def jax_a3(x, w, by):
    import jax
    import jax.numpy as jnp

    ids = jnp.where(by.ids < 0, by.count, by.ids)
    total = jax.ops.segment_sum(x * w, ids, by.count)
    rows = jax.ops.segment_sum(jnp.ones(len(x), int), ids, by.count)
    return total, total / rows, rows


def jax_a4(x, by):
    import jax
    import jax.numpy as jnp

    e = jnp.exp(x - jax.ops.segment_max(x, by.ids, by.count, indices_are_sorted=True)[by.ids])
    return e / jax.ops.segment_sum(e, by.ids, by.count, indices_are_sorted=True)[by.ids]


def jax_a5(x):
    import jax
    import jax.numpy as jnp

    gaps = jnp.isnan(x)
    total, peak = jnp.cumsum(jnp.where(gaps, 0.0, x)), jax.lax.cummax(jnp.where(gaps, -jnp.inf, x))
    return jnp.where(gaps, jnp.nan, total), jnp.where(gaps, jnp.nan, peak)


def jax_a6(x, by):
    import jax.numpy as jnp

    starts, sizes = by.points[:-1], jnp.diff(by.points)
    order = jnp.lexsort((x, by.ids))
    ordered = x[order]
    p90 = starts + jnp.ceil(jnp.float32(0.9) * sizes.astype("f4")).astype(int) - 1
    return order[by.points[1:] - 1] - starts, ordered[starts + (sizes - 1) // 2], ordered[p90]


def jax_a7(x, k, c):
    import jax
    import jax.numpy as jnp

    s = jax.nn.sigmoid(x * k + c)
    return jnp.sum(s, dtype="f8"), jnp.mean(s, dtype="f8")


def jax_a8(x, by):
    import jax
    import jax.numpy as jnp

    rows = jax.ops.segment_sum(jnp.ones(len(x)), by.ids, by.count)
    d = x - (jax.ops.segment_sum(x, by.ids, by.count) / rows)[by.ids]
    std = jnp.sqrt(jax.ops.segment_sum(d * d, by.ids, by.count) / (rows - 1.0))
    return jnp.count_nonzero(jnp.abs(d) > (2.0 * std)[by.ids])


def jax_logistic(x, y, w):
    import jax
    import jax.numpy as jnp

    def loss(w):
        z = x @ w
        return jnp.mean(jnp.log1p(jnp.exp(z)) - y * z)

    return jax.value_and_grad(loss)(w)


def jax_mlp(x, y, w1, b1, w2, b2, rate):
    import jax
    import jax.numpy as jnp

    def loss(w1, b1, w2, b2):
        z = jax.nn.relu(x @ w1 + b1) @ w2 + b2
        return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(z), axis=1))

    value, slopes = jax.value_and_grad(loss, argnums=(0, 1, 2, 3))(w1, b1, w2, b2)
    return value, *(weight - rate * slope for weight, slope in zip((w1, b1, w2, b2), slopes))


# numexpr: texts of one expression with at most one sum around it.

NUMEXPR = {
    "B1": "a * b + c",
    "B4": "1.0 / (1.0 + exp(-x))",
    "B5": price_as_text("log", "where"),
    "A1": "sum(where(x > 0.0, x * y, 0.0))",
}

# DuckDB: the rows are the table `rows`, `i` numbers them, and `by` is their group.

DUCKDB = {
    "B1": "SELECT a * b + c AS y FROM rows",
    "B4": "SELECT 1.0::DOUBLE / (1.0::DOUBLE + exp(-x)) AS y FROM rows",
    "B5": f"SELECT {price_as_text('ln', 'if')} AS y FROM rows",
    "A1": "SELECT sum(x * y) FILTER (x > 0.0) AS dot FROM rows",
    "A2": "SELECT (x - (SELECT avg(x) FROM rows)) / (SELECT stddev_samp(x) FROM rows) AS z FROM rows",
    "A3": 'SELECT "by", sum(x * w) AS total, avg(x * w) AS average, count(*) AS count FROM rows GROUP BY "by"',
    "A4": (
        "SELECT i, e / sum(e) OVER (PARTITION BY \"by\") AS p"
        ' FROM (SELECT i, "by", exp(x - max(x) OVER (PARTITION BY "by")) AS e FROM rows)'
    ),
    "A5": (
        "SELECT i, if(x IS NULL, NULL, sum(x) OVER whole) AS total, if(x IS NULL, NULL, max(x) OVER whole) AS peak FROM rows"
        " WINDOW whole AS (ORDER BY i ROWS UNBOUNDED PRECEDING)"
    ),
    "A6": (
        'SELECT "by", arg_max(i, x) - min(i) AS best, quantile_disc(x, 0.5) AS middle, quantile_disc(x, 0.9) AS p90'
        ' FROM rows GROUP BY "by"'
    ),
    "A7": "SELECT sum(s) AS total, avg(s) AS average FROM (SELECT 1.0::FLOAT / (1.0::FLOAT + exp(-(x * 1.5::FLOAT - 0.25::FLOAT))::FLOAT) AS s FROM rows)",
    "A8": (
        'SELECT count(*) AS outliers FROM (SELECT x - avg(x) OVER (PARTITION BY "by") AS d, stddev_samp(x) OVER (PARTITION BY "by") AS std'
        " FROM rows) WHERE abs(d) > 2.0 * std"
    ),
}


# Polars: functions of a frame. A lazy query finds parts that expressions share, which one on a frame does not.


def polars_workload(name):
    """What gives a frame of results for a frame of inputs; none where Polars has no expression."""
    import polars as pl

    col = pl.col
    x = col("x")
    if name == "B5":
        whole = price(col("s"), col("k"), col("t"), pl.Expr.exp, pl.Expr.log, pl.Expr.sqrt, pl.Expr.abs, polars_where)
        return lambda frame: frame.lazy().select(y=whole).collect()
    if name in ("A3", "A6"):
        v = x * col("w")
        first = {"total": v.sum(), "average": v.mean(), "count": pl.len()}
        # The quantile that is an element: the first with such a share of elements up to it.
        second = {"best": x.arg_max(), "middle": x.quantile(0.5, "lower"), "p90": x.quantile(0.9, "equiprobable")}
        return lambda frame: frame.lazy().group_by("by").agg(**(first if name == "A3" else second)).collect()
    e = (x - x.max().over("by")).exp()
    s = 1.0 / (1.0 + (-(x * np.float32(1.5) + np.float32(-0.25))).exp())
    d = x - x.mean().over("by")
    expressions = {
        "B1": {"y": col("a") * col("b") + col("c")},
        "B4": {"y": 1.0 / (1.0 + (-x).exp())},
        "A1": {"dot": (x * col("y")).filter(x > 0.0).sum()},
        "A2": {"z": (x - x.mean()) / x.std()},
        "A4": {"p": e / e.sum().over("by")},
        "A5": {"total": x.cum_sum(), "peak": x.cum_max()},
        "A7": {"total": s.sum(), "average": s.mean()},
        "A8": {"outliers": (d.abs() > 2.0 * x.std().over("by")).sum()},
    }.get(name)
    return expressions and (lambda frame: frame.lazy().select(**expressions).collect())


def polars_where(condition, then, otherwise):
    """`where` of Polars, in the order of arguments of the others."""
    import polars as pl

    return pl.when(condition).then(then).otherwise(otherwise)


# Arolla


def arolla_workload(name):
    """The expression of Arolla; none where it has none. There a float of Python is an f32, so those that are none are weak floats."""
    from arolla import arolla

    L, M = arolla.L, arolla.M
    x, by = L.x, L.by
    if name == "B5":
        return price(L.s, L.k, L.t, M.math.exp, M.math.log, M.math.sqrt, M.math.abs, M.core.where, arolla.weak_float)
    if name == "A3":
        v = x * L.w
        return M.core.make_tuple(M.math.sum(v, into=by), M.math.mean(v, into=by), M.array.count(v, into=by))
    if name == "A8":
        d = x - M.array.expand(M.math.mean(x, into=by), over=by)
        return M.array.count(M.math.abs(d) > M.array.expand(2.0 * M.math.std(x, into=by), over=by))
    if name == "A5":
        whole = M.edge.to_scalar(x)
        return M.core.make_tuple(M.math.cum_sum(x, over=whole), M.math.cum_max(x, over=whole))
    if name == "A6":
        return M.core.make_tuple(M.math.argmax(x, into=by), M.math.median(x, into=by), M.math.inverse_cdf(x, 0.9, into=by))
    s = M.math.sigmoid(x * L.k + L.c)
    return {
        "B1": L.a * L.b + L.c,
        "B4": 1.0 / (1.0 + M.math.exp(-x)),
        "A1": M.math.sum(x * L.y & (x > 0.0)),
        "A2": (x - M.math.mean(x)) / M.math.std(x),
        "A4": M.math.softmax(x, over=by),
        "A7": M.core.make_tuple(M.math.sum(s), M.math.mean(s)),
    }.get(name)

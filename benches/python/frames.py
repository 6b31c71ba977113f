"""What frames and columns of packages cost: `table` beside taking the columns' arrays by hand, texts of objects beside pandas' own conversion, and a
dictionary beside pandas' `map`. Ratios are of medians of interleaved rounds in one run.

    python benches/python/frames.py [rounds]
"""

import statistics
import sys
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import cembra

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 15


def seconds(call, least=0.02):
    """The seconds of one call, of as many calls as take `least` seconds."""
    count, begun = 0, time.perf_counter()
    while True:
        call()
        count += 1
        passed = time.perf_counter() - begun
        if passed >= least:
            return passed / count


def compared(name, **calls):
    """Prints the medians and the ratio of the first to the second."""
    times = {key: [] for key in calls}
    for call in calls.values():
        call()
    for _ in range(ROUNDS):
        for key, call in calls.items():
            times[key].append(seconds(call))
    medians = {key: statistics.median(all_) for key, all_ in times.items()}
    first, second = list(medians.values())[:2]
    shown = ", ".join(f"{key} {value * 1e6:,.1f} us" for key, value in medians.items())
    print(f"{name:40} {first / second:5.2f}   {shown}", flush=True)


model = cembra.compile("input a, b, c: f64; output y = a * b + c")
ints = cembra.compile("input a, b: i64?; output y = a * b; output z = a + 1")
for rows in (1_000, 100_000, 1_000_000):
    rng = np.random.default_rng(1)
    data = {name: rng.random(rows) for name in "abc"}
    index = rng.permutation(rows)
    frame = pd.DataFrame(data, index=index)
    optional = cembra.compile("input a, b, c: f64?; output y = a * b + c")
    compared(
        f"pandas, NumPy's types, {rows} rows",
        table=lambda: model.table(frame),
        by_hand=lambda: pd.DataFrame({"y": model(frame["a"].to_numpy(), frame["b"].to_numpy(), frame["c"].to_numpy())}, index=frame.index),
    )
    nullable = frame.astype("Float64")
    compared(
        f"pandas, nullable types, {rows} rows",
        table=lambda: optional.table(nullable),
        by_hand=lambda: pd.DataFrame({"y": optional(*(np.ma.MaskedArray(nullable[n].to_numpy("f8", na_value=0.0), nullable[n].isna().to_numpy()) for n in "abc"))}, index=nullable.index),
    )
    polars = pl.DataFrame(data)
    compared(
        f"Polars, {rows} rows",
        table=lambda: model.table(polars),
        by_hand=lambda: pl.DataFrame({"y": model(polars["a"].to_numpy(), polars["b"].to_numpy(), polars["c"].to_numpy())}),
    )
    arrow = pa.table(data)
    compared(
        f"pyarrow, {rows} rows",
        table=lambda: model.table(arrow),
        by_hand=lambda: pa.table({"y": model(arrow["a"].to_numpy(), arrow["b"].to_numpy(), arrow["c"].to_numpy())}),
    )

texts = pd.Series([f"text {at % 1000}" for at in range(1_000_000)], dtype=object)
upper = cembra.compile('input t: text?; output n = strings.length(t)')
compared("1,000,000 texts of objects", cembra=lambda: upper(texts), pandas_to_arrow=lambda: pa.array(texts, from_pandas=True))
compared("1,000,000 texts of objects, NumPy", cembra=lambda: upper(texts.to_numpy()), pandas_to_arrow=lambda: pa.array(texts, from_pandas=True))

rates = {at: float(at) for at in range(50_000)}
keys = np.random.default_rng(2).integers(0, 50_000, 1_000_000)
series = pd.Series(keys)
look = cembra.compile("input r: dict[i64, f64], g: i64; lookup(g, r)")
compared("50,000 entries beside 1,000,000 rows", cembra=lambda: look(rates, keys), pandas_map=lambda: series.map(rates))
names = {f"k{at}": float(at) for at in range(50_000)}
named = pd.Series([f"k{at}" for at in keys])
look_text = cembra.compile("input r: dict[text, f64], g: text?; lookup(g, r)")
compared("the same with texts", cembra=lambda: look_text(names, named), pandas_map=lambda: named.map(names))

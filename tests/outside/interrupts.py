"""Ctrl-C at every door of the Python package: how long after SIGINT the main thread sees `KeyboardInterrupt`.

Each door is a child process that begins an evaluation again and again. It says when an evaluation begins; this process sends SIGINT a little later,
and both read the same clock. An evaluation is right if it ends with `KeyboardInterrupt` within the limit, if nothing goes on after that (an operator
written in Python is not called once more), and if the next call has a right result. A child that does not answer is killed.

    PYTHON tests/outside/interrupts.py [--runs 20] [--limit 0.2] [--seed 1] [DOOR ...]

DOOR is a word that the name of a door has; without one all are tried. The status is 1 if a door fails.
"""

import argparse
import json
import os
import random
import select
import signal
import subprocess
import sys
import time

import numpy as np

import cembra

# Seconds that a child may take to begin, and that an evaluation may go on after SIGINT before the child is killed.
BEGIN, PATIENCE = 120.0, 5.0
# Seconds after which SIGINT is sent: from the first to the second.
DELAYS = (0.03, 0.3)
# Seconds in which nothing may be called after an evaluation has ended.
QUIET = 0.05

LIMITS = {"loop_iterations": 10**15, "array_bytes": 2**36}
LOOP = "input n: i64; seq.reduce(fn(a, b) = a + b, seq.range(n), 0i64)"
ARRAY_LOOP = "input x: [f64]; output y = core.while_loop(x, fn(s) = sum(s) > -1.0, fn(s) = s * 0.5)"
HEAVY = "input a: f64; output y = " + " + ".join(f"exp(-a * {at}.0) * log(a + {at}.5)" for at in range(1, 60))
GROUPS = "input x: [f64?], g: [i64]; output y = sum(x, into=edge.group_by(g))"
PRODUCT = 'input x: tensor[f64, 2]; y("i,k") = x("i,j") * x("j,k")'
LONG = 10**12
DOORS = {}


def door(name):
    """Registers a door: a function that gives an evaluation without an end, and one that is over at once and says whether its result is right.
    A third element is a count of calls of an operator, if there is one."""

    def register(function):
        DOORS[name] = function
        return function

    return register


def compiled(text, **more):
    return cembra.compile(text, limits=LIMITS, **more)


def again(evaluate):
    """An evaluation that is repeated until something is raised."""

    def repeat():
        while True:
            evaluate()

    return repeat


def of_polars(**columns):
    import polars

    return polars.DataFrame(columns)


def of_pandas(**columns):
    import pandas

    return pandas.DataFrame(columns)


def loop_doors():
    @door("scalar loop, model")
    def _():
        loop = compiled(LOOP)
        return lambda: loop(10**14), lambda: loop(10) == 45

    @door("scalar loop, session")
    def _():
        loop = compiled(LOOP)
        session = loop.session()
        return lambda: session(10**14), lambda: session(10) == 45 and loop.session()(11) == 55

    @door("scalar loop, session with a token")
    def _():
        # The interrupt ends the evaluation, and not what else has the token.
        loop, token = compiled(LOOP), cembra.Cancellation()
        session = loop.session(cancellation=token)
        return lambda: session(10**14), lambda: session(10) == 45 and not token.is_cancelled

    @door("scalar loop, session with a time limit")
    def _():
        session = compiled(LOOP).session(time_limit=3600.0)
        return lambda: session(10**14), lambda: session(10) == 45

    @door("scalar loop, interpreter")
    def _():
        loop = compiled(LOOP, backend="interpreter")
        return lambda: loop(10**14), lambda: loop(10) == 45

    for kind in ["model", "session"]:

        @door(f"array loop, {kind}")
        def _(kind=kind):
            model = compiled(ARRAY_LOOP)
            evaluate = model if kind == "model" else model.session()
            return lambda: evaluate(np.ones(10)), lambda: list(evaluate(np.array([-3.0, 1.0]))) == [-3.0, 1.0]

    # The column goes in by each of the doors for rows.
    def rows(name, evaluate):
        @door(f"1,000 loops, {name}")
        def _():
            loop = compiled(LOOP)

            def is_right():
                made = evaluate(loop, np.array([0, 1, 2, 3, 4, 10]))
                return [int(one) for one in made] == [0, 0, 1, 3, 6, 45]

            return lambda: evaluate(loop, np.full(1000, LONG)), is_right

    rows("call", lambda loop, n: loop(n))
    rows("run, 2 threads", lambda loop, n: loop.run({"n": n}, threads=2)[0])
    rows('run, on_error="missing"', lambda loop, n: loop.run({"n": n}, on_error="missing")[0])
    token = cembra.Cancellation()
    rows("run with a token and a time limit", lambda loop, n: loop.run({"n": n}, time_limit=3600.0, cancellation=token)[0])
    rows("table of Polars", lambda loop, n: loop.table(of_polars(n=n))["result"])
    rows("table of pandas", lambda loop, n: loop.table(of_pandas(n=n))["result"])
    rows("table of pandas, 2 threads", lambda loop, n: loop.table(of_pandas(n=n), threads=2)["result"])


def long_doors():
    @door("rows of a heavy expression, call")
    def _():
        model, small = compiled(HEAVY), np.array([0.5, 2.0])
        right, rows = model(small), np.random.default_rng(1).random(4_000_000)
        return again(lambda: model(rows)), lambda: (model(small) == right).all()

    @door("rows of a heavy expression, run, 2 threads")
    def _():
        model, small = compiled(HEAVY), np.array([0.5, 2.0])
        right, rows = model(small), np.random.default_rng(1).random(4_000_000)
        return again(lambda: model.run({"a": rows}, threads=2)), lambda: (model(small) == right).all()

    @door("groups of 20,000,000 elements")
    def _():
        model, count = compiled(GROUPS), 20_000_000
        x, g = np.ones(count), np.arange(count)
        return again(lambda: model(x, g)), lambda: list(model(np.array([1.0, 2.0, 4.0]), np.array([7, 5, 7]))) in ([5.0, 2.0], [2.0, 5.0])

    @door("product of matrices of 3,000 rows")
    def _():
        model, x = compiled(PRODUCT), np.ones((3000, 3000))
        return again(lambda: model(x)), lambda: model(np.array([[1.0, 1.0], [0.0, 1.0]])).tolist() == [[1.0, 2.0], [0.0, 1.0]]

    @door("product of matrices of 3,000 rows, session")
    def _():
        session, x = compiled(PRODUCT).session(), np.ones((3000, 3000))
        return again(lambda: session(x)), lambda: session(np.array([[1.0, 1.0], [0.0, 1.0]])).tolist() == [[1.0, 2.0], [0.0, 1.0]]

    @door("10,000,000 texts of objects")
    def _():
        model = compiled("input t: text; strings.length(t)")
        texts = np.array([f"text {at}" for at in range(1000)] * 10_000, object)
        return again(lambda: model(texts)), lambda: model(np.array(["a", "größe"], object)).tolist() == [1, 5]

    @door("a list of 5,000,000 numbers, in and out")
    def _():
        model, values = compiled("input x: [f64]; output y = x * 2.0"), [float(at) for at in range(5_000_000)]
        return again(lambda: model(values)), lambda: model([1.0, 2.5]) == [2.0, 5.0]

    @door("a dictionary of 2,000,000 entries")
    def _():
        model, rates = compiled("input r: dict[i64, f64], g: i64; lookup(g, r)"), {at: float(at) for at in range(2_000_000)}
        return again(lambda: model(rates, 7)), lambda: model({7: 2.5}, 7) == 2.5

    @door("a dictionary of 200,000 entries beside 1,000,000 rows")
    def _():
        model, rates = compiled("input r: dict[i64, f64], g: i64; lookup(g, r)"), {at: float(at) for at in range(200_000)}
        rows = np.arange(1_000_000)
        return again(lambda: model(rates, rows)), lambda: model({7: 2.5}, np.array([7, 7])).tolist() == [2.5, 2.5]

    @door("run_tests")
    def _():
        tests = 'input n: i64; output y = seq.reduce(fn(a, b) = a + b, seq.range(n), 0i64); test "sums" { n => y; %d => 45 }'
        endless, short = compiled(tests % 10**14), compiled(tests % 10)
        return endless.run_tests, lambda: short.run_tests() == 1

    @door("compile a large text")
    def _():
        text = "input x: f64\n" + "".join(f"output y{at} = exp(x * {at}.5) + log(x + {at}.0) * sin(x)\n" for at in range(20_000))
        return again(lambda: compiled(text)), lambda: compiled("input x: f64; x * 2.0")(1.5) == 3.0

    @door("compile a large text at the first call")
    def _():
        text = "".join(f"output y{at} = exp(x * {at}.5) + log(x + {at}.0) * sin(x)\n" for at in range(20_000))
        return again(lambda: compiled(text)(2.0)), lambda: compiled("x * 2.0")(1.5) == 3.0

    @door("explain")
    def _():
        text = "input x: f64\n" + "".join(f"output y{at} = exp(x * {at}.5) + log(x + {at}.0) * sin(x)\n" for at in range(4_000))
        model, small = compiled(text), compiled("input x: f64; x * 2.0")
        return again(lambda: model.explain("asm")), lambda: "multiply" in small.explain("prepared")


def operator_doors():
    def operator_of_rows(seconds):
        seen = [0]

        @cembra.operator("slow.twice", "f64", "f64")
        def twice(x):
            seen[0] += 1
            time.sleep(seconds)
            return x * 2.0

        return compiled("input x: f64; slow.twice(x) + 1.0"), lambda: seen[0]

    def rows(name, evaluate):
        @door(f"operator in Python, {name}")
        def _():
            model, count = operator_of_rows(0.0005)
            is_right = lambda: [float(one) for one in evaluate(model, np.array([1.0, 2.5]))] == [3.0, 6.0]  # noqa: E731
            return lambda: evaluate(model, np.ones(100_000)), is_right, count

    rows("call", lambda model, x: model(x))
    rows('run, on_error="missing"', lambda model, x: model.run({"x": x}, on_error="missing")[0])
    rows("run, 2 threads", lambda model, x: model.run({"x": x}, threads=2)[0])
    rows("table of Polars", lambda model, x: model.table(of_polars(x=x))["result"])
    rows("table of pandas", lambda model, x: model.table(of_pandas(x=x))["result"])
    rows("session for each row", lambda model, x: list(map(model.session(), x.tolist())))

    @door("operator in Python, scalar calls")
    def _():
        model, count = operator_of_rows(0.0)
        return again(lambda: model(1.0)), lambda: model(2.5) == 6.0, count

    @door("operator in Python, scalar calls of a loop")
    def _():
        operator_of_rows(0.0)
        model = compiled("input n: i64; seq.reduce(fn(a, b) = a + slow.twice(to_float64(b)), seq.range(n), 0.0)")
        return lambda: model(10**9), lambda: model(4) == 12.0

    def columns(name, evaluate):
        @door(f"operator over columns, {name}")
        def _():
            seen = [0]

            @cembra.operator("slow.share", "f64", "f64", columns=True)
            def share(x):
                seen[0] += 1
                ends = time.monotonic() + (10.0 if len(x) > 100 else 0.0)
                while time.monotonic() < ends:
                    sum(range(1000))
                return x / x.sum()

            model = compiled("input x: f64; slow.share(x) * 8.0")
            is_right = lambda: [float(one) for one in evaluate(model, np.array([1.0, 3.0]))] == [2.0, 6.0]  # noqa: E731
            return lambda: evaluate(model, np.ones(1000)), is_right, lambda: seen[0]

    columns("call", lambda model, x: model(x))
    columns('run, on_error="missing"', lambda model, x: model.run({"x": x}, on_error="missing")[0])
    columns("table of pandas", lambda model, x: model.table(of_pandas(x=x))["result"])


def child(name, runs):
    """Evaluates a door `runs` times. For each it writes that it begins, and later a line of what was seen."""

    def say(**what):
        os.write(1, (json.dumps(what) + "\n").encode())

    prepared = DOORS[name]()
    evaluate, is_right = prepared[:2]
    count = prepared[2] if len(prepared) > 2 else lambda: 0
    say(ready=bool(is_right()))
    for _ in range(runs):
        seen, at = "nothing", None
        try:
            say(begins=True)
            evaluate()
            seen = "an end"
            time.sleep(1.0)
        except KeyboardInterrupt:
            at = time.monotonic()
            # An interrupt after the end is one that the evaluation was over for.
            seen = "KeyboardInterrupt" if seen == "nothing" else "an end before the signal"
        except BaseException as error:  # Any other exception is a fault of the door.
            seen = f"{type(error).__name__}: {error}"[:200]
        before = count()
        try:
            time.sleep(QUIET)
            calls, right, wrong = count() - before, bool(is_right()), ""
        except BaseException as error:
            calls, right, wrong = count() - before, False, f"{type(error).__name__}: {error}"[:200]
        say(seen=seen, at=at, calls=calls, right=right, wrong=wrong)


class Lines:
    """The lines that a process writes, each with a deadline."""

    def __init__(self, process):
        self.process, self.rest = process, b""

    def next(self, seconds):
        """The next line as an object; `None` if there is none in time, or the process has ended."""
        ends = time.monotonic() + seconds
        while b"\n" not in self.rest:
            left = ends - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                return None
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)


def tried(name, runs, delay):
    """Tries a door: the seconds of each evaluation, and the faults."""
    command = [sys.executable, "-W", "ignore", __file__, "--child", name, "--runs", str(runs)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines, seconds, faults = Lines(process), [], []

    def broke(what):
        process.kill()
        said = process.communicate()[1].decode(errors="replace").strip().splitlines()
        faults.append(f"{what}{': ' + said[-1][:200] if said else ''}")

    ready = lines.next(BEGIN)
    if ready is None or not ready.get("ready"):
        broke("does not begin" if ready is None else "a wrong result before any signal")
        return seconds, faults
    for _ in range(runs):
        if lines.next(PATIENCE) is None:
            broke("the next evaluation does not begin")
            return seconds, faults
        time.sleep(delay.uniform(*DELAYS))
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        # The check after the interrupt is a part of the answer.
        answer = lines.next(PATIENCE + 1.0 + QUIET)
        if answer is None:
            broke(f"still runs {PATIENCE:.0f} s after the signal" if process.poll() is None else f"ended with status {process.returncode}")
            return seconds, faults
        if answer["at"] is not None:
            seconds.append(answer["at"] - sent)
        if answer["seen"] != "KeyboardInterrupt":
            faults.append(f"saw {answer['seen']}")
        if answer["calls"]:
            faults.append(f"{answer['calls']} calls after the interrupt")
        if not answer["right"]:
            faults.append(f"the next call is wrong {answer['wrong']}".strip())
    process.communicate()
    return seconds, faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("doors", nargs="*")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--limit", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child")
    given = parser.parse_args()
    for add in (loop_doors, long_doors, operator_doors):
        add()
    if given.child:
        # A shell starts programs in the background with the signal ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return child(given.child, given.runs)
    names = [name for name in DOORS if not given.doors or any(word in name for word in given.doors)]
    print("| door | runs | max s | faults |\n|---|---:|---:|---|", flush=True)
    failed = 0
    for name in names:
        seconds, faults = tried(name, given.runs, random.Random(f"{given.seed} {name}"))
        late = sum(one > given.limit for one in seconds)
        faults += [f"{late} later than {given.limit} s"] if late else []
        kinds = dict.fromkeys(faults)
        shown = "; ".join(f"{faults.count(kind)} x {kind}" for kind in kinds)
        print(f"| {name} | {len(seconds)} | {max(seconds, default=float('nan')):.3f} | {shown} |", flush=True)
        failed += bool(faults)
    print(f"\n{len(names) - failed} of {len(names)} doors end within {given.limit} s")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())

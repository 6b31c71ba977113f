"""Changed files of each form: no process ends by a signal or a panic, and none takes more memory than 1.25 times `array_bytes` and 200 MB.

PYTHON tests/outside/mutations.py target/debug/cembra [CHANGES-OF-EACH-FORM [SEED]]
"""

import gzip
import json
import os
import pathlib
import random
import resource
import struct
import subprocess
import sys
import time

from cases import RIGHT, WRONG, Bench

LIMIT = 64_000_000
MOST = LIMIT * 5 // 4 + 200_000_000
SECONDS = 20
# Numbers that lengths and offsets are changed to.
ODD = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    0x100000000,
    0x7FFFFFFFFFFFFFFF,
    0xFFFFFFFFFFFFFFFF,
    1 << 28,
    1 << 30,
]
PIECES = [
    b'"',
    b'""',
    b",",
    b";",
    b"\n",
    b"\r",
    b"\r\n",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"[" * 3000,
    b'{"a":' * 2000,
    b"1e999",
    b"-",
    b"null",
    b"\\u",
    b"\\ud800",
    b"9" * 400,
    b"2026-02-30",
    b"\xc3",
    b" " * 2000,
    b"\t",
    b"1e-999",
    b"\xff\xfe",
    b"true",
    b"NaN",
    b"'",
]


def sources(folder):
    """Files of some kinds for each form."""
    import csv
    import datetime
    import io

    import pyarrow as pa
    import pyarrow.ipc as ipc
    import pyarrow.parquet as pq

    rng = random.Random(5)
    rows = [
        {
            "n": at,
            "x": at / 4 - 3,
            "t": rng.choice(["", "a", 'b "c"', "two\nlines", "é" * 9]),
            "d": f"2026-01-{1 + at % 28:02}",
            "at": f"2026-01-{1 + at % 28:02}T10:00:00.{at:03}Z",
            "b": at % 3 == 0,
        }
        for at in range(60)
    ]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    text = out.getvalue().encode()
    for row in rows:
        row |= {"l": [1, None, row["n"]], "s": {"a": row["n"], "b": [{"c": row["t"]}]}}
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    columns["d"] = [datetime.date.fromisoformat(one) for one in columns["d"]]
    columns["at"] = [datetime.datetime.fromisoformat(one) for one in columns["at"]]
    table = pa.table(columns).append_column("coded", pa.array(columns["t"]).dictionary_encode())
    parquet, arrow = [], []
    for options in (
        {"compression": "none"},
        {"compression": "snappy", "data_page_version": "2.0"},
        {"compression": "zstd", "use_dictionary": False},
        {"compression": "lz4", "row_group_size": 17},
        {"compression": "none", "use_deprecated_int96_timestamps": True},
        {
            "compression": "none",
            "use_dictionary": False,
            "column_encoding": {"n": "DELTA_BINARY_PACKED", "t": "DELTA_BYTE_ARRAY", "x": "BYTE_STREAM_SPLIT"},
        },
    ):
        some = table.select(["n", "x", "t", "d", "at", "b"]) if "column_encoding" in options else table
        pq.write_table(some, folder / "s.parquet", **options)
        parquet.append((folder / "s.parquet").read_bytes())
    wide = table.append_column("view", pa.array(columns["t"], pa.string_view())).append_column(
        "runs", pa.RunEndEncodedArray.from_arrays(pa.array([60], pa.int32()), pa.array([7]))
    )
    for codec in (None, "lz4", "zstd"):
        for make in (ipc.new_file, ipc.new_stream):
            with make(folder / "s.arrow", wide.schema, options=ipc.IpcWriteOptions(compression=codec)) as writer:
                writer.write_table(wide, max_chunksize=25)
            arrow.append((folder / "s.arrow").read_bytes())
    try:
        import polars

        polars.from_arrow(table).write_ipc(folder / "s.arrow")
        arrow.append((folder / "s.arrow").read_bytes())
    except ImportError:
        pass
    return {
        "csv": [text, text.replace(b"\r\n", b"\n"), ("\ufeff" + text.decode()).encode("utf-16-le"), text.replace(b",", b";")],
        "json": [b"[" + lines.strip().replace(b"\n", b",") + b"]", json.dumps(rows, indent=1).encode()],
        "jsonl": [lines, lines.decode().encode("utf-16")],
        "parquet": parquet,
        "arrow": arrow,
    }


def changed(rng, data, form):
    """The data after one to four changes."""
    data = bytearray(data)
    is_text = form in ("csv", "json", "jsonl")
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        # What describes the rest is at the end of Parquet and Arrow, and in front of Arrow.
        at = (
            rng.randrange(len(data))
            if is_text or rng.random() < 0.4
            else max(0, len(data) - 1 - int(rng.random() ** 2 * 3000)) if rng.random() < 0.6 else min(len(data) - 1, int(rng.random() ** 2 * 3000))
        )
        how = rng.randrange(8)
        if how == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif how == 2:
            number, form_of = rng.choice(ODD), rng.choice(["<I", "<Q", "<H", ">I"])
            bytes_ = struct.pack(form_of, number & ((1 << 8 * struct.calcsize(form_of)) - 1))
            at -= at % (4 if rng.random() < 0.7 else 1)
            data[at : at + len(bytes_)] = bytes_
        elif how == 3 and is_text or how == 3 and rng.random() < 0.2:
            data[at:at] = rng.choice(PIECES)
        elif how == 4:
            del data[at : at + rng.choice([1, 1, 2, 8, 100])]
        elif how == 5:
            data[at:at] = data[at : at + rng.choice([1, 4, 8, 64])]
        elif how == 6 and rng.random() < 0.3:
            del data[at:]
        else:
            # A varint of Thrift, or digits.
            data[at : at + rng.randrange(1, 6)] = rng.choice(
                [b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01", b"\x80\x80\x80\x80\x08", b"99999999999", b"\x00"]
            )
        if not data:
            data = bytearray(b"x")
    data = bytes(data)
    return gzip.compress(data) if rng.random() < 0.03 and form not in ("parquet", "arrow") else data


def arguments(rng, file, form):
    """Ways in which a file is read."""
    declared = "input n: i64?; input x: f64?; input t: text?; input d: date?; input at: timestamp?; input b: bool?; output y = n; output z = x; output w = t; output v = d; output u = at"
    nested = declared + "; input l: [i64?]; input s: {a: i64?, b: [{c: text?}]}; output m = sum(l); output p = s.a"
    models = [declared, "output y = n; output z = t", "output one = 1"] + ([nested, "output y = s; output z = l"] if form not in ("csv",) else [])
    args = ["eval", "-e", rng.choice(models), file, f"--set-limit=array_bytes={LIMIT}", "--threads", "1"]
    args += rng.choice([[], ["--keep-all"], ["--keep", "t"]])
    args += rng.choice([[], ["--on-error", "skip", "--errors", "-"], ["--on-error", "missing"]])
    args += rng.choice([["--format", "csv"], ["--format", "jsonl"], ["-o", "out.parquet"], ["-o", "out.arrow"]])
    args += rng.choice([[], [], ["--batch-rows", "7"]])
    return args


def ended(bench, args):
    """The status of a run, the peak of its memory, its seconds, and what it said last."""
    with open(bench.folder / "said", "wb") as said:
        begun = time.monotonic()
        child = os.posix_spawn(
            bench.command,
            [bench.command, *args],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, said.fileno(), 2),
            ],
        )
        while True:
            pid, status, used = os.wait4(child, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - begun > SECONDS:
                os.kill(child, 9)
                _, status, used = os.wait4(child, 0)
                break
            time.sleep(0.002)
    said = (bench.folder / "said").read_bytes().decode("utf-8", "replace")
    return os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024, used.ru_utime + used.ru_stime, said


def write_sources(folder):
    folder.mkdir()
    for form, files in sources(folder).items():
        for at, data in enumerate(files):
            (folder / f"{at}.{form}").write_bytes(data)
    for name in ("s.parquet", "s.arrow"):
        (folder / name).unlink()


def main():
    if sys.argv[1] == "--sources":
        return write_sources(pathlib.Path(sys.argv[2]))
    bench = Bench(sys.argv[1], "changed files")
    count, seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000, int(sys.argv[3]) if len(sys.argv) > 3 else 1
    os.environ["RUST_BACKTRACE"] = "0"
    # The machine survives a case that fails.
    resource.setrlimit(resource.RLIMIT_AS, (14 << 30, 14 << 30))
    # The peak of a process begins with that of the one that starts it, which so has no libraries.
    subprocess.run([sys.executable, __file__, "--sources", bench.folder / "sources"], check=True)
    made = {
        form: [path.read_bytes() for path in sorted((bench.folder / "sources").glob(f"*.{form}"))]
        for form in ("csv", "json", "jsonl", "parquet", "arrow")
    }
    os.chdir(bench.folder)
    kept = pathlib.Path(os.environ.get("CHANGED_FILES", bench.folder / "kept"))
    largest, slowest = {}, {}
    for form, files in made.items():
        for at in range(count):
            rng = random.Random(f"{seed} {form} {at}")
            data = changed(rng, rng.choice(files), form)
            file = bench.file(f"m.{form}", data)
            args = arguments(rng, file, form)
            bench.starts += 1
            status, peak, seconds, said = ended(bench, args)
            largest[form], slowest[form] = max(largest.get(form, 0), peak), max(slowest.get(form, 0), seconds)
            reason = [
                *([f"status {status}"] if status not in (0, 1) else []),
                *(["a panic"] if "panicked" in said else []),
                *([f"{peak / 1e6:.0f} MB"] if peak > MOST else []),
            ]
            if reason:
                kept.mkdir(exist_ok=True)
                (kept / f"{seed}-{at}.{form}").write_bytes(data)
            bench.tally(
                f"{form}: {'an error' if status == 1 else 'a value'}" if not reason else form,
                WRONG if reason else RIGHT,
                f"{', '.join(reason)}: {said[-300:]!r}",
                f"change {at} of seed {seed} of {form}; {args}",
            )
    for form in made:
        print(f"{form}: at most {largest[form] / 1e6:.0f} MB of {MOST / 1e6:.0f}, {slowest[form]:.2f} s")
    sys.exit(bench.end())


if __name__ == "__main__":
    main()

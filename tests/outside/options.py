"""Options that would do nothing are errors, and so are names of results that say another form; options that do something do it.

Which option says something about which form and type is written down here once more, as a rule of three lines.

    PYTHON tests/outside/options.py target/debug/cembra
"""

import csv
import json
import random

import numpy
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from cases import WRONG, again, brief, cells, main, table

RNG = random.Random(70)
FORMS = ("csv", "tsv", "json", "jsonl", "parquet", "arrow", "-s")
# Models, and the type that each reads.
MODELS = {
    "number": "input n: i64; output y = n",
    "date": "input d: date; output y = d",
    "timestamp": "input t: timestamp; output y = t",
    "text": "input s: text; output y = s",
}
OF = {"number": "n", "date": "d", "timestamp": "t", "text": "s"}
VALUES = {"number": "7", "date": "2026-01-31", "timestamp": "2026-01-31T10:15:00Z", "text": "x"}
# Each option with the forms, and the type, that it says something about.
TEXT, ALL = ("csv", "tsv"), FORMS[:-1]
OPTIONS = {
    ("--decimal", ","): (TEXT, None),
    ("--decimal", "."): (TEXT, None),
    ("--delimiter", ";"): (TEXT, None),
    ("--null", "NA"): (TEXT, None),
    ("--date-format", "%d.%m.%Y"): (FORMS, "date"),
    ("--timestamp-format", "%d.%m.%Y %H:%M"): (FORMS, "timestamp"),
    ("--timestamp-unit", "s"): (FORMS, "timestamp"),
    ("--time-zone", "Europe/Zurich"): (("csv", "tsv", "json", "jsonl", "-s"), "timestamp"),
    ("--data-format", None): (ALL, None),
    ("--batch-rows", "7"): (ALL, None),
}


def data(bench, form, option):
    """A file of one row, spelled as the option asks for."""
    values = dict(VALUES)
    if option == "--date-format":
        values["date"] = "31.01.2026"
    if option == "--timestamp-format":
        values["timestamp"] = "31.01.2026 10:15"
    if option == "--timestamp-unit":
        values["timestamp"] = "1769854500"
    if option == "--time-zone":
        values["timestamp"] = "2026-01-31T11:15:00"
    if option == "--null":
        values["text"] = "x"
    row = {OF[name]: value for name, value in values.items()}
    file = f"d.{form}"
    if form in TEXT:
        between = ";" if option == "--delimiter" else "\t" if form == "tsv" else ","
        bench.file(file, between.join(row) + "\n" + between.join(row.values()) + "\n")
    elif form in ("json", "jsonl"):
        line = json.dumps(row | {"n": 7})
        bench.file(file, f"[{line}]" if form == "json" else line + "\n")
    else:
        columns = {"n": pa.array([7], pa.int64()), "s": pa.array(["x"])}
        columns["d"] = pa.array([20260131], pa.int64()) if option == "--date-format" else pa.array([20484], pa.date32())
        columns["t"] = (
            pa.array([202601311015 if option == "--timestamp-format" else 1769854500], pa.int64())
            if option in ("--timestamp-format", "--timestamp-unit")
            else pa.array([1769854500], pa.timestamp("s", "UTC"))
        )
        rows = pa.table(columns)
        if form == "parquet":
            pq.write_table(rows, bench.folder / file)
        else:
            with ipc.new_file(bench.folder / file, rows.schema) as writer:
                writer.write_table(rows)
    return file, row


def effects(bench):
    for (option, value), (forms, of) in OPTIONS.items():
        for form in FORMS:
            for name, model in MODELS.items():
                if option == "--decimal" and name != "number":
                    continue
                given = value
                if option == "--data-format":
                    given = form if form != "-s" else "csv"
                if option in ("--date-format", "--timestamp-format") and form in ("parquet", "arrow"):
                    given = "%Y%m%d" if option == "--date-format" else "%Y%m%d%H%M"
                args = ["eval", "-e", model, option, given, "--format", "jsonl"]
                if form == "-s":
                    _, row = data(bench, "csv", option)
                    args += ["-s", f"{OF[name]}={row[OF[name]]}"]
                else:
                    file, _ = data(bench, form, option)
                    args += [file]
                done = bench.run(*args)
                works = form in forms and of in (None, name)
                kind = f"{option}, {'with' if works else 'without'} an effect"
                shown = again(*args, **({"d_" + form: bench.read(f"d.{form}")} if form in ("csv", "tsv", "json", "jsonl") else {}))
                if works:
                    found = json.loads(done.out)["y"] if done.status == 0 and done.out else brief(done.err)
                    bench.value(kind, str(found), VALUES[name], shown)
                elif done.status == 2:
                    bench.refusal(kind, done, [f"`{option}`", "leave"], shown)
                else:
                    bench.tally(kind, WRONG, f"status {done.status}: {brief(done.out or done.err)}", shown)


def more(bench):
    """Other options without an effect: of tiles and ranks with rows, of rows with tensors, of columns without data."""
    bench.file("x.csv", "x\n1\n2\n")
    numpy.save(bench.folder / "h.npy", numpy.eye(3))
    rows, tensors = ["-e", "input x: f64; output y = x * 2", "x.csv"], ["-e", "input h: tensor[f64, 2]; output y = h", "--input", "h=h.npy"]
    constant = ["-e", "input x: f64; output y = x", "-s", "x=1"]
    for base, options in (
        (
            rows,
            [
                ["--threshold", "1e-3"],
                ["--ranks", "3"],
                ["--most-bytes", "1G"],
                ["--any-processor"],
                ["--resume"],
                ["--output-decimal", ",", "--format", "jsonl"],
            ],
        ),
        (
            tensors,
            [
                ["--decimal", ","],
                ["--null", "NA"],
                ["--delimiter", ";"],
                ["--on-error", "skip"],
                ["--output-decimal", ","],
                ["--date-format", "%Y"],
                ["--timestamp-unit", "s"],
                ["--time-zone", "UTC"],
                ["--batch-rows", "5"],
                ["--keep-all"],
                ["--keep", "a"],
                ["--errors", "e.csv"],
                ["--ranks", "2"],
                ["--threshold", "1e-3"],
                ["--data-format", "csv"],
            ],
        ),
        (
            constant,
            [
                ["--keep", "a"],
                ["--keep-all"],
                ["--decimal", ","],
                ["--delimiter", ";"],
                ["--data-format", "csv"],
                ["--batch-rows", "5"],
                ["--ranks", "2"],
                ["--threshold", "1e-3"],
                ["--date-format", "%Y"],
                ["--timestamp-unit", "s"],
                ["--time-zone", "UTC"],
            ],
        ),
    ):
        for option in options:
            args = ["eval", *base, *option]
            bench.refusal("other options without an effect", bench.run(*args), [f"`{option[0]}`"], again(*args, x_csv="x\\n1\\n2\\n"))
    # A model that cuts tensors into tiles takes them.
    bench.file("p.cem", 'tile i, j, k = 2\ninput h: tiled[f64, "i,j"]\np("i,j") = h("i,k") * h("k,j")\n')
    for option in (["--threshold", "1e-3"], ["--ranks", "2"], ["--most-bytes", "1G"]):
        done = bench.run("eval", "p.cem", "--input", "h=h.npy", "-o", "p.npz", *option)
        found = numpy.load(bench.folder / "p.npz")["p"].tolist() if done.status == 0 else brief(done.err)
        bench.value("options of tiles with tiles", found, numpy.eye(3).tolist())
    # On several files.
    for option, file in ((["--decimal", ","], "d.jsonl"), (["--date-format", "%Y%m%d"], "x.csv")):
        data(bench, "jsonl", "")
        args = ["eval", "-e", "output y = n" if file == "d.jsonl" else "output y = x", file, file, *option]
        bench.refusal("other options without an effect", bench.run(*args), [f"`{option[0]}`"], again(*args))


def names(bench):
    """`-o`: the file has the form that its name says, or the run is refused and there is no file."""
    bench.file("r.csv", "x,s\n1.5,a\n2,b\n")
    numpy.save(bench.folder / "h.npy", numpy.arange(3.0))
    rows = ["-e", "input x: f64; input s: text; output y = x; output z = s", "r.csv"]
    tensor = ["-e", "input h: tensor[f64, 1]; output y = h", "--input", "h=h.npy"]
    expected = [("1.5", "a"), ("2", "b")]
    for ending in (
        "csv",
        "tsv",
        "json",
        "jsonl",
        "ndjson",
        "parquet",
        "arrow",
        "npz",
        "npy",
        "tiles",
        "xlsx",
        "txt",
        "feather",
        "ipc",
        "arrows",
        "csv.gz",
        "jsonl.zst",
        "CSV",
        "Parquet",
        "parq",
        "dat",
        "",
        "tab",
        "pq",
        "avro",
        "orc",
        "sqlite",
        "db",
        "html",
        "md",
        "xml",
        "yaml",
    ):
        for kind, base in (("rows", rows), ("tensors", tensor)):
            if not ending and kind == "tensors":
                # A name without an ending says no form: tensors are text then, for people.
                continue
            name = f"out.{ending}" if ending else "out"
            (bench.folder / name).unlink(missing_ok=True)
            args = ["eval", *base, "-o", name]
            done = bench.run(*args)
            shown = again(*args, r_csv="x,s\n1.5,a\n2,b\n")
            kind = f"-o of {kind}"
            path = bench.folder / name
            if done.status != 0:
                there = path.exists()
                bench.refusal(
                    kind + (", a file is left" if there else ""),
                    done,
                    (
                        [f"`-o {name}`" if not there else "\0", "--format"]
                        if "gz" not in ending and "zst" not in ending and kind == "-o of rows"
                        else [f"`-o {name}`"]
                    ),
                    shown,
                )
                continue
            try:
                found = read(path, ending.lower())
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            bench.value(kind, found, expected if kind == "-o of rows" else [0.0, 1.0, 2.0], shown)
    # `--format` says the form whatever the ending is.
    for ending in ("txt", "dat", "xlsx", "csv"):
        for form in ("csv", "json", "jsonl", "parquet", "arrow"):
            args = ["eval", *rows, "-o", f"f.{ending}", "--format", form]
            done = bench.run(*args)
            bench.value("-o with --format", read(bench.folder / f"f.{ending}", form) if done.status == 0 else brief(done.err), expected, again(*args))
    for name in ("-", "/dev/stdout"):
        args = ["eval", *rows, "-o", name]
        bench.value("-o to a device", [tuple(row) for row in cells(bench.run(*args).out)], expected, again(*args))
    for name in ("e.jsonl", "e.parquet", "e.csv.gz", "e.arrow"):
        args = ["eval", *rows, "--on-error", "skip", "--errors", name]
        bench.refusal("--errors to a form that it is not", bench.run(*args), ["--errors", ".csv"], again(*args))


def read(path, ending):
    """The results of a file, by a program that knows the form."""
    spell = lambda row: (f"{row['y']:g}", row["z"])
    if ending in ("csv", "tsv", "tab", ""):
        with open(path, newline="") as file:
            return [tuple(row) for row in csv.reader(file, delimiter="\t" if ending in ("tsv", "tab") else ",")][1:]
    if ending == "json":
        held = json.loads(path.read_text())
        return held["y"] if isinstance(held, dict) else list(map(spell, held))
    if ending in ("jsonl", "ndjson") and path.read_text().startswith('{"y":['):
        return json.loads(path.read_text())["y"]
    if ending in ("jsonl", "ndjson"):
        return [spell(json.loads(line)) for line in path.read_text().splitlines()]
    if ending in ("parquet", "pq"):
        return list(map(spell, pq.read_table(path).to_pylist()))
    if ending in ("arrow", "feather", "ipc"):
        return list(map(spell, ipc.open_file(path).read_all().to_pylist()))
    if ending == "npy":
        return numpy.load(path).tolist()
    if ending == "npz":
        return numpy.load(path)["y"].tolist()
    raise ValueError(f"nothing reads .{ending}")


def commas(bench):
    """`--output-decimal ,`: what Python reads with commas is what there was."""
    numbers = [0.5, -1.25, 1e300, 7.0, 1e-9] + [RNG.uniform(-1e6, 1e6) for _ in range(60)]
    bench.file(
        "c.csv", table(["id", "x", "note"], [[f"0{at}", repr(number), RNG.choice(["a;b", 'c "d"', "e,f", ""])] for at, number in enumerate(numbers)])
    )
    args = ["eval", "-e", "input x: f64; output y = x", "c.csv", "--output-decimal", ",", "--keep", "id,note", "-o", "k.csv"]
    done = bench.run(*args)
    with open(bench.folder / "c.csv", newline="") as file:
        notes = [row["note"] for row in csv.DictReader(file)]
    with open(bench.folder / "k.csv", newline="") as file:
        found = list(csv.DictReader(file, delimiter=";"))
    for number, note, row, at in zip(numbers, notes, found, range(len(numbers))):
        bench.value(
            "--output-decimal ,",
            [row["id"], row["note"], float(row["y"].replace(",", ".")), "." in row["y"]],
            [f"0{at}", note, number, False],
            again(*args),
        )
    args = ["eval", "-e", "input y: f64; output z = y", "k.csv", "--decimal", ",", "--format", "jsonl"]
    done = bench.run(*args)
    for number, line in zip(numbers, done.out.splitlines()):
        bench.value("--decimal , of what is written", json.loads(line)["z"], number, again(*args))


if __name__ == "__main__":
    main("options", effects, more, names, commas)

"""Counts how large the house is: lines, types of a run, executors, parameters that are tuples, `unsafe`, public types.

Usage: python3 house_counts.py [--public] [FOLDER]

FOLDER is a checkout, by default this one. `--public` also builds the documentation of `cembra` as JSON, with all features that its command has, and
counts its public types over all modules. Lines are those of `src` without blanks, comments and tests: test modules at the end of a file, files and
folders called `tests`. Rust is read as text, with its strings emptied.
"""

import collections
import json
import os
import re
import subprocess
import sys

RUN_TYPES = [
    "RunOptions", "BatchRun", "RowSettings", "Settings", "EvaluationLimits", "WholeTerms", "Memory", "ArrayHost", "Run", "RunTerms",
    "TensorHost", "Threads", "Context", "Workers",
]
# In which file each of them is; a name alone has several meanings.
RUN_PLACES = {
    "Settings": "rows/", "Memory": "arrays.rs", "Run": "mixed", "Context": "crates/tiles/", "Threads": "crates/engine/", "Workers": "crates/tiles/",
}
TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?:#\[[^\n]*\]\n)*mod \w+ \{", re.M)


def without_literals(text):
    """Rust without comments, its strings and characters empty."""
    out, at = [], 0
    while at < len(text):
        c = text[at]
        if text.startswith("//", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif c == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
            at += 1
            out.append('""')
        elif c == "'" and text[at + 1 : at + 2] == "\\":
            at = text.find("'", at + 3) + 1
        elif c == "'" and text[at + 2 : at + 3] == "'":
            at += 3
        elif c == "r" and re.match(r'r#*"', text[at:]) and not (out and re.match(r"\w", out[-1][-1])):
            marks = re.match(r'r(#*)"', text[at:]).group(1)
            end = text.find('"' + marks, at + 2 + len(marks))
            out.append('""' + "\n" * text.count("\n", at, end))
            at = end + 1 + len(marks)
        else:
            out.append(c)
            at += 1
    return "".join(out)


def sources(root):
    """For each crate the files of its `src` as code without tests."""
    crates = ["runtime"] + sorted(f"crates/{name}" for name in os.listdir(f"{root}/crates"))
    for crate in crates:
        for folder, folders, files in os.walk(f"{root}/{crate}/src"):
            folders[:] = [name for name in folders if name != "tests"]
            for name in files:
                if name.endswith(".rs") and name != "tests.rs":
                    path = os.path.join(folder, name)
                    text = open(path, encoding="utf-8").read()
                    found = TESTS.search(text)
                    yield crate, os.path.relpath(path, root), without_literals(text[: found.start()] if found else text)


def tuple_parameters(code):
    """How many parameters of functions are tuples of two or more."""
    count = 0
    for start in re.finditer(r"\bfn \w+(?:<[^({]*>)?\(", code):
        depth, at = 1, start.end()
        parameters, current, nested = [], "", 0
        while depth and at < len(code):
            c = code[at]
            depth += (c == "(") - (c == ")")
            nested += (c in "([<{") - (c in ")]}" or c == ">" and code[at - 1] != "-")
            if c == "," and depth == 1 and nested == 0:
                parameters.append(current)
                current = ""
            else:
                current += c
            at += 1
        parameters.append(current)
        count += sum(bool(re.search(r":\s*&?(?:mut )?\([^()]*,", part)) for part in parameters)
    return count


def public_types(root):
    """The public structs, enums, unions, traits and type aliases of `cembra` over all modules, by rustdoc's JSON."""
    known = subprocess.run(["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=root, capture_output=True, text=True, check=True)
    features = next(p["features"] for p in json.loads(known.stdout)["packages"] if p["name"] == "cembra")
    wanted = [name for name in ("json", "tensor", "tensors", "matrix-library", "tiles") if name in features]
    command = ["cargo", "rustdoc", "--package", "cembra", "--features", ",".join(wanted), "--quiet", "--"]
    command += ["-Zunstable-options", "--output-format", "json"]
    subprocess.run(command, cwd=root, check=True, env=dict(os.environ, RUSTC_BOOTSTRAP="1"))
    page = json.load(open(f"{root}/target/doc/cembra.json", encoding="utf-8"))
    kinds = {"struct", "enum", "union", "trait", "type_alias"}
    names, open_modules, seen = set(), [(str(page["root"]), "")], set()
    while open_modules:
        at, prefix = open_modules.pop()
        if (at, prefix) in seen or at not in page["index"]:
            continue
        seen.add((at, prefix))
        item = page["index"][at]
        for child in item["inner"].get("module", {}).get("items", []):
            child = page["index"].get(str(child))
            if child is None:
                continue
            (kind, inner), = child["inner"].items()
            if kind == "module":
                open_modules.append((str(child["id"]), f"{prefix}{child['name']}::"))
            elif kind == "use":
                path = page["paths"].get(str(inner["id"]), {})
                if path.get("kind") in kinds:
                    names.add(prefix + inner["name"])
                elif path.get("kind") == "module":
                    open_modules.append((str(inner["id"]), f"{prefix}{inner['name']}::"))
            elif kind in kinds:
                names.add(prefix + child["name"])
    return names


def by_crate(counts):
    each = ", ".join(f"{crate.removeprefix('crates/')} {count}" for crate, count in counts.most_common() if count)
    return f"{sum(counts.values())} ({each})"


def main():
    arguments = [one for one in sys.argv[1:] if one != "--public"]
    root = os.path.abspath(arguments[0]) if arguments else os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    lines, blocks, tuples = collections.Counter(), collections.Counter(), collections.Counter()
    run_types, executors = set(), []
    for crate, path, code in sources(root):
        lines[crate] += sum(bool(line.strip()) for line in code.splitlines())
        blocks[crate] += len(re.findall(r"\bunsafe \{", code))
        tuples[crate] += tuple_parameters(code)
        for kind, name in re.findall(r"\b(struct|enum) (\w+)", code):
            if name in RUN_TYPES and RUN_PLACES.get(name, "") in path:
                run_types.add(name)
            if re.search(r"(Executor|Evaluator|Session|Player)$", name):
                executors.append(f"{path}: {name}")
    print(f"lines of src: {by_crate(lines)}")
    print(f"types of a run: {len(run_types)} ({', '.join(sorted(run_types))})")
    print(f"types called Executor, Evaluator, Session or Player: {len(executors)}")
    print("  " + "\n  ".join(sorted(executors)))
    print(f"parameters that are tuples: {by_crate(tuples)}")
    print(f"`unsafe` blocks: {by_crate(blocks)}")
    if "--public" in sys.argv:
        names = public_types(root)
        print(f"public types of cembra: {len(names)}")


if __name__ == "__main__":
    main()

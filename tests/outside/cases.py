"""What the scripts of edges share: the command as a process, a tally of cases, and how values are spelled.

A case is right if its value is the one that Python computes, refused if it ends in an error that says what to write, and wrong otherwise: a value
that differs, an error without help, a panic or a signal. Many cases are in one file, as its rows or columns, so that the command starts seldom.
"""

import collections
import csv
import dataclasses
import datetime
import pathlib
import shlex
import subprocess
import sys
import tempfile

EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)
# The first and the last microsecond of the years 1 to 9999.
FIRST_MOMENT = (datetime.datetime.min - EPOCH) // MICROSECOND
LAST_MOMENT = (datetime.datetime.max - EPOCH) // MICROSECOND
RIGHT, REFUSED, WRONG = "right", "refused", "wrong"
# The most lines of one kind of wrong cases that are printed.
SHOWN = 12


@dataclasses.dataclass
class Done:
    """A run of the command that has ended."""

    status: int
    out: str
    err: str

    def broke(self):
        """True if the process did not end by itself, with a result or an error."""
        return self.status not in (0, 1, 2) or "panicked" in self.err

    def refuses(self, *words):
        """True if the run ended in an error whose message has all of the words."""
        return self.status in (1, 2) and not self.broke() and all(word in self.err for word in words)


class Bench:
    """The command, a folder for files, and the tally."""

    def __init__(self, command, title):
        self.command, self.title = str(pathlib.Path(command).resolve()), title
        self.holder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.holder.name)
        self.counts = collections.OrderedDict()
        self.wrong = []
        self.starts = 0

    def file(self, name, content):
        """Writes a file into the folder; its name is what commands call it."""
        path = self.folder / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8", newline="")
        return name

    def read(self, name):
        path = self.folder / name
        return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""

    def run(self, *arguments, stdin=None):
        self.starts += 1
        done = subprocess.run(
            [self.command, *map(str, arguments)],
            cwd=self.folder,
            capture_output=True,
            timeout=300,
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
        )
        return Done(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))

    def failures(self, name="errors.csv"):
        """The failed rows that `--errors` wrote, by their number."""
        path = self.folder / name
        if not path.exists():
            return {}
        with open(path, newline="", encoding="utf-8") as file:
            return {int(row["row"]): row for row in csv.DictReader(file)}

    def tally(self, kind, verdict, said="", again=""):
        """Counts a case of a kind. `said` tells what is wrong, `again` how to see it."""
        self.counts.setdefault(kind, collections.Counter())[verdict] += 1
        if verdict == WRONG:
            self.wrong.append((kind, said, again))

    def value(self, kind, found, expected, again=""):
        """A case that must have a value."""
        same = found == expected
        self.tally(kind, RIGHT if same else WRONG, f"found {found!r}, expected {expected!r}", again)
        return same

    def refusal(self, kind, done, words, again=""):
        """A case that must end in an error with these words."""
        verdict = REFUSED if done.refuses(*words) else WRONG
        lacking = [word for word in words if word not in done.err]
        self.tally(kind, verdict, f"status {done.status}, lacks {lacking}: {brief(done.out or done.err)}", again)
        return verdict == REFUSED

    def end(self):
        """Prints the table and what is wrong; the status of the process."""
        print(f"\n{self.title}: {self.starts} starts of the command")
        print("| kind | cases | right | refused with help | wrong |\n|---|---|---|---|---|")
        total = collections.Counter()
        for kind, counts in self.counts.items():
            total.update(counts)
            print(f"| {kind} | {sum(counts.values())} | {counts[RIGHT]} | {counts[REFUSED]} | {counts[WRONG]} |")
        print(f"| all | {sum(total.values())} | {total[RIGHT]} | {total[REFUSED]} | {total[WRONG]} |")
        shown = collections.Counter()
        for kind, said, again in self.wrong:
            shown[kind] += 1
            if shown[kind] <= SHOWN:
                print(f"\nwrong, {kind}: {said}\n  {again}")
        for kind, count in shown.items():
            if count > SHOWN:
                print(f"\nand {count - SHOWN} more of {kind}")
        sys.stdout.flush()
        self.holder.cleanup()
        return 1 if total[WRONG] else 0


def main(title, *parts):
    """Runs the parts of a script on the command that the arguments name, and ends with its status."""
    bench = Bench(sys.argv[1] if len(sys.argv) > 1 else "target/debug/cembra", title)
    for part in parts:
        try:
            part(bench)
        except Exception as error:  # A part that breaks off must not hide the others.
            import traceback

            traceback.print_exc()
            bench.tally(part.__name__, WRONG, f"the script broke off: {error!r}")
    sys.exit(bench.end())


def brief(text, most=300):
    text = " / ".join(line.strip() for line in text.strip().splitlines() if line.strip() not in ("", "|"))
    return text if len(text) <= most else text[:most] + ".."


def again(*arguments, **files):
    """A line for a shell that repeats a run: files are given as `name_ending="content"`."""
    parts = [f"printf {shlex.quote(escaped(content))} > {name.replace('_', '.')}" for name, content in files.items()]
    return "; ".join([*parts, shlex.join(["cembra", *map(str, arguments)])])


def escaped(content):
    """What `printf` prints as the content."""
    return content.replace("\\", "\\\\").replace("%", "%%").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def moment(microseconds):
    """How cembra writes a timestamp: in UTC, with the digits of its fraction that are not zeros behind the last other one."""
    at = EPOCH + microseconds * MICROSECOND
    fraction = f".{at.microsecond:06}".rstrip("0") if at.microsecond else ""
    return f"{at.year:04}-{at:%m-%dT%H:%M:%S}{fraction}Z"


def is_moment(microseconds):
    return FIRST_MOMENT <= microseconds <= LAST_MOMENT


def day(days):
    """How cembra writes a date of the years 1 to 9999, counted from 1970."""
    return (EPOCH.date() + datetime.timedelta(days=days)).isoformat()


def cells(text):
    """The rows of CSV results, without their header."""
    return list(csv.reader(text.splitlines()))[1:]


def table(header, rows):
    """CSV as Python writes it."""
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()

# SPDX-License-Identifier: Apache-2.0
"""Counts, versions and machines in documents are those of the tables. Prints `page:line: what is wrong` and fails.
Usage: scripts/lint_claims.py

EVERYWHERE: a pattern, and what its groups must be wherever it stands. ONCE: a page, a pattern that must stand in it, and
what its groups must be: a sentence that is rewritten takes its row along. The manual's rows of options are compared with
commands.def: defaults, words, cards."""
import re
import sys
from pathlib import Path

import docs_reference
import lint_names
import lint_tables as tables
from lint_tables import ROOT, text

NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()
MIB = 1 << 20
INTERNAL = {"SIMGPU_NOTES", "SIMGPU_USAGE", "SIMGPU_STUBS"}  # how processes of the tool speak with each other; a list for who adds functions
SUITES = {"bullseye": "Debian 11", "bookworm": "Debian 12", "trixie": "Debian 13", "jammy": "Ubuntu 22.04", "noble": "Ubuntu 24.04"}
DATED = {"docs/reliability.md", "docs/cost.md", "docs/replay.md", "docs/fit.md"}  # say what one run, on one machine, was


def word(n):
    return NUMBERS[n] if n < len(NUMBERS) else str(n)


def constant(path, name, unit=1):
    """The number that a #define gives, or a member of an enum, in units as documents write it: 4,096."""
    found = re.search(rf"\b{name}\b\s*=?\s*\(?(\d+)u?(?: << (\d+))?", text(path))
    return f"{(int(found[1]) << int(found[2] or 0)) // unit:,}" if found else f"(no {name} in {path})"


def machines():
    """Those on which wheel-machines.sh tries a release."""
    named = re.search(r"set -- (.*)", text("scripts/wheel-machines.sh"))[1]
    return {machine for suite, machine in SUITES.items() if suite in named}


def pythons():
    """First and last minor version whose stacks were compared with the interpreter's own."""
    table = re.findall(r"^\| 3\.(\d+)(?: to 3\.(\d+))?[^|]*\| [^|]*\| every frame equal \|", text("docs/reliability.md"), re.M)
    minors = [int(m) for row in table for m in row if m]
    required = re.search(r"Requires-Python: >=(3\.\d+)", text("packaging/wheel.py"))[1]
    assert required == f"3.{min(minors)}", f"the wheel requires {required}, stacks were compared from 3.{min(minors)} on"
    return f"3.{min(minors)}", f"3.{max(minors)}"


def torches():
    """First and last version, and the majors of CUDA, of the rows that all columns of docs/pytorch-versions.md say yes to."""
    rows = re.findall(r"^\| (\d+\.\d+)\.\d+ \| (\d+)\.\d+ \| yes ", text("docs/pytorch-versions.md"), re.M)
    layouts = [f"{a[0]}.{a[1]}" for _, a in docs_reference.rows("shim/torch/torch_versions.def", "TORCH")]
    assert {v for v, _ in rows} == set(layouts), "docs/pytorch-versions.md and torch_versions.def have other versions"
    return rows[0][0], rows[-1][0], sorted({cuda for _, cuda in rows}, key=int)


def architectures():
    return [a.replace("x86_64", "x86-64") for a in re.search(r"set -- (.*)", text("packaging/wheels.sh"))[1].split()]


def glibc():
    return re.search(r'GLIBC = "manylinux_(\d+)_(\d+)"', text("packaging/wheel.py")).groups()


def drivers():
    """Driver libraries and runtimes that `make test-driver` tried, from the table that it wrote."""
    page = text("docs/driver-lookups.md")
    return (re.findall(r"driver (\d+\.\d+)\.\d+", page.split("\n| looked up", 1)[1].split("\n")[0]), re.findall(r"^\| cudart (\S+)", page, re.M))


def no_device():
    """Programs that do not run on the simulated device, by the table of docs/other-programs.md."""
    rows = re.findall(r"^\| ([^|]+) \|.*\| ([^|]+) \|$", text("docs/other-programs.md"), re.M)
    return {re.sub(r" \(.*", "", name) for name, last in rows if last.startswith(("finds no", "fails"))}


def lake_tables():
    return [docs_reference.literal(a[0]) or a[0] for _, a in docs_reference.rows("viewer/commands/lake_tables.def", "TABLE")]


def off_by():
    """Of docs/advise.md: the largest errors in percent of the peak, largest first, with their programs."""
    rows = re.findall(r"^\| (\w+) \|.*\| (\d+\.\d)% \|$", text("docs/advise.md"), re.M)
    return sorted(((float(percent), name) for name, percent in rows), reverse=True)


def replayed():
    """Of docs/replay.md: cells with another setting than the recording's, and how many of them are `all`."""
    cells = [c for row in re.findall(r"^\| \w+ \| \d+ \| (.*) \|$", text("docs/replay.md").split("<!-- end of table -->")[0], re.M)
             for c in row.split(" | ")[1:]]
    return str(cells.count("all")), str(len(cells))


def sizes():
    """Bytes of an event, from the table of docs/benchmarks.md."""
    return tuple(re.search(rf"^\| {run}\.size\.gpumemtrace \| ([\d.]+) ", text("docs/benchmarks.md"), re.M)[1] for run in ("gpt2", "qwen2", "resnet50", "experts"))


def varied():
    """What three runs of one day gave, from docs/cost.md: whole percents, the least first."""
    said = re.search(r"Three runs of [\d-]+, with six launches instead of three, say [\d., and\n]+?, and ([\d., and]+) %", text("docs/cost.md"))
    return tuple(str(round(float(n))) for n in sorted(re.findall(r"[\d.]+\d", said[1]), key=float))


def joined(items):
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else items[0]


def everywhere():
    """What the claim is of, a pattern, and whether the groups of a match are right."""
    first, last = pythons()
    torch_first, torch_last, cudas = torches()
    models = " ".join(docs_reference.literal(a[1]) for _, a in docs_reference.rows("simgpu/core/cards.def", "CARD"))
    return [
        ("cards", r"\b(\w+) cards are known, from the ([\w ]+?) to the (\w+)",
         lambda n, a, b: n in (str(len(tables.cards())), word(len(tables.cards()))) and a in models and b in models),
        ("CPython versions", r"C?Python (3\.\d+) (?:to|or later)", lambda v: v == first),
        ("CPython versions", r"C?Python 3\.\d+ to (3\.\d+)", lambda v: v == last),
        ("PyTorch versions", r"PyTorch (2\.\d+) (?:to|or later|and later)", lambda v: v == torch_first),
        ("PyTorch versions", r"PyTorch 2\.\d+ to (2\.\d+)", lambda v: v == torch_last),
        ("CUDA versions", r"PyTorch [\d. to]+ for CUDA ([\d, and]+\d)", lambda v: v == joined(cudas)),
        ("architectures", r"Linux on ((?:x86-64|aarch64)[\w, -]*?)[,;.]", lambda v: v == joined(architectures())),
        ("glibc", r"glibc (\d+)\.(\d+) or later", lambda *v: v == glibc()),
        ("machines", r"(Debian \d+|Ubuntu \d\d\.\d\d)(?! with)", lambda v: v in machines()),
        ("programs that find no simulated device", r"NVIDIA's own runtime\s+inside \(([^)]*)\)",
         lambda v: {n for n in re.findall(r"[A-Za-z][\w-]+", v.split(", what")[0])} == no_device()),
        ("outlier ranks", r"differs from the median by more than (\d+) % and more than (\d+) MiB",
         lambda p, b: (p, b) == (constant("viewer/page/page_room.c", "OUTLIER_PERCENT"), constant("viewer/page/page_room.c", "OUTLIER_BYTES", MIB))
         and f"OUTLIER_PERCENT, OUTLIER_BYTES = {p}, {b} << 20" in text("python/gpumemtrace/ranks/ranks_far.py")),
        ("ranks with a row each", r"[Mm]ore than (\d+)\s+ranks,\s+similar", lambda n: n == constant("python/gpumemtrace/ranks/ranks_text.py", "EACH")),
    ]


def once():
    """A page, a pattern that stands there, what its groups are."""
    driver, cudart = drivers()
    errors = off_by()
    columns = [*docs_reference.rows("viewer/export/export_event_columns.def", "EVENT_COLUMN")]
    causes = [*docs_reference.rows("viewer/oom/oom_causes.def", "CAUSE")]
    return [
        ("docs/questions/out-of-memory.md", r"\*\*Cause\*\*: one of (\w+),", (word(len(causes)),)),
        ("docs/python.md", r"in batches of ([\d,]+) rows", (constant("viewer/export/arrow.h", "ARROW_ROWS"),)),
        ("docs/cost.md", r"GPT-2 ([\d.]+), Qwen2 ([\d.]+), ResNet-50 ([\d.]+), mixture of experts ([\d.]+) \(", sizes()),
        ("README.md", r"three on one day gave (\d+), (\d+) and (\d+) %", varied()),
        ("simgpu/README.md", r"copies of it on the device: (\d+) MiB", (constant("simgpu/core/extents.h", "EXTENT_BOUND", MIB),)),
        ("simgpu/README.md", r"on tensors of up to ([\d,]+) elements, in all", (constant("simgpu/kernels/kernels.h", "SMALL_MOST"),)),
        ("simgpu/README.md", r"many of them on up to ([\d,]+) elements", (constant("simgpu/kernels/kernels.h", "WHOLE_MOST"),)),
        ("simgpu/README.md", r"More than ([\d,]+)\s+choices at once", (constant("simgpu/kernels/kernels.h", "CHOICE_MOST"),)),
        ("simgpu/README.md", r"After (\d+) s \(`SIMGPU_WAIT`\)", (constant("simgpu/libraries/lib_nccl_world.c", "SILENT_S"),)),
        ("docs/man/gpumemtrace.1.md", r"at most (\w+) at a time", (word(int(constant("python/gpumemtrace/ranks/ranks_rows.py", "AT_ONCE"))),)),
        ("docs/man/gpumemtrace-ctl.1.md", r"does not answer for (\d+) seconds", (constant("viewer/commands/cmd_ctl.c", "PATIENCE_MS", 1000),)),
        ("docs/man/gpumemtrace-dashboard.1.md", r"at most ([\d,]+) rows", (constant("python/gpumemtrace/lake/lake_duckdb.py", "ROWS"),)),
        ("docs/python.md", r"with all (\w+) columns", (word(len(columns)),)),
        ("docs/lake.md", r"each of the (\w+) tables", (word(len([t for t in lake_tables() if t not in ("allocations", "events")])),)),
        ("docs/reliability.md", r"Driver libraries ([\d., and]+\d) \(", (joined(driver),)),
        ("docs/reliability.md", r"cudart ([\d., and]+\d)\.", (joined(cudart),)),
        ("docs/advise.md", r"in (\w+) programs \((\w+), (\w+)\) (\d) to (\d) %", (word(sum(e > 2 for e, _ in errors)), errors[0][1], errors[1][1],
                                                                              f"{errors[1][0]:.0f}", f"{errors[0][0]:.0f}")),
        ("docs/advise.md", r"are off by up to (\d+\.\d) % of the peak", (str(errors[2][0]),)),
        ("docs/replay.md", r"(\d+) of (\d+) with another setting", replayed()),
        ("tests/README.md", r"every PyTorch version from (2\.\d+),", (torches()[0],)),
        ("docs/man/gpumemtrace-run.1.md", r"Cards: ((?:\*[\w-]+\*[,.]\s*)+)", (", ".join(f"*{docs_reference.literal(a[0])}*" for _, a in
                                                                                       docs_reference.rows("simgpu/core/cards.def", "CARD")) + ".",)),
    ]


def places(page_text, pattern):
    """Line and groups of each match; a line's end counts as a space."""
    for m in re.finditer(pattern.replace(" ", r"\s+"), page_text):
        yield page_text.count("\n", 0, m.start()) + 1, [" ".join(g.split()) if g else g for g in m.groups()]


def pages():
    return {str(p): text(p) for p in lint_names.pages()}


def wrong_everywhere(all_pages):
    for what, pattern, right in everywhere():
        found = [(page, *place) for page, page_text in all_pages.items() if page not in DATED for place in places(page_text, pattern)]
        yield from (f"{page}:{line}: {what}: not as in the tables: {', '.join(groups)}" for page, line, groups in found if not right(*groups))
        if not found:
            yield f"scripts/lint_claims.py: no document has '{pattern}'"


def wrong_once(all_pages):
    for page, pattern, groups in once():
        found = [*places(all_pages.get(page, ""), pattern)]
        if not found:
            yield f"{page}: no sentence like '{pattern}', which scripts/lint_claims.py compares with a table"
        yield from (f"{page}:{line}: by the tables {', '.join(groups)}, not {', '.join(f)}" for line, f in found if list(groups) != f)


def wrong_options(all_pages):
    """Rows of options that a page of the manual has by hand."""
    for name, command in tables.commands().items():
        page = f"docs/man/gpumemtrace-{name}.1.md"
        for m in re.finditer(r"^- `(--[a-z-]+)`: (.*(?:\n  .*)*)", all_pages[page], re.M):
            option, row, line = command.options.get(m[1]), " ".join(m[2].split()), all_pages[page].count("\n", 0, m.start()) + 1
            default = re.search(r"[Dd]efault \*?(\d+)(?![\d%]|\w)", row)
            if option and default and option.initial not in (None, default[1]):
                yield f"{page}:{line}: {m[1]}: the default is {option.initial}, not {default[1]}"
            if option and option.kind == "WORD":
                yield from (f"{page}:{line}: {m[1]} has {w}, which the row does not name" for w in option.words if f"*{w}*" not in row)


def lists():
    """A page, what its list begins with, the mark around each name, and the names in the table's order (or in any: a set)."""
    questions = re.findall(r"^-- view (\w+):", text("viewer/commands/views.sql"), re.M)
    settings = set(re.findall(r'getenv\("(SIMGPU_\w+)"\)', tables.sources("simgpu"))) - INTERNAL
    findings = {a[0] for macro in ("FINDING", "NAME") for _, a in docs_reference.rows("viewer/advise/findings.def", macro)} | {"option"}
    return [
        ("docs/man/gpumemtrace-oom.1.md", "## CAUSES", "*", [a[0] for _, a in docs_reference.rows("viewer/oom/oom_causes.def", "CAUSE")]),
        ("docs/man/gpumemtrace-diff.1.md", "## CAUSES", "*", {docs_reference.literal(a[1]) for _, a in docs_reference.rows("viewer/diff/diff_causes.def", "CAUSE")}),
        ("docs/man/gpumemtrace-advise.1.md", "## FINDINGS", "*", findings),
        ("docs/man/gpumemtrace-export.1.md", "## FORMATS", "*", list(tables.formats())),
        ("docs/man/gpumemtrace-sql.1.md", "ready questions that are tables too:", "*", questions),
        ("docs/man/gpumemtrace.1.md", "The simulated device reads these", "`", settings),
        ("docs/lake.md", "| Table | A row is |", "`", {*lake_tables(), "allocations"}),
        ("docs/lake.md", "| Ready question | It answers |", "`", questions),
    ]


def wrong_lists(all_pages):
    """Items or rows behind a beginning: the names before the first colon, or in the first column."""
    for page, begin, mark, names in lists():
        text_behind = all_pages[page].split(begin + "\n", 1)[-1] if begin + "\n" in all_pages[page] else all_pages[page].partition(begin)[2].partition("\n")[2]
        rows = re.search(r"(?:(?:- |\| |  ).*\n)+", text_behind)[0]
        fronts = re.findall(r"^- (.*?): |^\| (.*?) \|", rows, re.M)
        found = [n for front in fronts for n in re.findall(rf"{re.escape(mark)}(\w+){re.escape(mark)}", "".join(front))]
        if (set(found) if isinstance(names, set) else found) != names:
            yield f"{page}: {begin}: {' '.join(sorted(set(found) ^ set(names)) or found)}: not as in the table"


def faults(all_pages):
    return [*wrong_everywhere(all_pages), *wrong_once(all_pages), *wrong_options(all_pages), *wrong_lists(all_pages)]


def main():
    try:
        found = faults(pages())
    except AssertionError as tables_differ:
        found = [str(tables_differ)]
    print("\n".join(found), end="\n" * bool(found))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()

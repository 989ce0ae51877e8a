# SPDX-License-Identifier: Apache-2.0
"""precision.py RESULTS.json... [--write FILE [--only RULE...]]: what each rule of the classifier decides, right and wrong, over the
results that score.py --json and tests/frameworks/run.py --json wrote. --write makes viewer/classes/precision.def of them; --only: the
rows of other rules stay as they are."""
import argparse
import collections
import json
import re
from pathlib import Path

MIB = 1 << 20


def note(total, block, size, classes):
    """The deciding rule of a block, and whether the next one that fits would be right as well."""
    fitting = [pair.split(":") for pair in block["rules"].split()]
    rule, right = fitting[0][0], fitting[0][1] in classes
    total["rule", rule, "right" if right else "wrong"] += size
    total["rule", rule, "needed"] += size * (right and (len(fitting) == 1 or fitting[1][1] not in classes))


def of(total):
    """{rule: {right, wrong, needed}} of what note() counted."""
    found = collections.defaultdict(lambda: {"right": 0, "wrong": 0, "needed": 0})
    for (_, rule, what), size in ((key, size) for key, size in total.items() if isinstance(key, tuple)):
        found[rule][what] = size
    return dict(found)


def runs(result):
    """(tags, rules) of a case or of a program of a framework."""
    if "judged" in result:
        return [(tags, j["rules"]) for tags, j in result["judged"].items()]
    return [(result["tags"], result["rules"])] if "rules" in result else []


def gather(results):
    """{rule: {tags: [right, wrong, needed, programs]}}"""
    table = collections.defaultdict(lambda: {"on": [0] * 4, "off": [0] * 4})
    for result in results:
        for tags, rules in runs(result):
            for rule, got in rules.items():
                for i, what in enumerate(("right", "wrong", "needed")):
                    table[rule][tags][i] += got[what]
                table[rule][tags][3] += 1
    return table


def show(table):
    """MiB that each rule decides; needed: right bytes that would be wrong without it."""
    head = " ".join("%10s %8s %9s %8s" % (f"{t} right", "wrong", "needed", "programs") for t in ("tags", "none"))
    lines = ["%-20s %s" % ("rule", head)]
    for rule, got in sorted(table.items(), key=lambda kv: -kv[1]["on"][0] - kv[1]["off"][0]):
        cells = [n if i == 3 else n / MIB for t in ("on", "off") for i, n in enumerate(got[t])]
        lines.append("%-20s %10.1f %8.2f %9.1f %8d %10.1f %8.2f %9.1f %8d" % (rule, *cells))
    return "\n".join(lines)


def rows_of(table):
    return {rule: "{ \"%s\", { %s }, { %s } }," % (rule, *(", ".join(str(got[t][i]) for i in (0, 1, 3)) for t in ("on", "off")))
            for rule, got in table.items()}


def definitions(by_rule):
    rows = [row for _, row in sorted(by_rule.items())]
    return ("/* SPDX-License-Identifier: Apache-2.0 */\n/*\n * Written by tests/classes/precision.py: bytes that each rule classed rightly and wrongly, and in\n"
            " * how many programs, with autograd's tags and without.\n */\n/* clang-format off */\n" + "\n".join(" ".join(rows[i:i + 2]) for i in range(0, len(rows), 2)) + "\n/* clang-format on */\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--only", nargs="+", metavar="RULE")
    options = parser.parse_args()
    table = gather(result for file in options.results for result in json.loads(file.read_text()))
    print(show(table))
    if options.write:
        rows = rows_of(table)
        if options.only:
            had = {rule: row for row, rule in re.findall(r'(\{ "(.*?)", .*?\} \},)', options.write.read_text())}
            rows = {**had, **{rule: rows[rule] for rule in options.only}}
        options.write.write_text(definitions(rows))


if __name__ == "__main__":
    main()

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Folders know each other one way only. Of the top ones, an edge that is not in the table is an error;
# of format/, the writer and the reader are siblings; those of viewer/ and simgpu/ stand as in the README
# of each, and include only what stands above them there. Tests and scripts may use anything.
exec python3 - <<'EOF'
import glob, os, re, sys

ALLOWED = {("shim", "format"), ("viewer", "format"), ("cupti", "format"), ("cupti", "shim/capture.h")}
SIBLINGS = {("writer", "reader"), ("reader", "writer"), ("codec", "reader"), ("codec", "writer")}
INCLUDE = re.compile(r'^\s*#\s*include\s*"(.*)"')


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def edges():
    for file in sorted(glob.glob("*/**/*.[chd]*", recursive=True)):
        if file.startswith(("format/", "shim/", "cupti/", "viewer/", "simgpu/")) and file.endswith((".c", ".h", ".def")):
            for number, line in enumerate(read(file).split("\n"), 1):
                if found := INCLUDE.match(line):
                    yield file, number, os.path.normpath(os.path.join(os.path.dirname(file), found[1]))


def floors(folder):
    readme = f"{folder}/README.md"
    return re.findall(r"^\| `(\w+)/`", read(readme), re.M) if os.path.exists(readme) else []


def verdict(file, path):
    here, there = file.split("/"), path.split("/")
    if here[0] != there[0]:
        fine = (here[0], there[0]) in ALLOWED or (here[0], path) in ALLOWED
        return None if fine else f"{here[0]}/ must not include {path}"
    if here[0] == "format" and any(here[1].startswith(a) and there[1].startswith(b) for a, b in SIBLINGS):
        return "the writer and the reader are siblings over the codec"
    if here[0] in FLOORS and FLOORS[here[0]].index(here[1]) < FLOORS[here[0]].index(there[1]):
        return f"{path} stands below it in {here[0]}/README.md"
    return None


FLOORS = {folder: floors(folder) for folder in ("viewer", "simgpu")}
bad = [f"{folder}: no row in {top}/README.md" for top in FLOORS for folder in glob.glob(f"{top}/*/")
       if folder.split("/")[1] not in FLOORS[top]]
if not bad:
    bad = [f"{file}:{number}: {why}" for file, number, path in edges() if (why := verdict(file, path))]
print("\n".join(bad), end="\n" if bad else "")
sys.exit(bool(bad))
EOF

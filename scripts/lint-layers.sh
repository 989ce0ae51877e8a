#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Folders know each other one way only. Of the top ones, an edge that is not in the table is an error;
# of format/, the writer and the reader are siblings; those of viewer/ stand one above the other, as in
# viewer/README.md, and each includes only what stands above it there. Tests and scripts may use anything.
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


def verdict(file, path, floors):
    here, there = file.split("/"), path.split("/")
    if here[0] != there[0]:
        fine = (here[0], there[0]) in ALLOWED or (here[0], path) in ALLOWED
        return None if fine else f"{here[0]}/ must not include {path}"
    if here[0] == "format" and any(here[1].startswith(a) and there[1].startswith(b) for a, b in SIBLINGS):
        return "the writer and the reader are siblings over the codec"
    if here[0] == "viewer" and floors.index(here[1]) < floors.index(there[1]):
        return f"{path} stands below it in viewer/README.md"
    return None


floors = re.findall(r"^\| `(\w+)/`", read("viewer/README.md"), re.M) if os.path.exists("viewer/README.md") else []
bad = [f"{folder}: no row in viewer/README.md" for folder in glob.glob("viewer/*/") if folder.split("/")[1] not in floors]
if not bad:
    bad = [f"{file}:{number}: {why}" for file, number, path in edges() if (why := verdict(file, path, floors))]
print("\n".join(bad), end="\n" if bad else "")
sys.exit(bool(bad))
EOF

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Folders know each other one way only. Of the top ones, an edge that is not in the table is an error;
# of format/, the writer and the reader are siblings; those of shim/, viewer/ and simgpu/ stand as in the
# README of each, and include, call and name types of only what stands above them there (calls are read from the
# objects, where there are any). Files of a folder do not call in circles, but for those in the table. A header *_parts.h is
# for its own folder. What lies beside these folders is for all of them. Tests and scripts may use anything.
exec python3 - <<'EOF'
import glob, os, re, subprocess, sys

ALLOWED = {("shim", "format"), ("viewer", "format"), ("cupti", "format"), ("cupti", "shim/capture.h")}
SIBLINGS = {("writer", "reader"), ("reader", "writer"), ("codec", "reader"), ("codec", "writer")}
OF_THE_C_LIBRARY = {"dlsym", "dlclose"}  # hooked as well: whoever calls them means the C library's
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
    if len(here) == len(there) == 3 and here[0] in FLOORS and FLOORS[here[0]].index(here[1]) < FLOORS[here[0]].index(there[1]):
        return f"{path} stands below it in {here[0]}/README.md"
    return None


CIRCLES = {  # folder: why its files may call one another
    "shim/cuda": "the table of hooks has the hook that asks the table",
    "simgpu/api": "calls of the runtime are made of the driver's, and some the other way round",
    "simgpu/core": "a device, its memory and its pools end together, and so do streams and their graphs",
}


def circles(top):
    """Of files that call one another: all that can be reached from themselves."""
    reach = {}
    for source, _, home in calls(top, "T"):
        folder = os.path.dirname(source)
        if source != home and folder == os.path.dirname(home) and folder not in CIRCLES:
            reach.setdefault(source, set()).add(home)

    def reached(start):
        seen, rest = set(), [start]
        while rest:
            new = reach.get(rest.pop(), set()) - seen
            seen |= new
            rest += new
        return seen

    for start in sorted(reach):
        if start in reached(start):
            yield f"{start}: calls what calls it: {', '.join(sorted(to for to in reach[start] if start in reached(to)))}"


def calls(top, kinds="TDBRC"):
    """Each file of the folder, and the files in it whose functions or data it uses."""
    objects = {path: path[len("build/obj/"):-2] + ".c" for path in sorted(glob.glob(f"build/obj/{top}/*/*.o"))}
    objects = {path: source for path, source in objects.items() if os.path.exists(source)}
    if not objects:
        return
    listed = subprocess.run(["nm", "-A", *objects], capture_output=True, text=True, check=True).stdout
    rows = [(objects[path], *rest.split()[-2:]) for path, rest in (line.split(":", 1) for line in listed.splitlines())]
    home = {symbol: source for source, kind, symbol in sorted(rows, key=lambda row: "/library_" not in row[0]) if kind in kinds}  # the library has a machine of its own: the other counts
    for source, kind, symbol in rows:
        if kind == "U" and symbol in home and symbol not in OF_THE_C_LIBRARY:
            yield source, symbol, home[symbol]


DEFINED = re.compile(r"\b(struct|union|enum)\s+(\w+)\s*\{")
NAMED = re.compile(r"\b(struct|union|enum)\s+(\w+)")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\\]|\\\\.)*\"", re.S)


def types(top):
    """Each file of the folder, and the headers that define what it names a type of: none of its own file does."""
    texts = {file: COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), read(file)) for file in sorted(glob.glob(f"{top}/*/*.[ch]"))}
    home = {}
    for file, text in texts.items():
        for kind, name in DEFINED.findall(text):
            if file.endswith(".h"):
                home.setdefault((kind, name), set()).add(file)
    for file, text in texts.items():
        own = set(DEFINED.findall(text))
        for named in sorted(set(NAMED.findall(text)) & home.keys() - own):
            yield file, " ".join(named), home[named]


def types_from_below(top):
    """A folder knows of no type below it, not even the name."""
    for file, name, homes in types(top):
        if all(verdict(file, path) for path in homes):
            yield f"{file}: {name}: {verdict(file, min(homes))}"


def parts():
    for file, number, path in edges():
        if path.endswith("_parts.h") and os.path.dirname(path) != os.path.dirname(file):
            yield f"{file}:{number}: {path} is for {os.path.dirname(path)}/ alone"


FLOORS = {folder: floors(folder) for folder in ("shim", "viewer", "simgpu")}
bad = [f"{folder}: no row in {top}/README.md" for top in FLOORS for folder in glob.glob(f"{top}/*/")
       if folder.split("/")[1] not in FLOORS[top]]
if not bad:
    bad = [f"{file}:{number}: {why}" for file, number, path in edges() if (why := verdict(file, path))]
    bad += [why for top in FLOORS for why in types_from_below(top)] + [*parts()]
    bad += [f"{file}: {symbol}: {why}" for top in FLOORS for file, symbol, path in calls(top) if (why := verdict(file, path))]
bad += [why for top in FLOORS for why in circles(top)]
print("\n".join(bad), end="\n" if bad else "")
sys.exit(bool(bad))
EOF

# SPDX-License-Identifier: Apache-2.0
"""Reference pages of the site, made from the tables that the code is made from: settings, events, hooks, classes and
their rules, cards. Each function gives one page as Markdown. (Commands come from scripts/man.sh, JSON from json_page.py.)"""
import re

from json_page import ROOT, read

CLASS_MEANINGS = "docs/man/gpumemtrace-why.1.md"
EFFECTS = {"ALLOC": "allocates: {}", "FREE": "frees: {}", "AFTER": "event {}", "BEFORE": "event {}", "OWN": "see {}"}
MEMORY = {"DEVICE": "device memory", "PITCHED": "rows of device memory", "MANAGED": "managed memory", "HOST": "pinned memory",
          "REGISTERED": "host memory that becomes pinned", "ASYNC": "memory in stream order", "ARRAY": "arrays",
          "IMPORTED": "memory of another process"}


def plain(path):
    """A table without its comments and the directives around it."""
    text = re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
    return re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.M)


def literal(text):
    """Neighbouring strings of C as one."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace('\\"', '"')


def rows(path, *macros):
    """Calls of these macros in a table: the name, and the arguments as they stand."""
    text = plain(path)
    for m in re.finditer(rf"^({'|'.join(macros)})\(", text, re.M):
        depth, quoted, at, parts = 1, False, m.end(), [""]
        while depth:
            c = text[at]
            quoted ^= c == '"' and text[at - 1] != "\\"
            depth += 0 if quoted else (c in "({") - (c in ")}")
            if c == "," and depth == 1 and not quoted:
                parts.append("")
            elif depth:
                parts[-1] += c
            at += 1
        yield m[1], [p.strip() for p in parts]


def table_row(*cells):
    return "| " + " | ".join(str(c).replace("|", "\\|") for c in cells) + " |\n"


def table(head, lines):
    return "".join(table_row(*row) for row in [head, ["---"] * len(head), *lines])


def settings():
    def default(kind, value):
        return {"SWITCH": "on" if value == "1" else "off", "CHOICE": value.split("_")[-1].lower()}.get(kind, value.strip('"') or "none")
    body = [(f"`GPUMEMTRACE_{a[0]}`", default(kind, a[2]), literal(a[-1]))
            for kind, a in rows("format/settings.def", "TEXT", "SWITCH", "NUMBER", "CHOICE", "SIZE")]
    return ("# Settings\n\nThe library reads these from the environment of the program that it is loaded into. `gpumemtrace run` sets what "
            "its options say and leaves the rest.\n\n" + table(("variable", "default", "meaning"), body) +
            "\nThe simulated device has settings of its own: [gpumemtrace(1)](../man/gpumemtrace.1.md).\n")


def events():
    body = [(f"`{a[3][1:-1]}`", a[2].lower(), ", ".join(f"`{f[2:].lower()}`" for f in a[4].replace(" ", "").split("|") if f.startswith("F_")),
             literal(a[5])) for _, a in rows("format/records.def", "EVENT")]
    definitions = [(f"`{a[2][1:-1]}`", literal(a[3])) for _, a in rows("format/records.def", "DEF")]
    return ("# Events\n\nWhat a recording consists of, by the names that `gpumemtrace dump` prints. Every event has a number (`seq`), a time "
            "and a thread as well. [FORMAT.md](../../format/FORMAT.md) has the bytes.\n\n" +
            table(("event", "layer", "members", "meaning"), body) + "\n## Definitions\n\nWhat events refer to by a number.\n\n" +
            table(("definition", "meaning"), definitions))


def effect(text):
    name, _, inside = text.partition("(")
    what = inside.split(",")[0].strip(" )")
    if name in ("AFTER", "BEFORE"):
        return f"event `{what.lower()}`"
    return {"ALLOC": "allocates ", "FREE": "frees "}.get(name, "") + MEMORY.get(what, "by its arguments" if name == "OWN" else what)


def cuda_version(number):
    return f"{int(number) // 1000}.{int(number) % 1000 // 10}"


def hooks():
    runtime = [(f"`{a[0]}`", effect(a[-1])) for _, a in rows("shim/hooks.def", "RUNTIME")]
    driver = [(f"`{a[0]}`", cuda_version(a[2]), effect(a[-1])) for _, a in rows("shim/hooks.def", "DRIVER")]
    cudnn = [(f"`{a[0]}`", "what a plan asks for as its workspace") for _, a in rows("shim/hooks.def", "CUDNN")]
    return ("# Hooks\n\nThe CUDA functions that the library stands in for: each calls the real one, and the outermost call is recorded. A "
            "library with a CUDA runtime of its own inside reaches the driver's functions by `cuGetProcAddress`, and gets these "
            f"([which ask for which](../driver-lookups.md)).\n\n## Driver: {len(driver)} functions\n\n" + table(("function", "since CUDA", "what is recorded"), driver) +
            f"\n## Runtime: {len(runtime)} functions\n\n" + table(("function", "what is recorded"), runtime) +
            f"\n## cuDNN: {len(cudnn)} functions\n\nThey are looked at and handed on ([what for](../replay.md)). Each caller reaches "
            "the cuDNN that it was linked with; a program that looks them up by name gets cuDNN's own.\n\n" +
            table(("function", "what is recorded"), cudnn))


def class_meanings():
    """name -> meaning: the list of the manual, where the temporaries share a row."""
    text = read(CLASS_MEANINGS).split("## CLASSES", 1)[1].split("\n\nThe class is", 1)[0]
    found = {}
    for item in re.findall(r"^- (.*(?:\n  .*)*)", text, re.M):
        names, meaning = " ".join(item.split()).split(": ", 1)
        found.update(dict.fromkeys(re.findall(r"\*(\w+)\*", names), meaning))
    return found


def classes():
    """The rows only: docs/questions/classes.md stands around them."""
    meanings = class_meanings()
    names = [a[0] for _, a in rows("viewer/classes/categories.def", "CATEGORY")]
    assert set(names) == set(meanings), "docs/man/gpumemtrace-why.1.md lists other classes than categories.def"
    return table(("class", "what it is"), [(f"`{n}`", meanings[n]) for n in names])


def share(right, wrong, programs):
    return f"{100 * right / (right + wrong):.2f} % of {(right + wrong) / 2**20:,.0f} MiB, {programs} programs" if right + wrong else "-"


def rules():
    counts = r'\{ "([\w-]+)", ' + ", ".join([r"\{ (\d+), (\d+), (\d+) \}"] * 2) + r" \}"
    measured = {m[0]: list(map(int, m[1:])) for m in re.findall(counts, plain("viewer/classes/precision.def"))}
    found = re.findall(r'RULE\("([\w-]+)", (\w+), \w+, \w+,\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', plain("viewer/classes/rules.def"))
    assert len(found) == plain("viewer/classes/rules.def").count("RULE("), "rules.def has rows of another shape"
    body = [(f"`{name}`", f"`{category}`", literal(text), *(share(*measured[name][i:i + 3]) if name in measured else "-" for i in (0, 3)))
            for name, category, text in found]
    return ("# Rules\n\nThe rules that give a block its class, in their order: the first that fits decides. `gpumemtrace why` prints the sentence of "
            "the one that did. What is right was measured with programs that know themselves what each byte is for, with autograd's tags and "
            "without.\n\n" + table(("rule", "class", "what it rests on", "right, with tags", "right, without"), body))


def cards():
    body = [(f"`{literal(a[0])}`", literal(a[1]), f"{a[2]}.{a[3]}", f"{int(a[11]) / 1024:.1f} GiB", f"{a[12]} MiB")
            for _, a in rows("simgpu/core/cards.def", "CARD")]
    return ("# Cards\n\nThe cards that `gpumemtrace run --sim` and `SIMGPU_CARD` know. `NAME=SIZE`, such as `mycard=40GiB`, is a card of any size. The "
            "context is what is gone before the first allocation; it depends on the driver and is an estimate.\n\n" +
            table(("name", "card", "compute capability", "memory", "context"), body))


def owner_columns(of):
    """What OWNER_COLUMNS stands for."""
    for name, type, unit, meaning in re.findall(r'COLUMN\(table, (\w+), (\w+), "([^"]*)", (.*)\)', read("viewer/commands/lake_tables.def")):
        yield table_row(f"`{name}`", type.lower(), unit, literal(meaning) + (literal(of) if meaning.endswith(" of") else ""))


def tables():
    """Of a lake; the columns of the tables of blocks and events are in docs/json.md."""
    parts = ["# Tables\n\nThe tables that `gpumemtrace collect` writes and `gpumemtrace sql` asks. Each has the names of its folders besides: "
             "`project`, `day`, `run`, `rank`. The tables of blocks and of events, which `export` writes and Python has, are in "
             "[JSON of the commands](../json.md).\n"]
    for kind, a in rows("viewer/commands/lake_tables.def", "TABLE", "COLUMN", "OWNER_COLUMNS"):
        if kind == "TABLE":
            parts.append(f"\n## {a[0]}\n\n{literal(a[1])}\n\n" + table(("column", "type", "unit", "meaning"), []))
        elif kind == "COLUMN":
            parts.append(table_row(f"`{a[1]}`", a[2].lower(), literal(a[3]), literal(a[4])))
        else:
            parts += owner_columns(a[1])
    return "".join(parts)


# The page, and the table that it is made from: documents link to the table, which stands in the repository; the site leads
# such a link to the page.
PAGES = {"settings": (settings, "format/settings.def"), "tables": (tables, "viewer/commands/lake_tables.def"), "events": (events, "format/records.def"),
         "hooks": (hooks, "shim/hooks.def"), "rules": (rules, "viewer/classes/rules.def"), "cards": (cards, "simgpu/core/cards.def")}


def page(name):
    make, path = PAGES[name]
    return f"{make()}\nMade from [{path}](../../{path}).\n"

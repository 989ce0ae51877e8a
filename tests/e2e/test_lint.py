# SPDX-License-Identifier: Apache-2.0
"""Each lint script finds what it is for: in a small tree with one offence, and in none without it."""
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import lint_claims  # noqa: E402
import lint_names  # noqa: E402

SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
LONG = SPDX + "int x;\n" * 500
OFFENCES = [
    ("layers", "viewer/base/a.c", SPDX + '#include "../../shim/capture.h"\n', "viewer/ must not include shim/capture.h"),
    ("layers", "viewer/base/a.c", SPDX + '#include "../model/b.h"\n', "viewer/model/b.h stands below it"),
    ("layers", "viewer/base/a.c", SPDX + "int last(void);\nint a(void);\nint a(void)\n{\n\treturn last();\n}\n",
     "viewer/base/a.c: last: viewer/model/last.c stands below it"),
    ("layers", "viewer/model/last.c", SPDX + "int first(void);\nint last(void);\nint last(void)\n{\n\treturn first();\n}\n",
     "viewer/model/first.c: calls what calls it: viewer/model/last.c"),
    ("layers", "viewer/base/a.h", SPDX + "struct moment;\n", "viewer/model/tables.h stands below it"),
    ("layers", "viewer/commands/a.c", SPDX + '#include "../model/own_parts.h"\n', "viewer/model/own_parts.h is for viewer/model/"),
    ("layers", "cupti/a.c", SPDX + '#include "../shim/ring.h"\n', "cupti/ must not include shim/ring.h"),
    ("layers", "format/reader.c", SPDX + '#include "writer.h"\n', "siblings"),
    ("size", "shim/a.c", LONG, "at most 500"),
    ("size", "cupti/a.def", 2 * LONG, "cupti: "),
    ("headers", "shim/a.c", "int x;\n", "no SPDX line"),
    ("manual", "docs/man/gpumemtrace-sleep.1.md", "# gpumemtrace-sleep(1)\n", "gpumemtrace-sleep.1.md"),
    ("documents", "viewer/commands/a.c", SPDX + "void emit_number(int n);\nvoid a(void);\nvoid a(void)\n{\n\temit_number(1);\n}\n",
     "documents.def"),
    ("words", "viewer/base/a.c", SPDX + "/* told */\nconst char *a = \"nobody's call\";\n", "a.c:3: \"nobody's\": say no recorded allocation"),
    ("words", "README.md", "```\ntold\n```\nIt was told of it.\n", "README.md:4: \"told\": say known, recorded"),
    ("words", "README.md", "The others are answered for; it rests on that.\n", "README.md:1: \"answered for\": say simulated"),
    ("hosts", "scripts/a.sh", "#!/bin/sh\ncurl -O something\n", "scripts/a.sh"),
    ("scripts", "scripts/a.sh", "if true\n", "syntax error"),
    ("format", "shim/a.c", SPDX + "int  x ;\n", "not laid out"),
    ("hookpath", "shim/a.c", SPDX + "#include <stdlib.h>\nvoid *f(void);\nvoid *f(void)\n{\n\treturn malloc(1);\n}\n",
     "shim/a.c calls malloc"),
    ("exports", "shim/a.c", SPDX + "int stray(void);\nint stray(void)\n{\n\treturn 1;\n}\n", "not in shim/hooks.def: stray"),
    ("tls", "shim/a.c", SPDX + "static __thread char big[512];\nchar *f(void);\nchar *f(void)\n{\n\treturn big;\n}\n", "512 bytes of thread-local"),
]


def run(tree, *command):
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=600)


def lint(tree, name):
    done = run(tree, "bash", f"scripts/lint-{name}.sh")
    return done.returncode, done.stdout + done.stderr


def compiled(tree):
    """What the checks of objects look at."""
    (tree / "build").mkdir(exist_ok=True)
    (tree / "build/exports.map").write_text("{ global:\nlocal: *; };\n")
    shim = []
    for source in [*tree.glob("shim/*.c"), *tree.glob("viewer/*/*.c")]:
        made = (tree / "build/obj" / source.relative_to(tree)).with_suffix(".o")
        made.parent.mkdir(parents=True, exist_ok=True)
        shim += [made] * (source.parent.name == "shim")
        done = run(tree, "gcc", "-fPIC", "-c", str(source), "-o", str(made))
        assert done.returncode == 0 or "No such file" in done.stderr, done.stderr
    assert run(tree, "gcc", "-shared", "-o", "build/libgpumemtrace.so", *shim).returncode == 0


@pytest.fixture
def tree(tmp_path):
    for folder in ("scripts", "shim", "format", "viewer/base", "viewer/model", "docs/man", "viewer/commands", "cupti", "simgpu"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "viewer/README.md").write_text("| `base/` | x |\n| `model/` | x |\n| `commands/` | x |\n")
    for script in (ROOT / "scripts").glob("lint*"):
        shutil.copy(script, tmp_path / "scripts")
    (tmp_path / "scripts/lint-hookpath.allow").write_text("")
    shutil.copy(ROOT / ".clang-format", tmp_path)
    if (ROOT / ".venv").exists():
        (tmp_path / ".venv").symlink_to((ROOT / ".venv").resolve())
    for document in ("README.md", "CONTRIBUTING.md"):
        (tmp_path / document).write_text("")
    (tmp_path / ".gitignore").write_text(".venv\nbuild\n")
    (tmp_path / "shim/good.c").write_text(SPDX + "static int x;\nint *gmt_good(void);\n")
    (tmp_path / "viewer/model/last.c").write_text(SPDX + "int last(void);\nint last(void)\n{\n\treturn 1;\n}\n")
    (tmp_path / "viewer/model/first.c").write_text(SPDX + "int last(void);\nint first(void);\nint first(void)\n{\n\treturn last();\n}\n")
    (tmp_path / "viewer/model/tables.h").write_text(SPDX + "struct moment {\n\tint x;\n};\n")
    run(tmp_path, "git", "init", "-q")
    return tmp_path


@pytest.mark.parametrize("name, path, text, message", OFFENCES, ids=[f"{o[0]}-{o[1]}" for o in OFFENCES])
def test_finds_offence(tree, name, path, text, message):
    for content, bad in ((None, False), (text, True)):
        if content is not None:
            (tree / path).write_text(content)
            (tree / path).chmod(0o755)
        compiled(tree)
        run(tree, "git", "add", "-A")
        code, said = lint(tree, name)
        assert bool(code) == bad, said
    assert message in said


SH = "```sh\n%s\n```\n"
NAMES = [  # a line of a document, what is wrong with it
    ("`export --to memory_viz`", "--to has no memory_viz"),
    ("`gpumemtrace reprot FILE`", "no command reprot"),
    ("`gpumemtrace report FILE --stepz`", "report has no --stepz"),
    (SH % "gpumemtrace diff old.gmt", "diff takes OLD NEW"),
    (SH % "gpumemtrace bisect v1.2 HEAD", "bisect takes GOOD BAD COMMAND"),
    (SH % "cat x | gpumemtrace peek x.gmt", "no command peek"),
    (SH % "gpumemtrace run --sim h100-90g -- python train.py", "no card h100-90g"),
    ("```example\n$ gpumemtrace fit --cards l4-23g -- python train.py\n```\n", "no card l4-23g"),
    ("```\ngpumemtrace repor run.gmt\n```\n", "no command repor"),
    ("```yaml\n  - run: gpumemtrace chek new.gmt\n```\n", "no command chek"),
    ("```python\nimport gpumemtrace\ngpumemtrace.transformers.GpuMemory()\n```\n", "gpumemtrace.transformers is used and not imported"),
    ("```python\nimport gpumemtrace\ngpumemtrace.opne(1)\n```\n", "no gpumemtrace.opne"),
    ("```python\nimport x as\n```\n", "no Python"),
    ("It runs on the h300-80g.", "no card h300-80g"),
    ("`GPUMEMTRACE_STAKS=all`", "nothing reads GPUMEMTRACE_STAKS"),
    ("`GPUMEMTRACE_STACKS=some`", "GPUMEMTRACE_STACKS takes no some"),
    ("`SIMGPU_CARDS`", "nothing reads SIMGPU_CARDS"),
    ("`make tests`", "make has no target tests"),
    (SH % "make lint unt", "make has no target unt"),
    ("`make SANN=address unit`", "the Makefile knows no SANN"),
    ("`make run-test_nothing`", "make has no target run-test_nothing"),
    ("`scripts/nothing.sh`", "no file scripts/nothing.sh"),
    ("`tests/e2e/test_nothing.py`", "no file tests/e2e/test_nothing.py"),
    ("`cmd_nothing.c`", "no source cmd_nothing.c"),
    ("`scripts/setup.sh framework`", "no part framework"),
    ("`.venv-tool/bin/python`", "makes no .venv-tool"),
    ("`tests/frameworks/run.py --programm trainer`", "no --programm"),
    (SH % ".venv/bin/python -m pytest tests/e2e/test_faults.py -k fulll", "no test fulll"),
    ("`gpumemtrace[pandas]`", "no extra pandas"),
    ("`live --at middle`", "--at takes no middle"),
    ("`timeline --by steps`", "--by has no steps"),
    ("`leaks --top many`", "--top takes no many"),
    ("`--max-class weights=3GiB`", "no class weights"),
    ("`--nothing`", "no command has --nothing"),
    ("`gpumemtrace ctl PID stop`", "no request stop"),
    ("See gpumemtrace-oops(1).", "no page gpumemtrace-oops(1)"),
    ("[x](nothing.md)", "leads to no file"),
]


@pytest.mark.parametrize("line, fault", NAMES, ids=[line.strip("`\n") for line, _ in NAMES])
def test_a_document_names_what_is_not_there(line, fault):
    assert lint_names.check("docs/x.md", "# A page\n\nRight: `gpumemtrace report FILE --top 3`, `make lint`, `export --to torch`.\n") == []
    assert any(fault in f for f in lint_names.check("docs/x.md", f"# A page\n\n{line}\n"))


CLAIMS = [  # a page, what it says, what it might say
    ("README.md", "27 cards are known", "26 cards are known"),
    ("README.md", "Linux on x86-64 and aarch64", "Linux on x86-64"),
    ("README.md", "(JAX, CuPy, what nvcc", "(JAX, CuPy, cuda-python, what nvcc"),
    ("README.md", "CPython 3.9 to 3.14", "CPython 3.9 to 3.13"),
    ("README.md", "PyTorch 2.1 to 2.15", "PyTorch 2.2 to 2.15"),
    ("README.md", "for CUDA 12", "for CUDA 11, 12"),
    ("README.md", "Debian 12", "Debian 10"),
    ("examples/kubernetes/README.md", "glibc 2.28 or later", "glibc 2.27 or later"),
    ("docs/questions/out-of-memory.md", "one of fourteen", "one of ten"),
    ("docs/python.md", "all fifteen columns", "all fourteen columns"),
    ("docs/lake.md", "each of the seven tables", "each of the eight tables"),
    ("docs/reliability.md", "535.216, 535.261", "535.261"),
    ("docs/advise.md", "up to 1.9 %", "up to 1.2 %"),
    ("docs/man/gpumemtrace.1.md", "- `SIMGPU_TAKEN`", "- SIMGPU_TAKEN"),
    ("docs/man/gpumemtrace-sql.1.md", "- *stray_ranks*", "- *far_ranks*"),
    ("docs/man/gpumemtrace-diff.1.md", "- *casts*", "- *cast*"),
    ("docs/man/gpumemtrace-advise.1.md", "- *late_del*", "- *late*"),
    ("docs/lake.md", "| `growth` |", "| `grown` |"),
    ("docs/cost.md", "GPT-2 3.1, Qwen2 3.1", "GPT-2 3.0, Qwen2 3.0"),
    ("README.md", "gave 5, 8 and 12 %", "gave 5, 8 and 13 %"),
    ("simgpu/README.md", "up to 4,096 elements", "up to 2,048 elements"),
    ("docs/man/gpumemtrace.1.md", "at most four at a time", "at most two at a time"),
    ("docs/replay.md", "120 of 120", "119 of 120"),
    ("docs/man/gpumemtrace-run.1.md", "*l4-24g*, ", ""),
    ("docs/man/gpumemtrace-live.1.md", "default 40", "default 50"),
    ("docs/man/gpumemtrace-flame.1.md", "*native*, or *both*", "or *native*"),
    ("docs/man/gpumemtrace-oom.1.md", "- *growing*", "- *growth*"),
    ("docs/man/gpumemtrace-export.1.md", "- *torch*", "- *memory_viz*"),
    ("docs/man/gpumemtrace.1.md", "more than 2 % and more than 2 MiB", "more than 3 % and more than 2 MiB"),
]


@pytest.fixture(scope="module")
def pages():
    found = lint_claims.pages()
    assert lint_claims.faults(found) == []
    return found


@pytest.mark.parametrize("page, right, wrong", CLAIMS, ids=[f"{c[0]}-{c[2]}" for c in CLAIMS])
def test_a_document_claims_what_is_not_so(pages, page, right, wrong):
    assert right in pages[page]
    assert lint_claims.faults({**pages, page: pages[page].replace(right, wrong)})

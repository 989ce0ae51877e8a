# SPDX-License-Identifier: Apache-2.0
"""Each lint script finds what it is for: in a small tree with one offence, and in none without it."""
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
    ("headers", "shim/a.c", "int x;\n", "no SPDX line"),
    ("manual", "viewer/man/gpumemtrace-sleep.1.md", "# gpumemtrace-sleep(1)\n", "gpumemtrace-sleep.1.md"),
    ("documents", "viewer/commands/a.c", SPDX + "void emit_number(int n);\nvoid a(void);\nvoid a(void)\n{\n\temit_number(1);\n}\n",
     "documents.def"),
    ("words", "viewer/base/a.c", SPDX + "/* told */\nconst char *a = \"nobody's call\";\n", "a.c:3: \"nobody's\": say no recorded allocation"),
    ("words", "README.md", "```\ntold\n```\nIt was told of it.\n", "README.md:4: \"told\": say known, recorded"),
    ("hosts", "scripts/a.sh", "#!/bin/sh\ncurl -O something\n", "scripts/a.sh"),
    ("scripts", "scripts/a.sh", "if true\n", "syntax error"),
    ("format", "shim/a.c", SPDX + "int  x ;\n", "not laid out"),
    ("hookpath", "shim/a.c", SPDX + "#include <stdlib.h>\nvoid *f(void);\nvoid *f(void)\n{\n\treturn malloc(1);\n}\n",
     "shim/a.c calls malloc"),
    ("exports", "shim/a.c", SPDX + "int stray(void);\nint stray(void)\n{\n\treturn 1;\n}\n", "not in shim/hooks.def: stray"),
]


def run(tree, *command):
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=60)


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
    for folder in ("scripts", "shim", "format", "viewer/base", "viewer/model", "viewer/man", "viewer/commands", "cupti", "simgpu"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "viewer/README.md").write_text("| `base/` | x |\n| `model/` | x |\n| `man/` | x |\n| `commands/` | x |\n")
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

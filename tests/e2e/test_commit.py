# SPDX-License-Identifier: Apache-2.0
"""The commit that a recording names is that of the script, wherever it is started from; where the working directory is
another repository, both are named. git says what is right."""
import json
import os
import subprocess
import sys

import pytest
from test_cli import run

PROGRAM = """
import ctypes, os
{more}
at = ctypes.c_void_p()
assert ctypes.CDLL(None).cudaMalloc(ctypes.byref(at), ctypes.c_size_t(1 << 20)) == 0
"""


def git(folder, *words):
    return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", "-C", str(folder), *words],
                          check=True, capture_output=True, text=True).stdout.strip()


def repository(folder, branch):
    (folder / "pkg/tool").mkdir(parents=True)
    for name in "train.py", "pkg/__init__.py", "pkg/m.py", "pkg/tool/__main__.py", "pkg/tool/__init__.py":
        (folder / name).write_text("" if "__init__" in name else PROGRAM.format(more=""))
    git(folder, "init", "-q", "-b", branch)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", folder.name)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Two repositories, a worktree and a submodule of the first one, and folders that are none."""
    root = tmp_path_factory.mktemp("git")
    repository(root / "one", "main")
    repository(root / "two", "other")
    git(root / "one", "worktree", "add", "-q", "-b", "side", str(root / "tree"))
    (root / "tree/train.py").write_text(PROGRAM.format(more="# changed"))
    git(root / "tree", "commit", "-qam", "three")
    git(root / "one", "submodule", "--quiet", "add", str(root / "two"), "sub")
    git(root / "one", "commit", "-qam", "four")
    git(root / "two", "commit", "-q", "--allow-empty", "-m", "five")
    (root / "one/inner").mkdir()
    (root / "one/inner/.git").write_text("gitdir: /nowhere/else\n")
    for folder in root, root / "one/inner":
        (folder / "loose.py").write_text(PROGRAM.format(more=""))
    (root / "two/moves.py").write_text(PROGRAM.format(more="os.chdir('/')"))
    (root / "link.py").symlink_to(root / "two/train.py")
    (root / "two/env/bin").mkdir(parents=True)
    (root / "two/env/bin/python3").symlink_to(sys.executable)
    (root / "two/env/bin/launch").write_text(PROGRAM.format(more=""))
    return root


# the folder it is started in, the words behind "python" -> whose commits: of the script, of the folder (None: not named)
CASES = {
    "its own": ("one", ["train.py"], "one", None), "below": ("one/pkg", ["../train.py"], "one", None),
    "worktree": ("one", ["../tree/train.py"], "tree", "one"), "from a worktree": ("tree", ["../one/train.py"], "one", "tree"),
    "worktree alone": ("tree", ["train.py"], "tree", None), "submodule": ("one", ["sub/train.py"], "one/sub", "one"),
    "from a submodule": ("one/sub", ["../train.py"], "one", "one/sub"), "another": ("two", ["-u", "-Xdev", "-W", "ignore", "../one/train.py", "-m", "x"], "one", "two"),
    "options in one": ("two", ["-uBX", "dev", "--", "../one/train.py"], "one", "two"), "no repository": ("one", ["../loose.py"], None, "one"),
    "neither": (".", ["loose.py"], None, None), "broken": ("one", ["inner/loose.py"], None, "one"), "module": ("one", ["-m", "pkg.m"], "one", None),
    "package": ("one", ["-um", "pkg.tool", "../two/train.py"], "one", None), "command": ("one", ["-c", "import pkg.m", "../two/train.py"], "one", None),
    "installed module": ("one", ["-m", "timeit", "-n1", "-r1", "import pkg.m"], "one", None), "moved": ("two", ["moves.py"], "two", None),
    "link": ("one", ["../link.py"], "two", "one"), "launcher": ("one", ["../two/env/bin/launch"], "one", None), "input": ("one", ["-"], "one", None)}


@pytest.mark.parametrize("case", CASES)
def test_whose_commit(programs, tree, case):
    where, words, script, folder = CASES[case]
    recording = programs.folder / "run.gmt"
    done = subprocess.run([sys.executable, *words], cwd=tree / where, input=PROGRAM.format(more=""), text=True, capture_output=True,
                          env={**programs.environment(GPUMEMTRACE_OUTPUT=str(recording)), "PWD": str(tree / where)})
    assert done.returncode == 0, done.stderr
    facts = json.loads(run("info", "--json", recording).stdout)["meta"]
    for key, repository_of in ("git.", script), ("git.cwd_", folder):
        wanted = repository_of and (git(tree / repository_of, "rev-parse", "HEAD"), git(tree / repository_of, "branch", "--show-current"),
                                    os.path.realpath(git(tree / repository_of, "rev-parse", "--show-toplevel")))
        found = facts.get(key + "commit"), facts.get(key + "branch"), facts.get(key + "root")
        assert found == (wanted or (None, None, facts.get(key + "root") if case == "broken" else None)), (key, facts)
    if case == "broken":
        assert facts["git.state"] == "its .git names a folder that could not be read" and facts["git.root"].endswith("/inner")
    head = run("report", recording).stdout
    assert not script or len(words) > 1 or f"commit {git(tree / script, 'rev-parse', '--short=7', 'HEAD')}" in head
    assert (f"folder at {git(tree / folder, 'rev-parse', '--short=7', 'HEAD')}" in head or len(words) > 1) if folder else "folder at" not in head
    hidden = run("info", "--redact", "--json", recording).stdout
    assert str(tree) not in hidden and '"side"' not in hidden

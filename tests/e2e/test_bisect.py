# SPDX-License-Identifier: Apache-2.0
"""`gpumemtrace bisect` on repositories made here: merges, broken commits, renamed scripts, a dirty tree, interrupts."""
import json
import os
import shutil
import signal
import subprocess

import json_page
import pytest
import toy
from conftest import TABLES, all_ran, until

TAKES = os.path.join(toy.ROOT, "build/programs/takes")
MIB = 1 << 20
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "GIT_"))}
ENV.update(GIT_AUTHOR_NAME="A", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="A", GIT_COMMITTER_EMAIL="a@b", GIT_CONFIG_GLOBAL="/dev/null",
           GIT_CONFIG_NOSYSTEM="1")
SEEN = set()


@pytest.fixture(scope="session", autouse=True)
def program():
    subprocess.run(["make", "-s", "build/programs/takes"], cwd=toy.ROOT, check=True)


class Repository:
    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *args):
        done = subprocess.run(["git", *args], cwd=self.folder, env=ENV, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, subject, mib=None, script="train.sh", text=None):
        """One where the script takes so much."""
        if mib or text:
            (self.folder / script).parent.mkdir(exist_ok=True)
            (self.folder / script).write_text(text or f"# a script of some length, so that git sees where it went\n# and what it was\nexec {TAKES} --base {mib}\n")
        (self.folder / "other").write_text(subject)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def start(self, *args, where=""):
        return subprocess.Popen([toy.TOOL, "bisect", *args], cwd=self.folder / where, env={**ENV, "TMPDIR": str(self.folder.parent)},
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def bisect(self, *args, code=0, where=""):
        p = self.start(*args, where=where)
        out, err = p.communicate(timeout=600)
        assert p.returncode == code, (out, err)
        self.is_clean()
        return out if code == 0 else err

    def json(self, *args, **kw):
        document = json.loads(self.bisect(*args[:2], "--json", *args[2:], **kw))
        assert json_page.check(TABLES, "bisect", document, SEEN) == []
        return document

    def is_clean(self):
        """No worktree, no branch, no state of a bisect, no folder is left."""
        assert len(self.git("worktree", "list").splitlines()) == 1
        assert self.git("for-each-ref", "refs/bisect") == "" and not (self.folder / ".git/BISECT_LOG").exists()
        assert not list(self.folder.parent.glob("gpumemtrace-bisect-*"))


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "repository")


def test_the_commit_that_raised_it(repository, tmp_path):
    ids = [repository.commit(f"commit {i}", 100 if i < 7 else 130) for i in range(12)]
    (repository.folder / "train.sh").write_text("not committed\n")
    (repository.folder / "new").write_text("new\n")
    before = repository.git("status", "--porcelain"), repository.git("rev-parse", "HEAD")
    found = repository.json(ids[0], "HEAD", "--", "sh", "train.sh")
    assert (found["commit"], found["parent"]) == (ids[7], ids[6])
    assert (found["peak_old"], found["peak_new"]) == (102 * MIB, 132 * MIB) and found["skipped"] == [] and found["subject"] == "commit 7"
    assert {(c["commit"], c["verdict"]) for c in found["measured"]} >= {(ids[0], "good"), (ids[11], "bad"), (ids[6], "good"), (ids[7], "bad")}
    assert len(found["measured"]) <= 2 + 4
    assert (repository.git("status", "--porcelain"), repository.git("rev-parse", "HEAD")) == before
    assert (repository.folder / "train.sh").read_text() == "not committed\n"
    text = repository.bisect("-o", str(tmp_path / "kept"), "--max-peak", "110MiB", ids[0], "HEAD", "--", "sh", "train.sh")
    assert f"{ids[7][:12]} raised the peak from 102.0 MiB to 132.0 MiB" in text and "commit 7 (A)" in text
    assert "+30.0 MiB" in text  # what `diff` says of the two
    assert (tmp_path / f"kept/{ids[7][:12]}.gmt").exists() and not list((tmp_path / "kept").glob("tree*"))


def test_the_commit_that_lowered_it(repository):
    """Also where the older end runs out of memory, and with a limit that is given."""
    ids = [repository.commit(f"commit {i}", 130 if i < 5 else 100) for i in range(8)]
    command = (ids[0], ids[7], "--", "sh", "train.sh")
    found = repository.json(*command)
    assert (found["commit"], found["parent"], found["peak_old"], found["peak_new"]) == (ids[5], ids[4], 132 * MIB, 102 * MIB)
    assert repository.json("--sim", "small=700MiB", *command)["commit"] == ids[5]
    assert f"{ids[5][:12]} lowered the peak from 132.0 MiB to 102.0 MiB" in repository.bisect("--max-peak", "110MiB", *command)
    assert "is not good either" in repository.bisect("--max-peak", "50MiB", *command, code=1)
    assert "nothing to find" in repository.bisect("--fail-above", "40%", *command, code=1)


def test_a_folder_that_other_searches_used(repository, tmp_path):
    """A recording of another command, script outside the repository, card or setting is not used."""
    ids = [repository.commit(f"commit {i}", 100 if i < 3 else 130) for i in range(6)]
    outside = tmp_path / "outside.sh"
    kept = tmp_path / "kept"

    def search(command, *options):
        """The two peaks in MiB, and whether a program was run for them."""
        before = {p: p.stat().st_mtime_ns for p in kept.glob("*.gmt")}
        found = repository.json("-o", str(kept), *options, ids[0], ids[5], "--", *command)
        return found["peak_old"] // MIB, found["peak_new"] // MIB, {p: p.stat().st_mtime_ns for p in kept.glob("*.gmt")} != before

    assert search(["sh", "train.sh"]) == (102, 132, True)
    assert search(["sh", "train.sh"]) == (102, 132, False)
    outside.write_text("exec sh train.sh\n")
    assert search(["sh", str(outside)]) == (102, 132, True)
    outside.write_text("exec $(tail -n 1 train.sh | cut -d' ' -f2-)0\n")  # ten times as much
    assert search(["sh", str(outside)]) == (1002, 1302, True)
    assert search(["sh", str(outside)], "--sim", "a100-80g") == (1002, 1302, True)
    assert search(["sh", str(outside)], "--sim", "a100-80g") == (1002, 1302, False)
    ENV["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    try:
        assert search(["sh", str(outside)], "--sim", "a100-80g") == (1002, 1302, True)
    finally:
        del ENV["PYTORCH_CUDA_ALLOC_CONF"]


def test_a_merge_and_broken_commits(repository):
    first = repository.commit("first", 100)
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("side 1", script="side.sh", text="true\n")
    repository.commit("side broken", text="exit 3\n")
    guilty = repository.commit("side raises", 200)
    repository.commit("side 4", script="side.sh", text="true 4\n")
    repository.git("checkout", "-q", "main")
    repository.commit("main 1", script="main.sh", text="true\n")
    repository.git("merge", "-q", "-X", "ours", "--no-ff", "-m", "merge", "side")
    for i in range(3):
        repository.commit(f"after {i}", script="main.sh", text=f"true {i}\n")
    found = repository.json(first, "HEAD", "--", "sh", "train.sh")
    broken = repository.git("log", "--format=%H", "--grep", "side broken", "side")
    if found["commit"] != guilty:  # git cannot tell them apart where the one before could not be run
        assert found["skipped"]
    assert {found["commit"], *found["skipped"]} >= {guilty} and {found["commit"], *found["skipped"]} <= {guilty, broken}
    assert found["peak_new"] == 202 * MIB and [c["verdict"] for c in found["measured"] if c["commit"] == broken] == ["skipped"]


def test_a_renamed_script_in_a_folder(repository):
    ids = [repository.commit("a", 100, "src/run.sh"), repository.commit("b", 101, "src/run.sh")]
    repository.git("mv", "src/run.sh", "src/train.sh")
    ids += [repository.commit("c"), repository.commit("d", 300, "src/train.sh"), repository.commit("e", 301, "src/train.sh")]
    (repository.folder / "src/tool").symlink_to("/bin/sh")  # not committed: an interpreter beside the script
    found = repository.json("--fail-above", "50MiB", ids[0], "main", "--", "./tool", "train.sh", where="src")
    assert found["commit"] == ids[3] and found["peak_old"] == 103 * MIB
    found = repository.json(ids[0], "main", "--", "sh", str(repository.folder / "src/train.sh"))
    assert found["commit"] == ids[3]


def test_a_submodule(repository, tmp_path):
    """What a script needs from a submodule is there at each commit, from the user's own clone of it; that stays as it is."""
    inner = Repository(tmp_path / "inner")
    inner.commit("small", text="MIB=100\n", script="size.sh")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.folder), "lib/inner")
    first = repository.commit("first", text=f". lib/inner/size.sh\nexec {TAKES} --base $MIB\n")
    repository.commit("second")
    large = inner.commit("large", text="MIB=300\n", script="size.sh")
    lib = repository.folder / "lib/inner"
    subprocess.run(["git", "pull", "-q", "origin", "main"], cwd=lib, env=ENV, check=True)
    guilty = repository.commit("the submodule grows")
    repository.commit("fourth")
    (lib / "size.sh").write_text("MIB=1\n")  # the user's own change
    found = repository.json(first, "HEAD", "--", "sh", "train.sh")
    assert (found["commit"], found["peak_old"], found["peak_new"]) == (guilty, 102 * MIB, 302 * MIB)
    assert (lib / "size.sh").read_text() == "MIB=1\n"
    assert subprocess.run(["git", "rev-parse", "HEAD"], cwd=lib, env=ENV, capture_output=True, text=True).stdout.strip() == large


def test_memory_that_is_refused_is_bad(repository):
    ids = [repository.commit(str(i), 100 if i < 2 else 5000) for i in range(4)]
    found = repository.json(ids[0], ids[3], "--sim", "small=1GiB", "--", "sh", "train.sh")
    assert found["commit"] == ids[2]


@pytest.mark.parametrize("does", ["echo warning: of something >&2", "sleep 0.1"])
def test_git_that_warns_or_is_slow(repository, tmp_path, monkeypatch, does):
    good, _, bad = (repository.commit(name, mib) for name, mib in (("one", 10), ("two", 10), ("three", 30)))
    git = tmp_path / "bin/git"
    git.parent.mkdir()
    git.write_text(f'#!/bin/sh\n{does}\nexec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    monkeypatch.setitem(ENV, "PATH", f"{git.parent}:{os.environ['PATH']}")
    assert repository.json(good, "HEAD", "--", "sh", "train.sh")["commit"] == bad


def test_what_is_no_search(repository):
    ids = [repository.commit("a", 100), repository.commit("b", 101), repository.commit("c", text="exit 4\n"), repository.commit("d", 200)]
    command = ("--", "sh", "train.sh")
    for args, code, said in [
        ((ids[0], ids[1], *command), 1, f"{ids[1]} is not bad: its peak is 103.0 MiB, and up to 104.0 MiB are good; there is nothing to find"),
        (("--max-peak", "50MiB", ids[0], ids[3], *command), 1, "is not good either: its peak is 102.0 MiB, and the limit is 50.0 MiB"),
        ((ids[2], ids[3], *command), 3, f"{ids[2]}: the program failed, exit code 4"),
        (("nothing", ids[3], *command), 2, "nothing is no commit of this repository"),
        ((ids[3], ids[3], *command), 2, "are the same commit"),
        (("--max-peak", "2%", ids[0], ids[3], *command), 2, "--max-peak needs a size"),
        (("--max-peak", "1GiB", "--fail-above", "2%", ids[0], ids[3], *command), 2, "exclude each other"),
        (("--sim", "h1", ids[0], ids[3], *command), 2, '--sim: unknown card "h1"; did you mean h100-80g?'),
    ]:
        error = repository.bisect(*args, code=code)
        assert said in error and error.startswith("gpumemtrace bisect: ") and error.count("\n") == 1, error


def test_outside_of_a_repository(tmp_path):
    done = subprocess.run([toy.TOOL, "bisect", "a", "b", "--", "true"], cwd=tmp_path, env={**ENV, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)},
                          capture_output=True, text=True)
    assert done.returncode == 3 and "not a git repository" in done.stderr


def sleeping(seconds):
    return [x for x in os.popen("ps -eo args").read().splitlines() if x.startswith(f"sleep {seconds}")]


@pytest.mark.parametrize("how, end", [(signal.SIGINT, False), (signal.SIGTERM, True)])
def test_an_interrupt_leaves_nothing(repository, how, end):
    """While an end is measured, and while git's bisect runs."""
    long = f"30.{os.getpid()}{how:d}"  # of this test alone
    ids = [repository.commit(str(i), text=f"sleep {0.1 if end and i in (0, 5) else long}\nexec {TAKES} --base {100 + 50 * i}\n") for i in range(6)]
    p = repository.start(ids[0], ids[5], "--", "sh", "train.sh")
    until(lambda: len(list(repository.folder.parent.glob("gpumemtrace-bisect-*/*.log"))) >= (3 if end else 1))
    until(lambda: sleeping(long))
    p.send_signal(how)
    assert p.wait(60) == 130
    repository.is_clean()
    assert not sleeping(long)


def test_all_members_were_seen(request):
    if not SEEN or not all_ran(request):
        pytest.skip("the other tests ran elsewhere")
    never = {(t, m.name) for t in TABLES if t.startswith("bisect") for m in TABLES[t][1]} - SEEN
    assert not never, sorted(never)

# SPDX-License-Identifier: Apache-2.0
"""Blocks of shell in the documents run as they are written, in a repository with small programs, and output that stands below a
command by hand is what the command prints. (Blocks ```example run when a page is made: test_cli.py, test_docs_site.py.)"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import shown
from conftest import BUILD, REAL, ROOT, until
import lint_names
import lint_tables

pytestmark = pytest.mark.skipif(REAL, reason="runs on simulated cards")
TOOLS = ROOT / ".venv-tools/bin/python"
PROGRAM = (ROOT / "tests/wheel/program.py").read_text()
LONG = r"(make|scripts/|\.venv|kubectl|GPUMEMTRACE_TEST_|pip )"  # builds, installs, asks a cluster, or takes minutes: `make lint` checks what it names
ELSEWHERE = {"docs/lake.md": "test_lake.py", "docs/ci.md": "test_python_docs.py", "docs/fit.md": "make", "README.md": "test_readme.py: those with train.py",
             "docs/man/gpumemtrace-fit.1.md": "not compared"}
PAGES = sorted(str(p.relative_to(ROOT)) for g in ("*.md", "docs/**/*.md", "examples/**/*.md", "viewer/**/*.md", "packaging/*.md", "python/*.md", "tests/**/README.md")
               for p in ROOT.glob(g))
TRAINS = """
import torch
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.AdamW(model.parameters())
while True:
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    print(flush=True)
"""
TAKES = PROGRAM + """
import time
print(flush=True)
while True:
    call("cuMemFree_v2", allocate(MIB))
    time.sleep(0.001)
"""
SLEEPS = "import time\nprint(flush=True)\ntime.sleep(100)\n"


def scripts():
    """Blocks of shell that run here."""
    for page in PAGES:
        for i, block in enumerate(shown.blocks(page, "sh"), 1):
            if not re.match(LONG, block) and (page not in ELSEWHERE or page == "README.md" and "train.py" not in block):
                yield pytest.param(block, id=f"{page}-{i}")


class Place:
    """A repository whose second commit needs more memory, recordings, a lake, and what a script asks for: srun, HOME, SCRATCH."""

    def __init__(self, folder):
        self.folder, self.started = folder / "repository", []
        bins = folder / "bin"
        for new in (self.folder / "runs", self.folder / "recordings", folder / "scratch", bins, folder / ".local/lib"):
            new.mkdir(parents=True)
        shutil.copy(ROOT / "tests/e2e/slurm/srun", bins)
        (folder / ".local/lib/gpumemtrace").symlink_to(BUILD)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "LD_"))}
        self.env.update(PATH=f"{bins}:{BUILD}:{Path(sys.executable).parent}:{os.environ['PATH']}", HOME=str(folder), SCRATCH=str(folder / "scratch"), SLURM_NTASKS="2", OMP_NUM_THREADS="1",
                        LC_ALL="C.UTF-8", LD_LIBRARY_PATH=str(BUILD / "simgpu"), GPUMEMTRACE_PYTHON=str(TOOLS),
                        **{f"GIT_{who}_{what}": "Ada" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")})
        for recording in (ROOT / "tests/data/example").glob("*.gmt"):
            for to in ("", "runs", "recordings"):
                shutil.copy(recording, self.folder / to)
        self.run("git init -q")
        for size, message in ((48, "Shuffle the data"), (48, "A comment"), (96, "A wider layer")):
            for name in ("train.py", "finetune.py", "serve.py", "serve_sglang.py", "grpo.py"):
                (self.folder / name).write_text(PROGRAM.replace("32 * MIB", f"{size} * MIB") + f"# {message}\n")
            self.run(f"git add *.py && git commit -qm '{message}' && (git tag v1.2 2>/dev/null || true)")

    def run(self, command, code=0):
        done = subprocess.run(["bash", "-ec", command], cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
        assert done.returncode == code or code is None, (command, done.stdout)
        return done.stdout

    def start(self, text, *preload):
        """A Python program that goes on; it has begun its work when this returns."""
        (self.folder / "train.py").write_text(text)
        env = {**self.env, "LD_PRELOAD": ":".join(str(BUILD / p) for p in preload), "GPUMEMTRACE_OUTPUT": "now.%p.gmt"}
        self.started.append(subprocess.Popen(["python", "train.py"], executable=sys.executable, cwd=self.folder, env=env, stdout=subprocess.PIPE))
        self.started[-1].stdout.readline()
        pid = self.started[-1].pid
        if "libgpumemtrace.so" in preload:
            until(lambda: any(f.stat().st_size for f in self.folder.glob(f"now.{pid}.gmt*")))
        return str(pid)


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    for process in made.started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("block", list(scripts()))
def test_block_runs(place, block):
    for word in re.findall(r"\S+\.pickle", block):
        input_of(place, word)
    said = place.run(block.replace("COMMIT", "v1.2"), code=1 if "snapshot.pickle" in block else 0)  # memory did not run out in it
    recordings = [*(place.folder.parent / "scratch").rglob("*.gmt")]
    assert said or len(recordings) == 2, said
    assert "bisect" not in block or "raised the peak from 64.0 MiB to 112.0 MiB" in said


# Commands in sentences and tables, run on the recordings of the manual's examples. Others start programs, ask running ones or need DuckDB.
READERS = set(lint_tables.commands()) - {"run", "fit", "bisect", "attach", "ctl", "top", "sql", "dashboard", "open", "compact", "regressions"}
WORDS = {"FILE": "new.gmt", "OLD": "old.gmt", "NEW": "new.gmt", "OLDDIR": "old/", "NEWDIR": "new/", "ADDRESS": "0x77252d000000", "ID": "59", "STACK": "59", "MOMENT": "peak",
         "FORMAT": "csv", "PID": "1", "mark:NAME": "peak", "N": "0"}


def sentences():
    """Page and words of each command of the tool that a sentence names with all that it takes."""
    for page in PAGES:
        for _, language, text in lint_names.pieces((ROOT / page).read_text()):
            words = text.split() if language is None and not re.search(r"[|\[]", text) else []
            if words[:1] == ["gpumemtrace"] and words[1:2] and words[1] in READERS and "COMMAND" not in words and not lint_names.tool_faults(words[1:], whole=True):
                yield page, text


def input_of(place, word):
    """The recording, snapshot or folder that a word of a command names."""
    path, example = place.folder / word, ROOT / "tests/data/example"
    if word.endswith((".gmt", ".pickle")) and not path.exists():
        place.run(f"gpumemtrace export old.gmt --to torch -o {word}" if word.endswith(".pickle") else f"cp new.gmt {word}")
    elif word.rstrip("/") in ("run", "ranks") and not path.exists():
        place.run(f"mkdir {word}; for r in 0 1; do RANK=$r WORLD_SIZE=2 gpumemtrace run -q --sim h100-80g -o '{word}/%r.gmt' -- python train.py; done")
    elif word.endswith("/") and not path.exists():
        shutil.copytree(example, path, ignore=shutil.ignore_patterns("*.py"))


def test_commands_in_sentences_run(place):
    done = {}
    for page, text in sentences():
        words = [WORDS.get(word, word) for word in shlex.split(text)]
        for word in words[2:words.index("-o") if "-o" in words else None]:
            input_of(place, word)
        said = subprocess.run(words, cwd=place.folder, env=place.env, capture_output=True, text=True, timeout=600)
        assert said.returncode in (0, 1), (page, text, said.stderr)
        done[words[1]] = done.get(words[1], "") + said.stdout
    assert {"report", "oom", "diff", "export", "why", "check", "replay", "advise", "leaks", "html"} <= set(done) and all(done[c] for c in ("report", "oom", "why"))


def begin_attach(place):
    return {"4711": place.start(TRAINS, "libsimgpu.so"), "4712": place.start(SLEEPS), "--record 10": "--record 1"}


def begin_ctl(place):
    return {"4242": place.start(TAKES, "libgpumemtrace.so")}


def nothing(place):
    return {}


def begin_collect(place):
    if not TOOLS.exists():
        pytest.skip("no .venv-tools: scripts/setup.sh tools")
    return {}


def begin_lake(place):
    begin_collect(place)
    place.run("gpumemtrace collect old.gmt new.gmt -o lake/")
    return {}


def begin_open(place):
    """A browser that ends at once; the page's folder has another name each time."""
    input_of(place, "run.gmt")
    return {"gpumemtrace open run.gmt": "BROWSER=true gpumemtrace open run.gmt | sed 's|/.*/run.html|/tmp/gpumemtrace-open-2t03fz/run.html|'"}


# A page that shows output by hand, what has to run meanwhile, and words of the page that are others here.
HAND = {"docs/man/gpumemtrace-attach.1.md": begin_attach, "docs/man/gpumemtrace-bisect.1.md": nothing,
        "docs/man/gpumemtrace-collect.1.md": begin_collect, "docs/man/gpumemtrace-ctl.1.md": begin_ctl, "docs/man/gpumemtrace-open.1.md": begin_open,
        "docs/man/gpumemtrace-compact.1.md": begin_lake, "docs/man/gpumemtrace-regressions.1.md": begin_lake,
        "docs/man/gpumemtrace-dashboard.1.md": begin_lake, "docs/man/gpumemtrace-run.1.md": nothing, "docs/man/gpumemtrace-sql.1.md": begin_lake,
        "docs/advise.md": nothing, "docs/diff.md": nothing, "docs/replay.md": nothing}
COMPARED = {"README.md": "test_readme.py", "examples/ray/README.md": "test_examples.py", "examples/torchrun/README.md": "test_examples.py"}
NOT_COMPARED = {"docs/fit.md", "docs/make-it-fit.md", "docs/man/gpumemtrace-fit.1.md", "docs/questions/sleep.md"}  # minutes and vLLM: its account is compared in tests/engines


def shows_output(page):
    return any(lines for language in ("", "console") for block in shown.blocks(page, language) for _, lines in shown.parts(block))


def test_no_page_shows_output_that_no_run_proves():
    assert {page for page in PAGES if shows_output(page)} == {*HAND, *COMPARED, *NOT_COMPARED}


@pytest.mark.parametrize("page", HAND)
def test_output_is_what_is_printed(place, page):
    words = HAND[page](place)
    for command, lines in (part for block in shown.blocks(page) for part in shown.parts(block) if part[1]):
        for word, here in words.items():
            command = command.replace(word, here)
        wrong = shown.difference(lines, place.run(command, code=None))
        assert not wrong, (command, wrong)


def test_a_difference_is_found():
    said = "a 1.5 GiB\nb\nc 3\n"
    assert shown.difference(["a 20 MiB", "b", "c 4", ""], said) is None
    assert shown.difference(["a 2 MiB", "...", "c 4"], said) is None and shown.difference(["...", "c 1", "..."], said) is None
    for lines in (["a 1.5 GiB", "b"], ["a 1.5 GiB", "c 3"], ["b", "c 3"], ["a 1.5 GiB", "...", "d"], ["a 1.5 GiB", "b", "c 3", "d"]):
        assert shown.difference(lines, said)
    assert shown.difference(["run/0.gmt (3) in 1.5 s"], "run/1.gmt (4) in 2.5 s", shown.without_time)
    assert not shown.difference(["run/1.gmt (3) in 1.5 s"], "run/1.gmt (4) in 2.5 s", shown.without_time)

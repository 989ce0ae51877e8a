# SPDX-License-Identifier: Apache-2.0
"""What commands write: nothing half done stays behind a signal, a full disk is said, nobody's file is lost."""
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import until
from test_cli import COMMANDS, ROOT, TOOL, run

OLD = os.path.join(ROOT, "tests/data/example/old.gmt")


@pytest.fixture(scope="session")
def long_recording(tmp_path_factory):
    """Long enough to be interrupted in the middle: a step a thousand times over."""
    subprocess.run(["make", "-s", "build/data/make_long"], cwd=ROOT, check=True)
    rows = json.loads(subprocess.run([TOOL, "steps", "--json", OLD], capture_output=True, check=True, text=True).stdout)["rows"]
    step = next(r for r in rows if r["step"] == 5 and r["phase"] == "step")
    file = tmp_path_factory.mktemp("long") / "long.gmt"
    subprocess.run([os.path.join(ROOT, "build/data/make_long"), OLD, file, str(step["begin_ns"]), str(step["end_ns"]), "1000"], check=True)
    return file


@pytest.fixture(scope="session")
def long_snapshot(long_recording):
    file = long_recording.with_suffix(".pickle")
    subprocess.run([TOOL, "export", long_recording, "--to", "torch", "-o", file], check=True, capture_output=True)
    return file


WRITERS = {
    "import": ["import", "SNAPSHOT", "-o", "x.gmt"],
    "html": ["html", "LONG", "-o", "x.html"], "diff": ["diff", "LONG", "LONG", "-o", "x.html"],
    "csv": ["export", "LONG", "--to", "csv", "-o", "x.csv"], "torch": ["export", "LONG", "--to", "torch", "-o", "x.pickle"],
    "recover": ["recover", "LONG", "-o", "x.gmt"], "curve": ["replay", "LONG", "--curve", "x.csv"],
    "junit": ["check", "LONG", "--max-peak", "1GiB", "--junit", "x.xml"], "collect": ["collect", "LONG", "-o", "lake", "--tables", "allocations"],
    "ranks": ["export", "folder", "--to", "csv", "-o", "out/"], "sql": ["sql", "select count(*) from allocations", "LONG"]}


def unfinished(folder):
    """Whatever is there but recordings, whole outputs, and the lake's lock."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*")
                  if p.is_file() and (".new" in p.parts and p.name != "lock" or p.suffix == ".part" or "tmp" in p.relative_to(folder).parts))


# A command waits where it gives its output, all written, its name: once, before the file named in HOLD is there.
HOLD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
static void hold(void)
{
	int fd = getenv("HOLD") ? open(getenv("HOLD"), O_CREAT | O_EXCL | O_WRONLY, 0600) : -1;
	if (fd >= 0) { close(fd); pause(); }
}
#define HELD(name, given, ...) int name(__VA_ARGS__) { hold(); return ((int (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)) given; }
HELD(rename, (a, b), const char *a, const char *b)
HELD(renameat, (i, a, j, b), int i, const char *a, int j, const char *b)
HELD(renameat2, (i, a, j, b, f), int i, const char *a, int j, const char *b, unsigned f)
"""


@pytest.fixture(scope="module")
def hold(tmp_path_factory):
    source = tmp_path_factory.mktemp("hold") / "hold.c"
    source.write_text(HOLD)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", source.with_suffix(".so"), source, "-ldl"], check=True)
    return source.with_suffix(".so")


def interrupt(folder, words, ending, hold=None):
    """False: it was too fast. hold: it waits for the signal behind its last byte."""
    (folder / "held").unlink(missing_ok=True)
    more = {"LD_PRELOAD": str(hold), "HOLD": str(folder / "held")} if hold else {}
    command = subprocess.Popen([TOOL, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
                               env={**os.environ, "TMPDIR": str(folder / "tmp"), **more})
    while not ((folder / "held").exists() if hold else unfinished(folder)) and command.poll() is None:
        pass
    if command.poll() is not None:
        assert command.returncode in (0, 1), command.stderr.read()
        return False
    if ending == signal.SIGTERM:
        command.send_signal(ending)  # to it alone
    else:
        os.killpg(command.pid, ending)  # as a terminal does
    return command.wait(60) == -ending


# SIGHUP comes as SIGINT does, to all processes of the terminal: two of the commands are asked in `make test`.
@pytest.mark.parametrize("writer, ending", [pytest.param(w, s, marks=pytest.mark.more if s == signal.SIGHUP and w not in ("html", "collect") else ())
                                            for w in WRITERS for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)])
def test_a_signal_leaves_nothing_behind(tmp_path, long_recording, long_snapshot, hold, writer, ending):
    (tmp_path / "folder").mkdir()
    (tmp_path / "tmp").mkdir()
    for name in "a", "b":
        os.link(long_recording, tmp_path / "folder" / (name + ".gmt"))
    words = [str({"LONG": long_recording, "SNAPSHOT": long_snapshot}.get(w, w)) for w in WRITERS[writer]]
    if writer in ("collect", "sql", "ranks"):  # their Python is started without what is preloaded, and works for long enough
        assert any(interrupt(tmp_path, words, ending) for _ in range(20))
    else:
        interrupt(tmp_path, words, ending)  # somewhere, if it is in time
        assert interrupt(tmp_path, words, ending, hold)
    until(lambda: not unfinished(tmp_path))  # workers that it started end behind it
    assert not list((tmp_path / "tmp").iterdir())


def test_programs_begin_with_default_signals():
    """Also if those who started the tests ignore some (nohup make test &): every test would judge programs that ignore them."""
    said = subprocess.run(["grep", "SigIgn", "/proc/self/status"], capture_output=True, text=True, check=True).stdout
    of_libc = 1 << 31 | 1 << 32  # numbers 32 and 33, which no program can handle
    assert int(said.split()[1], 16) & ~of_libc == 0
    if os.environ.get("GPUMEMTRACE_TEST_IGNORING"):
        return
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.path.join(ROOT, "tests/pytest.ini"), f"{__file__}::test_programs_begin_with_default_signals"]
    done = subprocess.run(["sh", "-c", "trap '' HUP INT QUIT TERM USR1; exec \"$@\"", "sh", *command], capture_output=True, text=True,
                          env={**os.environ, "GPUMEMTRACE_TEST_IGNORING": "1"}, timeout=300)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout


TEXTS = [["help"], ["--help"], ["-h"], ["--version"], ["--completions", "bash"], ["--completions", "zsh"], ["sql", "--schema"],
         *(["help", c] for c in COMMANDS), *([c, "--help"] for c in COMMANDS)]
ANSWERS = [[c, OLD] for c in ("report", "peak", "timeline", "live", "steps", "modules", "account", "leaks", "replay", "advise", "flame", "info", "dump", "verify")]


def test_a_full_device_is_no_success():
    """Help and every answer, as text and as JSON; also where nothing can be written at all."""
    for words in [*TEXTS, *ANSWERS, *([*words, "--json"] for words in ANSWERS)]:
        assert run(*words).returncode == 0, words
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=600)
        assert done.returncode == 3 and done.stderr.endswith(": the output cannot be written\n") and done.stderr.count("\n") == 1, (words, done)
    for words in TEXTS[:7]:
        done = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', TOOL, *words], stderr=subprocess.PIPE, text=True, timeout=600)
        assert done.returncode == 3 and done.stderr.count("\n") == 1, (words, done)


KILLED = os.path.join(ROOT, "tests/data/v4/killed.gmt")


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


@pytest.mark.parametrize("source, target", [
    ("run.gmt", "run.gmt.live"), ("run.gmt", "run.gmt"), ("run.gmt.live", "run.gmt"), ("run.gmt.live", "run.gmt.live"), ("run.gmt", "./run.gmt.live"),
    ("run.gmt", "hard.gmt"), ("run.gmt", "other.gmt.live"), ("alone.gmt", "alone.gmt.live"), ("alone.gmt.live", "alone.gmt")])
def test_a_copy_is_not_written_over_its_source(tmp_path, source, target):
    """Nor over the live file beside it, or to a name that would be taken for one."""
    for end in "", ".live":
        shutil.copy(KILLED + end, tmp_path / ("run.gmt" + end))
        shutil.copy(KILLED + end, tmp_path / ("other.gmt" + end))
    os.link(tmp_path / "run.gmt", tmp_path / "hard.gmt")
    shutil.copy(KILLED + (".live" if "live" in source else ""), tmp_path / source.replace("run", "alone"))
    before = contents(tmp_path)
    done = run("recover", source, "-o", target, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and done.stderr.startswith("gpumemtrace recover: "), done
    assert contents(tmp_path) == before
    for words in (["import", OLD], ["run", "--"]):
        if target.endswith(".live"):
            assert run(words[0], "-o", target, *(["--", "true"] if words[0] == "run" else words[1:]), cwd=tmp_path).returncode in (2, 3)
            assert contents(tmp_path) == before


def test_a_running_recording_is_not_written_over(programs):
    """A snapshot of it goes elsewhere; nothing goes to where its process writes."""
    script = programs.folder / "hold.py"
    script.write_text("import torch, sys\nkept = torch.ones(1 << 20, device='cuda')\nprint('ready', flush=True)\nsys.stdin.read()\n"
                      "more = torch.ones(1 << 20, device='cuda')\n")
    process = subprocess.Popen([os.sys.executable, str(script)], env=programs.environment(GPUMEMTRACE_OUTPUT="run.gmt"), cwd=programs.folder,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    (programs.folder / "link.gmt").symlink_to("run.gmt")
    shutil.copy(OLD, programs.folder / "old.gmt")
    for target in "run.gmt", "run.gmt.live", "./run.gmt", "link.gmt", str(programs.folder / "run.gmt.live"):
        for words in (["ctl", str(process.pid), "snapshot", target], ["ctl", "run.gmt", "snapshot", target], ["recover", "run.gmt", "-o", target],
                      ["recover", "run.gmt.live", "-o", target], ["recover", "old.gmt", "-o", target], ["export", "run.gmt", "--to", "csv", "-o", target]):
            done = run(*words, cwd=programs.folder)
            assert done.returncode == 2 and done.stderr.count("\n") == 1, (words, done)
    assert run("ctl", str(process.pid), "snapshot", "copy.gmt", cwd=programs.folder).returncode == 0
    process.communicate("", timeout=600)
    assert process.returncode == 0
    report = json.loads(run("report", "run.gmt", "--json", cwd=programs.folder).stdout)
    assert report["allocs"] == 2 and not report["truncated"] and not report["dropped"]

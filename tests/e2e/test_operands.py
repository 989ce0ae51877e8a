# SPDX-License-Identifier: Apache-2.0
"""What a command is given in place of a recording: pipes, devices, files that grow, names that look like options."""
import os
import shutil
import socket
import subprocess
import threading

import gpumemtrace
import pytest
from test_cli import GOLDEN, READERS, ROOT, TOOL, make, ok, run  # noqa: F401

OLD = os.path.join(ROOT, "tests/data/example/old.gmt")
# what follows the file that is read, and what stands before it
BEHIND = {"why": ["0x1"], "stack": ["1"], "check": ["--max-peak", "1GiB"], "html": ["-o", "x.html"], "export": ["--to", "csv", "-o", "x.csv"],
          "import": ["-o", "y.gmt"], "collect": ["-o", "lake"], "recover": ["-o", "y.gmt"], "diff": [OLD]}
INPUTS = [[c, "FILE", *BEHIND.get(c, [])] for c in READERS if c not in ("dashboard", "compact", "regressions")] + [
    ["diff", OLD, "FILE"], ["check", OLD, "--baseline", "FILE"], ["sql", "select 1", "FILE"], ["sql", "select 1", OLD, "FILE"],
    ["html", OLD, "FILE", "-o", "x.html"], ["collect", OLD, "FILE", "-o", "lake"]]
OUTPUTS = [["html", OLD, "-o", "FILE"], ["diff", OLD, OLD, "-o", "FILE"], ["export", OLD, "--to", "csv", "-o", "FILE"],
           ["recover", OLD, "-o", "FILE"], ["import", OLD, "-o", "FILE"], ["collect", OLD, "-o", "FILE"], ["replay", OLD, "--curve", "FILE"],
           ["check", OLD, "--max-peak", "1GiB", "--junit", "FILE"], ["run", "--sim", "h100-80g", "-o", "FILE", "--", "true"]]


def pipe(path):
    os.mkfifo(path)


def named_pipe_of_a_snapshot(path):
    os.mkfifo(path.with_suffix(".pickle"))
    path.symlink_to(path.with_suffix(".pickle"))


def bound_socket(path):
    with socket.socket(socket.AF_UNIX) as s:
        here = os.getcwd()
        os.chdir(path.parent)
        s.bind(path.name)
        os.chdir(here)


KINDS = {"pipe": pipe, "link to a pipe": named_pipe_of_a_snapshot, "zeros without end": lambda p: p.symlink_to("/dev/zero"),
         "full device": lambda p: p.symlink_to("/dev/full"), "socket": bound_socket}


def told(folder, words, codes):
    done = subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=600, cwd=folder, stdin=subprocess.DEVNULL)
    assert done.returncode in codes, (words, done.stdout, done.stderr)
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("gpumemtrace"), (words, done.stderr)
    assert not [p.name for p in folder.iterdir() if p.name[0] in "xyl" and p.name != "lake"], words
    return done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_refused(tmp_path, kind):
    """Not waited for, not read without end: one sentence."""
    KINDS[kind](tmp_path / "f.gmt")
    for words in INPUTS:
        said = told(tmp_path, ["f.gmt" if w == "FILE" else w for w in words], (3,) if words[0] != "top" else (2, 3))
        assert kind == "socket" or words[0] == "top" or "f.gmt: a pipe or a device, not a file" in said, (words, said)
    for words in OUTPUTS:
        told(tmp_path, ["f.gmt" if w == "FILE" else w for w in words], (2, 3))
    if kind == "pipe":
        assert "0 B" not in told(tmp_path, ["ctl", "f.gmt", "stats"], (2, 3))


def test_names_that_end_are_said_by_every_command(make, tmp_path):  # noqa: F811
    """tests/unit/test_names_end.c has the recorder's part."""
    file = make("meta recorder.names_cut 5\nthread 1 1 main\nevent block_alloc time_ns=1 addr=4096 size=512 arg0=512 arg1=512 thread=1\n"
                "event end time_ns=2\n", "names.gmt")
    for words in INPUTS:
        if words[0] in ("import", "sql", "top", "collect") or words[:2] == ["html", OLD]:
            continue  # no recording, its answers come later, or no run of both
        done = subprocess.run([TOOL, *(file if w == "FILE" else w for w in words)], capture_output=True, text=True, timeout=600, cwd=tmp_path)
        assert "5 events of ranges and functions stand without their name" in done.stderr, (words, done.stderr)


@pytest.mark.parametrize("begins_as", [None, OLD], ids=["zeros", "recording"])
def test_a_file_of_holes(tmp_path, begins_as):
    """300 GB by its size alone: no command reads it through."""
    file = tmp_path / "f.gmt"
    for words in INPUTS:
        file.write_bytes(open(begins_as, "rb").read() if begins_as else b"")
        os.truncate(file, 300 << 30)
        done = subprocess.run([TOOL, *("f.gmt" if w == "FILE" else w for w in words)], capture_output=True, text=True, timeout=600, cwd=tmp_path,
                              stdin=subprocess.DEVNULL)
        codes = {"top": (2, 3), "sql": (0,) if OLD in words else (3,)}.get(words[0], (3,))  # a query leaves it out
        assert begins_as or done.returncode in codes, (words, done.stderr)
        assert begins_as or done.stderr.count("\n") == 1, (words, done.stderr)
        assert done.returncode in (0, 1, 2, 3), words


def test_a_folder_with_such_members(tmp_path):
    shutil.copy(OLD, tmp_path / "a.gmt")
    os.mkfifo(tmp_path / "a.gmt.live")
    os.mkfifo(tmp_path / "b.gmt")
    os.mkfifo(tmp_path / "c.pickle")
    (tmp_path / "d.gmt").symlink_to("/dev/zero")
    (tmp_path / "e.gmt.live").symlink_to("/dev/zero")
    (tmp_path / "f.pickle").symlink_to("/dev/zero")
    for words in (["report", "."], ["check", ".", "--max-peak", "1TiB"], ["diff", ".", "."], ["collect", ".", "-o", "lake"], ["html", ".", "-o", "x.html"]):
        done = subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=600, cwd=tmp_path)
        assert done.returncode == 0, (words, done.stderr)


@pytest.mark.parametrize("content", ["text", "recording"])
def test_a_file_that_grows(tmp_path, content):
    """As far as it went when the command began."""
    file, going = tmp_path / "f.gmt", True
    file.write_bytes(open(GOLDEN, "rb").read() if content == "recording" else b"nothing\n")

    def grow():
        with open(file, "ab") as f:
            while going and f.tell() < 1 << 30:
                f.write(b"noise " * 10000)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        for words in (["report", file], ["info", file], ["check", file, "--max-peak", "1TiB"], ["import", file, "-o", tmp_path / "x.gmt"]):
            run(*words)  # ends within its 60 s
    finally:
        going = False
        writer.join()


def test_a_library_of_the_recording_that_is_a_pipe_here(make, tmp_path):  # noqa: F811
    """Names of native functions are looked for in the files that the recording names."""
    os.mkfifo(tmp_path / "lib.so")
    recording = make(f"module 1 4096 8192 {tmp_path}/lib.so\nnode 1 0 1 4200\nthread 1 1 main\n"
                     "event block_alloc time_ns=1 addr=4096 size=512 arg0=512 arg1=512 stack=1 thread=1\nevent end time_ns=2\n", "library.gmt")
    for words in (["stack", recording, "1"], ["stack", recording, "--all"], ["flame", recording, "--frames", "native"]):
        assert run(*words).returncode == 0 and "lib.so" in ok("stack", recording, "1")


NAMES = ["-x.gmt", "--json", "a b.gmt", "it's.gmt", 'a"b.gmt', "a\nb.gmt", "$(reboot).gmt", "a;b&c.gmt", "\u202egmt.x", "-h\t'.gmt", "a\\b.gmt", "*.gmt", "é字.gmt",
         b"\xff\xfe.gmt"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_name_is_a_file(tmp_path, name):
    """Behind --, and as ./NAME; what the tool tells to type is a command that works when it is pasted."""
    shutil.copy(OLD, os.path.join(os.fsencode(tmp_path), os.fsencode(name)))
    word = os.fsdecode(name)

    def report(*words):
        return subprocess.run([TOOL, *words], cwd=tmp_path, capture_output=True, timeout=600)

    behind = report("report", "--", word)
    assert behind.returncode == 0, behind.stderr
    hints = [line[12:].decode() for line in behind.stdout[behind.stdout.index(b"Where next"):].splitlines() if b"gumemtrace" in line.replace(b"gpum", b"gum") and b"ADDRESS" not in line]
    assert len(hints) == 3 and hints[0].startswith("gpumemtrace html ") and all(h.isprintable() for h in hints)
    for shell in filter(shutil.which, ("bash", "zsh")):
        for hint in hints:
            pasted = subprocess.run([shell, "-c", f"gpumemtrace() {{ '{TOOL}' \"$@\"; }}\n{hint}"], cwd=tmp_path, capture_output=True, timeout=600)
            assert pasted.returncode == 0, (hint, pasted.stderr)
    if word[0] == "-":
        refused = report("report", word)
        assert refused.returncode == 2 and refused.stderr.count(b"\n") == 1
        assert name != "-x.gmt" or b"unknown option -x.gmt; the file of that name is ./-x.gmt" in refused.stderr
        assert report("report", "./" + word).returncode == 0


@pytest.mark.parametrize("name", ["-x.gmt", "--json", "-"])
def test_python_opens_any_name(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(OLD, name)
    shutil.copy(OLD, "other.gmt")
    r = gpumemtrace.open(name)
    assert r.peak == r.highest().bytes > 0 and r.check(max_peak="1TiB").ok and len(r.ranks) == 1
    assert not len(gpumemtrace.open("other.gmt").diff(name).findings) and r.allocations.__arrow_c_stream__() is not None

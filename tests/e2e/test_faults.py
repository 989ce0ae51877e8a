# SPDX-License-Identifier: Apache-2.0
"""Files that fail, vanish or are attacked while they are written: the program does not notice, what is there can be
read, and what is not there is said. `make reliability` runs the same with every write."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
import toy
from conftest import until
from test_programs import PROGRAM, cudart, logged, program, recorded, start, warned_once  # noqa: F401 (fixtures)

LONG = bool(os.environ.get("GPUMEMTRACE_TEST_LONG"))


@pytest.fixture(scope="session")
def faults(tmp_path_factory):
    out = tmp_path_factory.mktemp("faults") / "faults.so"
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-w", "-shared", "-fPIC", "-o", out, os.path.join(toy.ROOT, "tests/e2e/faults.c"), "-ldl"], check=True)
    return str(out)


def run(cudart, faults, folder, mode, fault, **env):
    """(the program's end, whether the fault happened)."""
    folder.mkdir()
    fired = folder / "fired"
    full = dict(os.environ, LOG=str(folder / "log"), TOY_CUDART=cudart, GPUMEMTRACE_OUTPUT=str(folder / "run.gmt"), GPUMEMTRACE_FLUSH_MS="10",
                FAULT=fault, FAULT_FIRED=str(fired), LD_PRELOAD=":".join([toy.SHIM, faults, cudart]), **env)
    done = subprocess.run([PROGRAM, mode], env=full, cwd=folder, capture_output=True, text=True, timeout=600)
    return done, fired.exists()


def kept_and_dropped(folder):
    events = toy.dump(folder / "run.gmt")
    lost = sum(e["arg0"] for e in events if e["kind"] == "dropped")
    return {(e["kind"][4:], int(str(e["addr"]), 0)) for e in events if e["kind"].startswith("mem_")}, lost


def check(folder, done):
    """The same end as alone; no event that was not; one line at most; damage is found by `verify`."""
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert done.stderr.count("\n") <= 1 and done.stderr[:13] in ("", "gpumemtrace: "), done.stderr
    [truth] = logged(folder).values()
    if not (folder / "run.gmt").exists() and not (folder / "run.gmt.live").exists():
        assert done.stderr
        return 0
    looked = subprocess.run([toy.TOOL, "verify", folder / "run.gmt"], capture_output=True, text=True)
    assert looked.returncode in (0, 1, 3) and looked.stdout + looked.stderr
    if looked.returncode == 3:  # not one event came so far
        assert done.stderr
        return 0
    kept, lost = kept_and_dropped(folder)
    assert not kept - {(what, address) for what, address, *_ in truth}
    if len(kept) < len(truth):
        assert lost or done.stderr or looked.returncode == 1
    return len(kept)


@pytest.mark.parametrize("kind,often", [("write", ""), ("write", "+"), ("room", ""), ("room", "+")])
def test_a_disk_that_is_full_at_every_call(cudart, faults, tmp_path, kind, often, record_property):
    """The Nth call fails, for every N that the program comes to (the first ones in `make test`)."""
    count = kept = 0
    for n in range(1, 200 if LONG else 6):
        folder = tmp_path / str(n)
        done, fired = run(cudart, faults, folder, "threads" if LONG else "visitors", f"{kind}:{n}{often}")
        if not fired:
            break
        count, kept = count + 1, kept + check(folder, done)
    assert count >= 3 and kept
    record_property("figure", f"{count} runs, {kept} events kept")


def test_files_that_cannot_be_mapped(cudart, faults, tmp_path):
    """A file system without shared mappings: a whole recording, and it is said what a kill would cost."""
    folder = tmp_path / "x"
    done, fired = run(cudart, faults, folder, "threads", "map:1+")
    assert fired and (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr.count("\n") == 1 and "maps no files" in done.stderr
    [truth] = logged(folder).values()
    assert sorted(recorded([folder / "run.gmt"])) == sorted(truth)
    assert not (folder / "run.gmt.live").exists()
    assert "cannot share mappings" in json.dumps(toy.facts(folder / "run.gmt"))


def meddle(cudart, folder, do):
    """Runs the program, and after its recording was begun does something to it."""
    env = dict(os.environ, LOG=str(folder / "log"), GPUMEMTRACE_OUTPUT=str(folder / "run.gmt"), GPUMEMTRACE_FLUSH_MS="10",
               LD_PRELOAD=toy.SHIM + ":" + cudart)
    running = subprocess.Popen([PROGRAM, "busy"], env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: (folder / "run.gmt").exists() and (folder / "run.gmt").stat().st_size > 1000)
    do()
    out, err = running.communicate(timeout=600)
    assert (running.returncode, out) == (0, "done\n")
    assert err.count("\n") <= 1
    return err


def both(folder):
    return folder / "run.gmt", folder / "run.gmt.live"


def test_removed_while_running(cudart, tmp_path):
    meddle(cudart, tmp_path, lambda: [p.unlink() for p in both(tmp_path)])
    assert not [p for p in both(tmp_path) if p.exists()]


def test_replaced_while_running(cudart, tmp_path):
    def replace():
        for p in both(tmp_path):
            other = tmp_path / (p.name + ".new")
            other.write_text("mine")
            os.rename(other, p)

    meddle(cudart, tmp_path, replace)
    assert [p.read_text() for p in both(tmp_path) if p.exists()] == ["mine"] * sum(p.exists() for p in both(tmp_path))
    assert (tmp_path / "run.gmt").read_text() == "mine"


def test_cut_short_while_running(cudart, tmp_path):
    """The recording is emptied by another: no signal, and the tool says what it found."""
    meddle(cudart, tmp_path, lambda: os.truncate(tmp_path / "run.gmt", 0))
    looked = subprocess.run([toy.TOOL, "verify", tmp_path / "run.gmt"], capture_output=True, text=True)
    assert looked.returncode in (0, 1, 3) and looked.stdout + looked.stderr


def test_place_removed_while_running(cudart, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    meddle(cudart, place, lambda: [subprocess.run(["rm", "-rf", place], check=True)])
    assert not place.exists()


# ---- names that attack ----

def test_what_stands_at_the_name(cudart, tmp_path):
    """A FIFO, a folder, a link to a device, a link to nowhere, another user's file: none is opened, none is changed."""
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    victim.chmod(0o400)
    for i, make in enumerate([os.mkfifo, os.mkdir, lambda p: os.symlink("/dev/zero", p), lambda p: os.symlink(tmp_path / "none", p),
                              lambda p: os.link(victim, p), lambda p: os.symlink(victim, p)]):
        folder = tmp_path / str(i)
        folder.mkdir()
        make(folder / "run.gmt")
        make(folder / "run.gmt.live") if i not in (4,) else None
        before = os.lstat(folder / "run.gmt")
        done = start(cudart, folder, "plain", out="run.gmt")
        assert (done.returncode, done.stdout) == (0, "done\n")
        after = os.lstat(folder / "run.gmt")
        assert (before.st_mode, before.st_ino, before.st_size) == (after.st_mode, after.st_ino, after.st_size)
        [pid] = logged(folder)
        assert recorded([folder / f"run.{pid}.gmt"]) == logged(folder)[pid]
    assert victim.read_text() == "theirs" and not (tmp_path / "none").exists()


def test_links_on_the_way(cudart, tmp_path):
    """A folder may be a link (homes are); `..` goes where the system says."""
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "link")
    assert start(cudart, tmp_path, "plain", out="link/../real/./run.gmt").stdout == "done\n"
    assert (tmp_path / "real/run.gmt").exists()


@pytest.mark.parametrize("name", ["x" * 300 + ".gmt", "y/" * 2100 + "run.gmt", "%h" * 2000, "%p" * 1500, "a" * 5000])
def test_names_that_are_too_long(cudart, tmp_path, name):
    text = warned_once(start(cudart, tmp_path, "plain", out=name))
    assert len(text) < 6000
    assert not [p for p in tmp_path.rglob("*") if ".gmt" in p.name]


@pytest.mark.parametrize("name,made", [("%n%s%x.gmt", None), ("100%", "100%"), ("%", "%"), ("%%p.gmt", "%p.gmt"), ("a%q.gmt", None),
                                       ("new\nline.gmt", "new\nline.gmt"), ("\x1b[31m.gmt", "\x1b[31m.gmt")])
def test_percent_signs_and_odd_bytes(cudart, tmp_path, name, made):
    """An unknown sign is a character like others: nothing is formatted by a name."""
    done = start(cudart, tmp_path, "plain", out=name)
    assert (done.returncode, done.stdout) == (0, "done\n")
    [path] = [p for p in tmp_path.iterdir() if p.name not in ("log",) and not p.name.endswith(".live")]
    assert path.name == (made or name)


@pytest.fixture
def elsewhere(cudart):
    """A folder that everybody may reach, with the program and its libraries."""
    folder = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o777)
    for path in (PROGRAM, toy.SHIM, cudart):
        shutil.copy(path, folder)
    yield folder
    shutil.rmtree(folder)


def test_a_place_that_may_not_be_written(elsewhere):
    """As a user who is not root: a folder that is shut, and other users' files at the names."""
    def run_as_another(out):
        libs = [str(elsewhere / os.path.basename(p)) for p in (toy.SHIM, "libcudart.so.12")]
        env = dict(LOG=str(elsewhere / "log"), GPUMEMTRACE_OUTPUT=str(elsewhere / out), LD_PRELOAD=":".join(libs))
        return subprocess.run([elsewhere / "lifecycle", "plain"], env=env, cwd=elsewhere, capture_output=True, text=True, timeout=600,
                              **({"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}))

    (elsewhere / "shut").mkdir(mode=0o500)
    assert "Permission denied" in warned_once(run_as_another("shut/run.gmt"))
    for name in ("run.gmt", "run.gmt.live"):
        (elsewhere / name).write_text("theirs")
        (elsewhere / name).chmod(0o600)
    done = run_as_another("run.gmt")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert [(elsewhere / n).read_text() for n in ("run.gmt", "run.gmt.live")] == ["theirs"] * 2
    [path] = elsewhere.glob("run.*.gmt")
    assert len(recorded([path])) == 3

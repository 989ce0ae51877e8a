# SPDX-License-Identifier: Apache-2.0
"""Programs that a recorder could break: each ends as it does alone, and what is recorded plus what is counted as dropped is
what the program made. `.venv/bin/python tests/e2e/test_hosts.py` writes the table of docs/reliability.md."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import pytest
import toy
from conftest import until, with_more

PROGRAM = os.path.join(toy.ROOT, "build/programs/hosts")
PAGE = pathlib.Path(toy.ROOT, "docs/reliability.md")
LONG = bool(os.environ.get("GPUMEMTRACE_TEST_LONG"))
SLOW_DISK = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int openat(int dir, const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    int mode = va_arg(list, int), n = strlen(path);
    if (flags & O_CREAT && n > 4 && !strcmp(path + n - 4, ".gmt")) {
        const char *until = getenv("UNTIL");
        for (int i = 0; i < (until ? 9000 : 200) && (!until || access(until, F_OK)); i++)
            usleep(10000);
        if (until)
            close(creat(until, 0600));
    }
    return ((int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat"))(dir, path, flags, mode);
}
"""

# host: what it does; settings: of its environment; loss: it may be that events are counted as dropped; extra: calls that a jump left
# count for the program as not made; begins: False = nothing can be recorded
HOSTS = [
    ("stderr_gone", "stderr is a pipe without a reader", dict(out="none/run.gmt", begins=False)),
    ("stderr_full", "stderr is a full pipe", dict(out="none/run.gmt", begins=False)),
    ("stderr_socket", "stderr is a full socket", dict(out="none/run.gmt", begins=False)),
    ("stderr_limited", "stderr is a file at its limit (`RLIMIT_FSIZE`)", dict(begins=False)),
    ("daemon", "closes all, its own files get the numbers, 2 among them", dict()),
    ("daemon_forks", "the same, and a child writes to them", dict()),
    ("low_numbers", "0, 1 and 2 closed from the start", dict(low=True)),
    ("cancel_first", "a cancelled thread makes the first call, with a lock held", dict()),
    ("cancel_later", "the same, of a later call", dict()),
    ("cancel_rings", "the same, of 20,000 calls", dict()),
    ("short_threads", "4,000 threads of one call each", dict()),
    ("slow_start", "the recording is created after 2,000 threads have ended", dict(slow=True, settings=dict(COUNT="2000", UNTIL="goes_on"))),
    ("jumps", "a handler leaves by siglongjmp, 100 times", dict(loss=True, extra=200)),
    ("jumps_deeper", "the same, and deeper calls behind it", dict(loss=True, extra=200)),
    ("jumps_in_start", "the same, from the first call on", dict(loss=True, extra=200)),
    ("jumps_off_stack", "the same, from a stack of 8 KiB for handlers", dict(loss=True, extra=200)),
    ("handlers", "a handler allocates 500 times within other calls", dict(loss=True)),
    ("handlers_small", "the same on a stack of 8 KiB, the first call too", dict(loss=True)),
    ("profiler", "a signal every millisecond", dict()),
    *[("seccomp", f"a filter of system calls {when}, {who}: {what}", dict(settings=dict(HOW=how), begins="b" in how))
      for how, when, who, what in [("bk", "after the first call", "one thread", "kills"), ("bka", "after the first call", "all threads", "kills"),
                                   ("b", "after the first call", "one thread", "fails"), ("ba", "after the first call", "all threads", "fails"),
                                   ("k", "before it", "one thread", "kills"), ("ka", "before it", "all threads", "kills"),
                                   ("x", "before it", "one thread", "fails"), ("xa", "before it", "all threads", "fails")]],
    *[("no_counter", f"cannot read the processor's counter (`PR_SET_TSC`) {when}, {who}", dict(settings=dict(HOW=how)))
      for how, when, who in [("b", "after the first calls", "its only thread"), ("bt", "after the first calls", "another thread"),
                             ("x", "before them", "its only thread"), ("t", "before them", "another thread")]],
    *[("strict", f"strict seccomp {when}", dict(settings=dict(HOW=how), begins="b" in how))
      for how, when in [("b", "after the first calls"), ("x", "before them")]],
    ("main_ends", "the main thread ends before the process (`pthread_exit`)", dict()),
    ("address_space", "`RLIMIT_AS` after the first call, 200 MB above what there was", dict()),
    ("title", "writes over its environment (setproctitle)", dict(out="%p.run.gmt")),
]


def made(folder):
    return int.from_bytes((folder / "made").read_bytes()[:8], "little")


def counted(path):
    """(recorded calls, events that are said to be lost)."""
    info = json.loads(toy.tool("info", path, "--json"))
    return sum(k["count"] for k in info["kinds"] if k["kind"] in ("mem_alloc", "mem_free")), info["dropped"]


def balance(folder):
    found = [counted(p) for p in folder.rglob("*.gmt")]
    return sum(r for r, _ in found), sum(d for _, d in found)


def environment(libraries, folder, out, traced, **settings):
    return dict(os.environ, MADE=str(folder / "made"), GPUMEMTRACE_OUTPUT=str(folder / out),
                LD_PRELOAD=":".join([toy.SHIM] * traced + libraries), **settings)


def close_low():
    for fd in (0, 1, 2):
        os.close(fd)


class Machine:
    """The toy runtime, and a disk that is slow."""

    def __init__(self, folder):
        self.runtime = toy.build_cudart(folder)
        self.slow = str(folder / "slow.so")
        subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-o", self.slow, "-x", "c", "-", "-ldl"], input=SLOW_DISK, text=True, check=True)
        subprocess.run(["make", "-s", "build/programs/hosts"], cwd=toy.ROOT, check=True)

    def run(self, folder, name, traced, out="run.gmt", settings={}, slow=False, low=False, **_):
        """(how it ended, what it wrote) of the program."""
        folder.mkdir(parents=True)
        env = environment([self.slow] * slow + [self.runtime], folder, out, traced, **settings)
        done = subprocess.run([PROGRAM, name], env=env, cwd=folder, capture_output=not low, text=True, timeout=600,
                              preexec_fn=close_low if low else None)
        files = {p.name: p.read_bytes() for p in folder.glob("*.db")} | {p.name: p.read_bytes() for p in folder.glob("*.txt")}
        return (done.returncode, done.stdout, files), done.stderr or ""


@pytest.fixture(scope="session")
def machine(tmp_path_factory):
    return Machine(tmp_path_factory.mktemp("machine"))


def both(machine, folder, name, how):
    """The program alone and recorded: (its ends, made, recorded, dropped)."""
    alone, _ = machine.run(folder / "alone", name, False, **how)
    ours, said = machine.run(folder / "ours", name, True, **how)
    assert said.count("\n") <= 1, said
    recorded, dropped = balance(folder / "ours")
    return alone, ours, made(folder / "ours"), recorded, dropped


def check_balance(how, made, recorded, dropped):
    if not how.get("begins", True):
        assert recorded == dropped == 0
        return
    assert made and recorded
    assert made <= recorded + dropped <= made + how.get("extra", 0), (made, recorded, dropped)
    assert how.get("loss") or not dropped


@pytest.mark.parametrize("name,what,how", HOSTS, ids=[f"{n}-{h.get('settings', {}).get('HOW', '')}".strip("-") for n, _, h in HOSTS])
def test_a_host_ends_as_alone(machine, tmp_path, name, what, how):
    alone, ours, *figures = both(machine, tmp_path, name, how)
    assert alone == ours and alone[0] == 0
    check_balance(how, *figures)


# ---- files that are meddled with while the program runs ----

def started(machine, folder, name, out="run.gmt", **settings):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / out).parent.mkdir(exist_ok=True)
    running = subprocess.Popen([PROGRAM, name], env=environment([machine.runtime], folder, out, True, **settings), cwd=folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until((folder / out).exists)
    time.sleep(0.2)
    return running


def ended(running):
    out, err = running.communicate(timeout=600)
    assert (running.returncode, out) == (0, "done\n") and err.count("\n") <= 1, (running.returncode, err)
    return err


def longer(path):
    size = path.stat().st_size
    os.truncate(path, 0)
    os.truncate(path, size)


@pytest.mark.parametrize("do", [lambda p: os.truncate(p, 0), lambda p: os.truncate(p, 4096), lambda p: os.truncate(p, 100000), longer],
                         ids=["emptied", "headers", "half", "emptied-and-longer"])
def test_a_live_file_that_is_cut(machine, tmp_path, do):
    """SIGBUS never reaches the program; what was in the pages is counted."""
    running = started(machine, tmp_path, "plain", COUNT="60")
    do(tmp_path / "run.gmt.live")
    ended(running)
    recorded, dropped = balance(tmp_path)
    assert recorded + dropped == made(tmp_path) == 600 and recorded


def test_a_program_has_its_own_handler_of_sigbus(machine, tmp_path):
    """Its own faults are its own, before and after ours."""
    source = tmp_path / "bus.c"
    source.write_text("""#include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <setjmp.h>
        #include <sys/mman.h>
        #include <unistd.h>
        int cudaMalloc(void **, unsigned long);
        static sigjmp_buf back; static int caught;
        static void h(int s) { caught++; siglongjmp(back, 1); }
        int main(int c, char **v) { void *p; struct sigaction old;
            char name[] = "/tmp/gmt-bus-XXXXXX"; int fd = mkstemp(name); unlink(name); ftruncate(fd, 4096);
            char *m = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); ftruncate(fd, 0);
            if (!strcmp(v[1], "before")) signal(SIGBUS, h);
            cudaMalloc(&p, 1);
            if (!strcmp(v[1], "after")) signal(SIGBUS, h);
            sigaction(SIGBUS, 0, &old);
            printf("%d\\n", old.sa_handler == h); fflush(stdout);
            if (!sigsetjmp(back, 1)) m[0] = 1;
            printf("caught %d\\n", caught); return 0; }""")
    subprocess.run(["gcc", "-w", "-o", tmp_path / "bus", source, machine.runtime], check=True)
    for how in ("before", "after", "never"):
        ends = [subprocess.run([tmp_path / "bus", how], env=environment([machine.runtime], tmp_path, f"{how}.gmt", traced), capture_output=True,
                               text=True, timeout=600) for traced in (False, True)]
        assert (ends[0].returncode, ends[0].stdout) == (ends[1].returncode, ends[1].stdout), how
        assert ends[0].returncode == (-signal.SIGBUS if how == "never" else 0)


def rename_folder(folder):
    os.rename(folder / "out", folder / "old")


def rename_file(folder):
    os.rename(folder / "out/run.gmt", folder / "out/other.gmt")


def move_file(folder):
    (folder / "else").mkdir()
    os.rename(folder / "out/run.gmt", folder / "else/run.gmt")


def make_another(folder):
    rename_folder(folder)
    (folder / "out").mkdir()
    for name in ("run.gmt", "run.gmt.live", "run.gmt.part"):
        (folder / "out" / name).write_text("mine")


@pytest.mark.parametrize("do", [rename_folder, rename_file, move_file, make_another])
def test_a_bounded_recording_that_is_moved(machine, tmp_path, do):
    running = started(machine, tmp_path, "torrent", "out/run.gmt", COUNT="400000", PAUSE="1", GPUMEMTRACE_MAX_SIZE="4MiB")
    do(tmp_path)
    ended(running)
    if do is make_another:
        assert [p.read_text() for p in (tmp_path / "out").iterdir()] == ["mine"] * 3
    [path] = [p for p in tmp_path.rglob("*.gmt*") if p.read_bytes()[:4] != b"mine"]
    info = json.loads(toy.tool("info", path, "--json"))
    recorded, dropped = counted(path)
    left_out = int(toy.facts(path).get("thinned.events", 0))
    assert left_out and made(tmp_path) == recorded + dropped + left_out, info
    verified = subprocess.run([toy.TOOL, "verify", path], capture_output=True, text=True)
    assert verified.returncode == bool(dropped) and (": good" in verified.stdout) == (not dropped)


def starve(pid):
    """The recorder's thread gets next to no processor while the program runs."""
    cpu = {min(os.sched_getaffinity(pid))}
    for tid in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(tid), cpu)
        if pathlib.Path(f"/proc/{pid}/task/{tid}/comm").read_text().strip() == "gpumemtrace":
            os.sched_setscheduler(int(tid), os.SCHED_IDLE, os.sched_param(0))


def test_a_bounded_recording_whose_drain_starves(machine, tmp_path):
    """More waits than the file has room for: it is thinned on the way, and nothing is lost."""
    running = started(machine, tmp_path, "torrent", COUNT="700000", GPUMEMTRACE_MAX_SIZE="4MiB")
    starve(running.pid)
    assert not ended(running)
    path = tmp_path / "run.gmt"
    recorded, dropped = counted(path)
    left_out = int(toy.facts(path).get("thinned.events", 0))  # none where starved threads made few large blocks, which pack better
    assert not dropped and recorded + left_out == made(tmp_path) > 1000000
    assert path.stat().st_size < 4 << 20


def test_a_run_leaves_what_another_of_its_name_writes(machine, tmp_path):
    first = started(machine, tmp_path, "plain", "out/run.gmt", COUNT="60")
    rename_folder(tmp_path)
    second = started(machine, tmp_path, "plain", "out/run.gmt", COUNT="150", GPUMEMTRACE_FLUSH_MS="60000")
    ended(first)
    second.kill()
    second.wait()
    assert (tmp_path / "out/run.gmt.live").exists() and not (tmp_path / "old/run.gmt.live").exists()
    assert counted(tmp_path / "out/run.gmt")[0]


def check_peak(folder, path, exact):
    """Every command has one figure, and never more than there was."""
    devices = json.loads(toy.tool("report", path, "--json"))["devices"]
    if not devices:  # killed before the first event was written
        refused = subprocess.run([toy.TOOL, "live", path], capture_output=True, text=True)
        assert not exact and refused.returncode == 2 and "no use of device memory was recorded" in refused.stderr
        return
    report = devices[0]["peak_bytes"]
    live = json.loads(toy.tool("live", path, "--at", "peak", "--json"))
    assert report == live["bytes"] == sum(b["size"] for b in live["blocks"])
    checked = subprocess.run([toy.TOOL, "check", path, "--max-peak", str(report)], capture_output=True, text=True)
    assert checked.returncode == (not exact)
    assert not exact or report <= int.from_bytes((folder / "made").read_bytes()[8:16], "little")


@pytest.mark.parametrize("bound", with_more(["", "4MiB"], {"4MiB"}))
def test_kills_of_a_torrent(machine, tmp_path, bound, record_property):
    """A million events a second: nothing is missing."""
    for i in range(60 if LONG else 4):
        folder = tmp_path / str(i)
        running = started(machine, folder, "torrent", **(dict(GPUMEMTRACE_MAX_SIZE=bound) if bound else {}))
        time.sleep(0.1 + 0.37 * i % 1.4)
        running.kill()
        running.wait()
        path = folder / "run.gmt"
        recorded, dropped = counted(path)
        left_out = int(toy.facts(path).get("thinned.events", 0))
        # a thread may have been in a call, or between two
        assert abs(made(folder) - recorded - left_out) <= 2 and not dropped, (made(folder), recorded, dropped, left_out)
        check_peak(folder, path, True)
        for p in folder.iterdir():
            p.unlink()
    record_property("figure", f"{i + 1} kills")


@pytest.mark.parametrize("length", [10, 100], ids=["header", "payload"])
def test_a_kill_in_the_middle_of_a_write(machine, tmp_path, length):
    """What the cut block was to hold is in the live file: nothing is damaged. Without that file it is."""
    running = started(machine, tmp_path, "torrent", COUNT="4000000", PAUSE="1")
    running.kill()
    running.wait()
    path = tmp_path / "run.gmt"
    data = path.read_bytes()
    blocks = [m.start() for m in re.finditer(re.escape(b"GMB\xa7"), data)]
    [at] = [a for a, b in zip(blocks, blocks[1:]) if b - a > 300][:1]
    path.write_bytes(data + data[at:at + length])
    before, after = toy.tool("report", path, "--json"), subprocess.run([toy.TOOL, "verify", path], capture_output=True, text=True)
    assert after.returncode == 0 and "good" in after.stdout
    path.write_bytes(data)
    assert json.loads(toy.tool("report", path, "--json")) | {"file_bytes": 0} == json.loads(before) | {"file_bytes": 0}
    path.write_bytes(data + data[at:at + length])
    (tmp_path / "run.gmt.live").unlink()
    alone = subprocess.run([toy.TOOL, "verify", path], capture_output=True, text=True)
    assert alone.returncode == 1 and "damaged" in alone.stdout


def test_kills_after_a_slow_start(machine, tmp_path, record_property):
    """What was recorded before the files were there is in memory alone until it is written: the live file says how much."""
    lost = 0
    for i in range(30 if LONG else 3):
        folder = tmp_path / str(i)
        folder.mkdir()
        running = subprocess.Popen([PROGRAM, "torrent"], env=environment([machine.slow, machine.runtime], folder, "run.gmt", True), cwd=folder)
        while not (folder / "run.gmt").exists() or not (folder / "run.gmt").stat().st_size:
            time.sleep(0.001)
        time.sleep(0.02 * i)
        running.kill()
        running.wait()
        recorded, dropped = counted(folder / "run.gmt")
        # one block may have been written that the live file does not yet know of
        assert -2 <= recorded + dropped - made(folder) <= 4100
        check_peak(folder, folder / "run.gmt", not dropped)
        verified = subprocess.run([toy.TOOL, "verify", folder / "run.gmt"], capture_output=True, text=True)
        assert (": good" in verified.stdout) == (not dropped)
        lost += dropped
        for p in folder.iterdir():
            p.unlink()
    assert lost
    record_property("figure", f"{i + 1} kills")


@pytest.mark.parametrize("settings", [{"COUNT": "150000"}, {"COUNT": "400000", "PAUSE": "1"}], ids=["fast", "until_the_file_is_full"])
def test_no_room_for_another_ring(machine, tmp_path, settings):
    """What is lost is counted, all else can be read, and every claim of exactness is withdrawn."""
    done = subprocess.run(["bash", "-c", f"ulimit -f 700; exec {PROGRAM} torrent"], env=environment([machine.runtime], tmp_path, "run.gmt", True, **settings),
                          cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (0, "done\n")
    path = tmp_path / "run.gmt"
    recorded, dropped = counted(path)
    assert dropped and recorded + dropped == made(tmp_path)
    verified = subprocess.run([toy.TOOL, "verify", path], capture_output=True, text=True)
    assert verified.returncode == 1 and "good" not in verified.stdout
    full = path.stat().st_size == 700 << 10  # its last block is cut
    assert full or "damaged" not in verified.stdout
    checked = subprocess.run([toy.TOOL, "check", path, "--max-peak", "100GiB"], capture_output=True, text=True)
    assert checked.returncode == 1 and ("lost while recording" in checked.stdout or full and "damaged" in checked.stdout) and not checked.stdout.startswith("ok")


@pytest.mark.parametrize("size", ["700k", "1000k"])
def test_a_disk_with_room_for_one_ring(machine, tmp_path, size):
    """The ring that fits is used, and what it cannot keep costs no names."""
    for name, settings in [("plain", {"COUNT": "20"}), ("torrent", {"COUNT": "150000"})]:
        place = tmp_path / name
        place.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True).returncode:
            pytest.skip("mounting is not allowed here")
        try:
            done, said = machine.run(place / "x", name, True, out="run.gmt", settings=settings)
            recorded, dropped = counted(place / "x/run.gmt")
            assert done[0] == 0 and said.count("\n") <= (name == "torrent") and recorded and recorded + dropped == made(place / "x")
            assert bool(dropped) == (name == "torrent")
            assert "recorder.names_cut" not in toy.facts(place / "x/run.gmt")
        finally:
            subprocess.run(["umount", "-l", place], check=True)


def test_one_figure_of_a_bounded_run_without_a_framework(machine, tmp_path):
    ended(started(machine, tmp_path, "torrent", COUNT="400000", PAUSE="1", GPUMEMTRACE_MAX_SIZE="4MiB"))
    path = tmp_path / "run.gmt"
    assert int(toy.facts(path)["thinned.events"])
    peak = json.loads(toy.tool("report", path, "--json"))["devices"][0]["peak_bytes"]
    live = json.loads(toy.tool("live", path, "--at", "peak", "--json"))
    assert peak == live["bytes"] == sum(b["size"] for b in live["blocks"]) > 1 << 30
    assert subprocess.run([toy.TOOL, "check", path, "--max-peak", "1KiB"], capture_output=True).returncode == 1


@pytest.mark.parametrize("setting,words", [("STACKS=bogus", "not understood (taken as all)"), ("MAX_SIZE=bogus", "no size"),
                                           ("MAX_SIZE=1MiB", "below the least (taken as 4MiB)"), ("LEVEL=77", "no number from 0 to 9"),
                                           ("QUIET=perhaps", "not understood (taken as off)"), ("FLUSH_MS=1", "no number")])
def test_settings_that_mean_nothing(machine, tmp_path, setting, words):
    name, value = setting.split("=")
    _, said = machine.run(tmp_path / "x", "cancel_later", True, settings={"GPUMEMTRACE_" + name: value})
    assert said.count("\n") == 1 and words in said and setting in said
    refused = subprocess.run([toy.TOOL, "run", "-o", tmp_path / "y.gmt", "--", "true"], env=dict(os.environ, **{"GPUMEMTRACE_" + name: value}),
                             capture_output=True, text=True)
    assert refused.returncode == 2 and words in refused.stderr and refused.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["recover"])
def test_nothing_is_written_onto_a_live_file(machine, tmp_path, command):
    machine.run(tmp_path / "x", "cancel_later", True)
    done = subprocess.run([toy.TOOL, command, tmp_path / "x/run.gmt", "-o", tmp_path / "z.gmt.live"], capture_output=True, text=True)
    assert done.returncode == 2 and ".live" in done.stderr


# ---- the table ----

def words_of(end):
    code = end[0]
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def table(folder):
    machine = Machine(folder)
    yield "| host | alone | recorded | calls | in the recording | counted as dropped |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for i, (name, what, how) in enumerate(HOSTS):
        alone, ours, *figures = both(machine, folder / str(i), name, how)
        same = "the same" if alone == ours else words_of(ours)
        made, recorded, dropped = (f"{n:,}" for n in figures)
        if not how.get("begins", True):
            recorded = dropped = "nothing can be recorded"
        yield f"| {what} | {words_of(alone)} | {same} | {made} | {recorded} | {dropped} |"


def write_table():
    from test_hosts_torch import rows

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        lines = "\n".join([*table(folder), "", *rows(folder, words_of)])
    text = PAGE.read_text()
    PAGE.write_text(re.sub(r"(<!-- hosts -->\n).*?(<!-- end -->)", lambda m: m[1] + lines + "\n" + m[2], text, flags=re.S))


if __name__ == "__main__":
    sys.exit(write_table())

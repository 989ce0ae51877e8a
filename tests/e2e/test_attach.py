# SPDX-License-Identifier: Apache-2.0
"""attach: what a process holds that was started without us is what that process says itself; it runs on as before,
whatever it was doing."""
import ctypes
import glob
import json
import os
import re
import subprocess
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../classes"))
import attached  # noqa: E402
from conftest import ROOT, until, with_more  # noqa: E402


def asked(pid):
    """The folders in which `attach` waits for what a process writes."""
    return [f for place in ("/tmp", "/dev/shm", "/var/tmp", os.getcwd()) for f in glob.glob(f"/proc/{pid}/root{place}/gpumemtrace-attach-{pid}-*")]


class Target:
    """The workload attached.py, running."""

    def __init__(self, programs, before=(), **kw):
        self.folder = programs.folder
        self.process = subprocess.Popen([*before, sys.executable, programs.workload("attached.py")], env=programs.environment(**{"traced": False, **kw}),
                                        cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid

    def begin(self, word):
        print(word, file=self.process.stdin, flush=True)
        assert self.said() == {"begins": word}

    def said(self):
        return json.loads(self.process.stdout.readline())

    def end(self, word):
        said = self.said()
        assert said["ends"] == word and said["interval"] == pytest.approx(0.005)
        return said

    def go(self):
        (self.folder / "go").touch()

    def do(self, word):
        self.begin(word)
        return self.end(word)

    def close(self):
        self.process.stdin.close()
        return self.process.wait(60)


@pytest.fixture
def target(programs):
    started = []

    def start(**kw):
        started.append(Target(programs, **kw))
        return started[-1]

    yield start
    for t in started:
        t.process.kill()
        t.process.wait()
    assert not [f for t in started for f in glob.glob("/tmp/gpumemtrace-attach-%d-*" % t.pid)]


def refused(tool, *args, code=2):
    done = subprocess.run([tool.path, "attach", *map(str, args)], capture_output=True, text=True, timeout=600)
    assert done.returncode == code and done.stderr.count("\n") == 1 and not done.stdout, done
    return done.stderr


def blocks_by_class(tool, file):
    found = {}
    for b in tool.json("live", file, "--at", "end")["blocks"]:
        found.setdefault(b["category"], []).append(b["addr"])
    return {kind: sorted(addresses) for kind, addresses in found.items()}


def classes_agree(tool, file, truth):
    found = blocks_by_class(tool, file)
    assert {kind: found.get(kind) for kind in truth["held"]} == truth["held"]
    assert tool.json("live", file, "--at", "end")["bytes"] == truth["allocated"]


def test_what_it_holds_whatever_it_does(target, tool, tmp_path):
    t, file = target(), tmp_path / "a.gmt"
    t.begin("sleep")
    assert "has not used a CUDA device yet" in refused(tool, t.pid, "-o", file) and not file.exists()
    t.go()
    t.end("sleep")
    truth = t.do("train")
    for word in ("sleep", "spin", "asyncio", "thread", "frozen", "c"):
        t.begin(word)
        said = tool.json("attach", t.pid, "-o", file)
        assert said["pid"] == t.pid and said["history"] is False, word
        classes_agree(tool, file, truth)
        if word != "c":
            t.go()
        names = t.end(word)["names"]
    assert not [n for n in names if "attach" in n or n == "request"]
    t.begin("gil")
    start = time.monotonic()
    assert "left alone" in refused(tool, t.pid, "-o", file, "--wait", 1) and time.monotonic() - start < 50  # without that option it is 60 s
    waiting = subprocess.Popen([tool.path, "attach", str(t.pid), "-o", file], stderr=subprocess.PIPE, text=True)
    until(lambda: asked(t.pid))
    waiting.terminate()
    assert waiting.wait(60) == 2 and "left alone" in waiting.stderr.read()
    t.end("gil")
    t.begin("loader")
    worker = t.said()["worker"]
    assert "has not used a CUDA device yet" in refused(tool, worker, "-o", file)
    t.go()
    assert t.end("loader")["row"] == 0
    t.begin("sleep")
    text = tool("attach", t.pid, "-o", file)
    assert "attached.py" in text and re.search(r"optimizer state .* 12 ", text)
    gradient = truth["held"]["gradients"][0]
    assert "certain, rule held-gradient" in tool("why", file, gradient, "--at", "end")
    t.go()
    t.end("sleep")
    assert t.close() == 0


def test_its_results_are_those_of_a_run_alone(target, tool, tmp_path):
    alone = target().do("train")
    t, file = target(), tmp_path / "b.gmt"
    print("train", file=t.process.stdin, flush=True)
    time.sleep(1)
    looks = 0
    while not t.process.stdout.closed and looks < 3:
        done = subprocess.run([tool.path, "attach", str(t.pid), "-o", file, "--record", "0.2"], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0 or "not imported torch" in done.stderr or "not used a CUDA" in done.stderr, done.stderr
        looks += 1
    assert t.said() == {"begins": "train"}
    said = t.end("train")
    for key in ("losses", "peak", "allocated", "allocations"):
        assert said[key] == alone[key], key
    t.begin("training")
    document = tool.json("attach", t.pid, "-o", file, "--record", 1)
    assert document["history"] is True
    report = tool.json("report", file)
    assert report["allocs"] > 100 and report["dropped"] == 0
    stacks = tool.stacks(file)
    frames = {f["function"] for b in tool.json("live", file, "--at", "peak")["blocks"] if b["stack"] for f in stacks[b["stack"]]}
    assert "Training.step" in frames or "step" in frames
    t.go()
    assert t.end("training")["history"] is False
    assert t.do("history")["history"] is True
    t.begin("training")
    assert tool.json("attach", t.pid, "-o", file, "--record", 0.2)["history"] is False
    assert tool.json("report", file)["allocs"] > 10
    t.go()
    assert t.end("training")["history"] is True
    assert t.close() == 0


@pytest.mark.slow
@pytest.mark.parametrize("case,rules", with_more([("bare_tensors", {"held-parameter", "held-gradient"}), ("kv_cache", {"held-parameter", "held-cache"})], {"kv_cache"}))
def test_cases_are_named_right_or_not_at_all(case, rules):
    """A loop without modules, and keys and values of a library's cache, looked at without a history."""
    said = attached.judge(case, 6)
    assert said["marks"] >= 7 and not [w for w in said["wrong"] if w["ours"] != "unknown"], said["wrong"]
    assert all(said["rules"][rule]["right"] > 50 << 20 and not said["rules"][rule]["wrong"] for rule in rules), said["rules"]


def test_a_python_without_a_lock_is_refused(tmp_path):
    """Such an interpreter is not here: one that says so of itself."""
    source = (ROOT / "viewer/recording/attach.py").read_text()
    program = "import sys; sys._is_gil_enabled = lambda: False; exec(open(0).read(), {'request': (sys.argv[1], 0, 1000)})"
    subprocess.run([sys.executable, "-c", program, tmp_path], input=source, text=True, check=True)
    assert "free-threaded" in (tmp_path / "refused").read_text() and [p.name for p in tmp_path.iterdir()] == ["refused"]


# The process has mounts and process numbers of its own, and another /tmp; only the folder that it runs in is there.
CONTAINER = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--propagation", "private", "sh", "-ec",
             'at=$PWD; mount --rbind / /mnt; mount -t tmpfs tmpfs /tmp; '
             f'for d in "$at" "{ROOT}"; do mkdir -p "$d"; mount --bind "/mnt$d" "$d"; done; umount -l /mnt; cd "$at"; '
             'exec "$@"', "sh"]


def only_child(pid):
    return int(until(lambda: open(f"/proc/{pid}/task/{pid}/children").read().split())[0])


def attach_process(tool, *args):
    return subprocess.Popen([tool.path, "attach", *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.skipif(subprocess.run([*CONTAINER, "true"], cwd=ROOT / "tests", capture_output=True).returncode != 0, reason="no right to make namespaces")
def test_in_a_container_twice_at_once_and_when_it_dies(target, tool, tmp_path):
    t = target(before=CONTAINER)
    truth = t.do("train")
    t.begin("spin")
    pid = only_child(t.pid)
    both = [attach_process(tool, pid, "-o", tmp_path / f"{i}.gmt", "--json") for i in range(2)]
    for i, process in enumerate(both):
        assert process.communicate(timeout=600)[1] == "" and process.returncode == 0
        classes_agree(tool, tmp_path / f"{i}.gmt", truth)
    root = f"/proc/{pid}/root/tmp"
    assert not [name for name in os.listdir(root) if "attach" in name]
    t.go()
    t.end("spin")
    assert t.close() == 0
    gone = subprocess.Popen(["true"])  # it ends, and nobody asks how
    os.waitid(os.P_PID, gone.pid, os.WEXITED | os.WNOWAIT)
    assert "it has ended" in refused(tool, gone.pid)
    t = target()
    t.do("train")
    t.begin("gil")
    waiting = attach_process(tool, t.pid, "-o", tmp_path / "late.gmt")
    until(lambda: asked(t.pid))
    time.sleep(0.4)  # its request is written
    t.process.kill()
    said = waiting.communicate(timeout=600)[1]
    assert waiting.returncode == 2 and said.count("\n") == 1 and "it ended before its snapshot was written" in said
    assert not (tmp_path / "late.gmt").exists()


def test_what_it_does_not_touch(target, programs, tool, tmp_path):
    file = tmp_path / "c.gmt"
    assert "no such process" in refused(tool, 2 ** 22 - 3)
    assert "not a process id" in refused(tool, "train.py")
    assert "--wait takes" in refused(tool, os.getpid(), "--wait", 0)
    sleep = subprocess.Popen(["sleep", "60"])
    plain = subprocess.Popen([sys.executable, "-c", "print('ready', flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert plain.stdout.readline() == "ready\n"
        assert "no Python interpreter" in refused(tool, sleep.pid)
        assert "has not imported torch" in refused(tool, plain.pid, "-o", file)
        if os.geteuid() == 0 and os.access(tool.path, os.X_OK):
            other = subprocess.run([tool.path, "attach", str(plain.pid), "-o", "/tmp/x.gmt"], user=65534, capture_output=True, text=True)
            assert other.returncode == 2 and "belongs to another user" in other.stderr
        ptrace = ctypes.CDLL(None).ptrace
        assert ptrace(0x4206, plain.pid, None, None) == 0  # PTRACE_SEIZE
        assert f"process {os.getpid()} traces it already" in refused(tool, plain.pid)
    finally:
        sleep.kill()
        plain.kill()
    recorded = target(traced=True, GPUMEMTRACE_OUTPUT="own.gmt")
    recorded.do("train")
    assert "being recorded already" in refused(tool, recorded.pid) and "own.gmt" in refused(tool, recorded.pid)
    assert recorded.close() == 0

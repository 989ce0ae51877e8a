# SPDX-License-Identifier: Apache-2.0
"""Runs programs under the library on the device of this test run: the simulated one, or a real card with
GPUMEMTRACE_TEST_DEVICE=real."""
import fcntl
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

for place in ("scripts", "tests"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / place))
import json_page  # noqa: E402
from forks import OUTPUT, Forks  # noqa: E402
from terminal import Terminal  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GPUMEMTRACE_TEST_BUILD", ROOT / "build"))
# Of scripts/test-installed.sh: where the wheel is installed, and the wheel.
PACKAGE = Path(os.environ.get("GPUMEMTRACE_TEST_PACKAGE", ROOT / "python"))
WHEEL = os.environ.get("GPUMEMTRACE_TEST_WHEEL")
sys.path.insert(0, str(PACKAGE))  # one package for all tests of a process
WORKLOADS = ROOT / "tests/workloads"
# Makes programs with PyTorch start and end sooner (its sitecustomize.py says how).
QUICK = ROOT / "tests/quick"
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(QUICK), os.environ.get("PYTHONPATH")]))
TABLES = json_page.tables()  # what the commands' JSON is like
# `collect`, `sql` and `dashboard` need a Python with DuckDB.
TOOLS = ROOT / ".venv-tools/bin/python"
if TOOLS.exists():
    os.environ.setdefault("GPUMEMTRACE_PYTHON", str(TOOLS))
REAL = os.environ.get("GPUMEMTRACE_TEST_DEVICE") == "real"
# What `run` adds where nothing could be recorded.
NO_CARD = "" if glob.glob("/dev/nvidia[0-9]*") else "; this machine has no NVIDIA GPU, --sim h100-80g simulates one"


# Whoever starts the tests may ignore signals (nohup: SIGHUP; a shell's &: SIGINT, SIGQUIT), and programs inherit that. What is caught here is
# ignored here alone: a program begins with its default. Python ignores two itself, and subprocess restores those.
for ignored in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, lambda *_: None)


def until(what, seconds=120):
    """Waits for an event, not for a time: what() has happened, and is returned. The limit is for what never comes."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
    return found


def slowness():
    """Of a machine with other work: how many wait for each processor. Limits of time are multiplied by it."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def with_more(cases, more):
    """Cases of which `more`, by their first value, are left to `make test-matrix`: others show nearly the same."""
    rows = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*row, marks=pytest.mark.more if row[0] in more else ()) for row in rows]


RAN = set()


@pytest.fixture(autouse=True)
def ran(request):
    RAN.add(request.node.nodeid)


def all_ran(request):
    """Whether all tests of the file ran in this process (of several workers)."""
    return all(item.nodeid in RAN for item in request.session.items if item.path == request.path)


def once(pairs):
    """An object of JSON in which no key stands twice."""
    assert len(dict(pairs)) == len(pairs), [key for key, _ in pairs]
    return dict(pairs)


class Tool:
    """The command gpumemtrace."""

    path = str(BUILD / "gpumemtrace")

    def __call__(self, *args, code=0):
        done = subprocess.run([self.path, *map(str, args)], capture_output=True, text=True, timeout=600)
        assert done.returncode == code, (args, done.returncode, done.stderr)
        return done.stdout

    def json(self, *args):
        document = json.loads(self(*args, "--json"), object_pairs_hook=once)
        assert json_page.check(TABLES, "ranks" if "totals" in document else args[0], document) == [], args
        return document

    def events(self, file):
        """All events and definitions, in order."""
        return [json.loads(line) for line in self("dump", file, "--json").splitlines() if line]

    def stacks(self, file):
        """The frames of each stack, by its number, as `stack FILE NUMBER` gives them (test_cli.py)."""
        return {s["stack"]: s["frames"] for s in map(json.loads, self("stack", file, "--all", "--json").splitlines())}


# Autograd's thread gives up what Python made for a backward pass (hooks, callbacks) after it has said that the pass is done. If
# it comes to that only when the interpreter ends, CPython before 3.14 ends the thread within a function that may not throw: std::terminate,
# with or without us (docs/reliability.md): on a busy machine up to half of the programs that end right behind a backward pass. Such
# a program is run again.
ENDS_BADLY = "terminate called without an active exception\n"
AGAIN = 5


LAUNCHER = ["-m", "torch.distributed.run", "--standalone"]


def ranks_of(args):
    """The words of a program, and how many ranks of it PyTorch's launcher starts; 0 without the launcher."""
    if args[:3] != LAUNCHER:
        return args, 0
    number, *words = args[4:] if args[3] == "--nproc-per-node" else [args[3].split("=")[1], *args[4:]]
    return words, int(number)


def can_be_forked(args, env):
    """A short command line with a recording for each process, and an allocator that PyTorch does not choose when it is imported."""
    words, ranks = ranks_of(args)
    output = env.get("GPUMEMTRACE_OUTPUT", "")
    output = output.replace("%r", "") if ranks else output
    return words[0] != "-m" and sum(map(len, words)) < 3000 and "%" not in output and "backend:" not in env.get("PYTORCH_CUDA_ALLOC_CONF", "")


class Programs:
    """Starts programs, each in the test's own folder."""

    def __init__(self, folder, quick=True, forks=False):
        self.folder, self.forks = folder, forks
        self.python_path = f"{WORKLOADS}:{QUICK}" if quick else str(WORKLOADS)

    def environment(self, traced=True, card="h100-80g", count=1, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
        preload = [str(BUILD / "libgpumemtrace.so")] if traced else []
        if not REAL:
            preload.append(str(BUILD / "libsimgpu.so"))
            env.update(LD_LIBRARY_PATH=str(BUILD / "simgpu"), SIMGPU_CARD=card, SIMGPU_COUNT=str(count))
        env.update(LD_PRELOAD=":".join(preload), PYTHONPATH=self.python_path, OMP_NUM_THREADS="1",
                   TORCHINDUCTOR_CACHE_DIR=str(self.folder / "inductor"), TRITON_CACHE_DIR=str(self.folder / "triton"))
        env.update({k: str(v) for k, v in more.items()})
        return env

    @staticmethod
    def workload(name):
        return str(WORKLOADS / name)

    def __call__(self, *args, timeout=1200, **kw):
        """Runs Python with these arguments; names of workloads are found by themselves."""
        args = [str(WORKLOADS / a) if str(a).endswith(".py") and not os.path.exists(str(a)) else str(a) for a in args]
        command = [sys.executable, *args]
        settings = {"env": self.environment(**kw), "cwd": self.folder, "capture_output": True, "text": True, "timeout": timeout}
        start = self.fork if self.forks and can_be_forked(args, settings["env"]) else subprocess.run
        before = set(self.folder.glob("*.gmt*"))
        for _ in range(AGAIN):
            done = start(command, **settings)
            if done.returncode != -6 or not done.stderr.endswith(ENDS_BADLY):
                break
            for recording in set(self.folder.glob("*.gmt*")) - before:
                recording.unlink()
        return done

    def fork(self, command, env, cwd, timeout, **_):
        words, ranks = ranks_of(command[1:])
        done, recordings = Forks.of(command[:1], env, words[words[0] == "-c"], ranks).run(words, cwd, env, timeout, ranks)
        for rank, recording in enumerate(recordings):
            if recording:
                shutil.move(recording, cwd / env.get("GPUMEMTRACE_OUTPUT", f"gpumemtrace.{recording.name}").replace("%r", str(rank)))
        return done

    def traced(self, *args, output="run.gmt", **kw):
        """Runs Python under the library; the program must succeed. Returns its recording."""
        done = self(*args, GPUMEMTRACE_OUTPUT=output, **kw)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        assert "gpumemtrace:" not in done.stderr
        return self.folder / output


def record(recording, *words, card="h100-80g", code=0, folder=None, **more):
    """As `gpumemtrace run -q --sim CARD -o RECORDING -- python WORDS`, of a program with PyTorch that is forked (forks.py). Returns how it ended."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", **{k: str(v) for k, v in more.items()}, "SIMGPU_CARD": card}
    server = Forks.of([Tool.path, "run", "-q", "--sim", "h100-80g", "-o", OUTPUT, "--", sys.executable], env, words[0])
    done, (made,) = server.run(words, folder or Path(recording).parent, env)
    assert done.returncode == code, done.stdout[-2000:] + done.stderr[-4000:]
    if made:
        shutil.move(made, recording)
    return done


def made_once(factory, name, make):
    """A folder that make() fills once for all processes of a test run: the first that needs it does, others wait. Tests only read it."""
    place = (factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else factory.getbasetemp()) / name
    with open(f"{place}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not Path(f"{place}.made").exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            make(place)
            Path(f"{place}.made").touch()
    return place


@pytest.fixture(scope="session")
def many(tmp_path_factory):
    """A folder of recordings of many small programs (many.py)."""
    def make(folder):
        done = Programs(folder)("many.py", folder, count=2, GPUMEMTRACE_OUTPUT=folder / "%p.gmt")
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return made_once(tmp_path_factory, "many", make)


@pytest.fixture
def tool():
    return Tool()


@pytest.fixture
def terminal():
    """Starts commands on terminals of their own."""
    started = []

    def start(*command, **settings):
        started.append(Terminal(command, **settings))
        return started[-1]

    yield start
    for t in started:
        t.close()


@pytest.fixture
def programs(tmp_path, request):
    return Programs(tmp_path, quick=not request.node.get_closest_marker("plain"), forks=bool(request.node.get_closest_marker("forks")))


def blocks_of(live):
    return sorted((b["addr"], b["size"]) for b in live["blocks"])


def check_marks(tool, recording, truth):
    """At every mark: sum, every address and size; over the whole run: peaks of each device."""
    assert truth["marks"]
    for mark in truth["marks"]:
        for said in mark["devices"]:
            at = "mark:%s#%d" % (mark["name"], mark["time"])
            live = tool.json("live", recording, "--at", at, "--device", said["device"])
            assert live["bytes"] == said["allocated"], at
            assert blocks_of(live) == [tuple(b) for b in said["blocks"]], at
    report = tool.json("report", recording)
    assert report["dropped"] == 0 and not report["truncated"]
    for said in truth["marks"][-1]["devices"]:
        device = next(d for d in report["devices"] if d["device"] == said["device"])
        assert device["peak_bytes"] == said["max_allocated"]
        assert device["peak_reserved_bytes"] == said["max_reserved"]

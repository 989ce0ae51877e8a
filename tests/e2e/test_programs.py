# SPDX-License-Identifier: Apache-2.0
"""Programs that live and end in every way: what the recording holds is what the program logged, and the
program does what it would have done alone."""
import json
import os
import random
import resource
import stat
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import toy
from conftest import slowness

PROGRAM = os.path.join(toy.ROOT, "build/programs/lifecycle")


@pytest.fixture(scope="session")
def cudart(tmp_path_factory):
    return toy.build_cudart(tmp_path_factory.mktemp("cudart"))


@pytest.fixture(scope="session", autouse=True)
def program():
    subprocess.run(["make", "-s", "build/programs/lifecycle"], cwd=toy.ROOT, check=True)


def start(cudart, folder, mode, preload=True, out="run.%p.gmt", **kwargs):
    env = dict(os.environ, LOG=str(folder / "log"), TOY_CUDART=cudart, GPUMEMTRACE_OUTPUT=str(folder / out))
    env.update(kwargs.pop("env", {}))
    libs = [toy.SHIM] if preload else []
    if mode != "late":
        libs.append(cudart)
    env["LD_PRELOAD"] = ":".join(libs)
    return subprocess.run([PROGRAM, mode], env=env, cwd=folder, capture_output=True, text=True, timeout=600, **kwargs)


def logged(folder):
    """{process id: [("alloc", address, size) or ("free", address)]} in order of the log."""
    truth = {}
    for line in (folder / "log").read_text().splitlines():
        pid, what, address, *size = line.split()
        truth.setdefault(int(pid), []).append((what, int(address, 0), *map(int, size)))
    return truth


def recorded(paths):
    """The same from recordings."""
    found = []
    for path in paths:
        for e in toy.dump(path):
            if e["kind"] == "mem_alloc" and e["size"] not in (7, 13):
                found.append(("alloc", int(str(e["addr"]), 0), e["size"]))
            elif e["kind"] == "mem_free":
                found.append(("free", int(str(e["addr"]), 0)))
    return found


def check(folder, in_order=True):
    """Each process's recordings against its log."""
    truth, files = logged(folder), toy.recordings(folder)
    assert set(truth) == set(files)
    for pid, events in truth.items():
        found = recorded(files[pid])
        if in_order:
            assert found == events
        else:
            assert sorted(found) == sorted(events)
    return files


def ends_well(path):
    events = toy.dump(path)
    assert events[-1]["kind"] == "end"
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert not os.path.exists(path + ".live")


def test_plain(cudart, tmp_path):
    done = start(cudart, tmp_path, "plain")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    [[path]] = check(tmp_path).values()
    ends_well(path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert all(e.get("stack") for e in toy.dump(path) if e["kind"].startswith("mem_"))


@pytest.mark.parametrize("mode,count", [("threads", 16), ("threads", 128), ("visitors", 20), ("visitors", 200)])  # 50 threads a visit
def test_threads(cudart, tmp_path, mode, count):
    assert start(cudart, tmp_path, mode, env=dict(COUNT=str(count))).stdout == "done\n"
    [[path]] = check(tmp_path, in_order=False).values()
    ends_well(path)


def test_fork(cudart, tmp_path):
    assert start(cudart, tmp_path, "fork").stdout == "done\n"
    files = check(tmp_path, in_order=False)
    assert len(files) == 3
    for [path] in files.values():
        ends_well(path)


def test_fork_past_the_handlers(cudart, tmp_path):
    assert start(cudart, tmp_path, "rawfork").stdout == "done\n"
    assert len(check(tmp_path)) == 2


def test_fork_while_threads_record(cudart, tmp_path):
    assert start(cudart, tmp_path, "forkstorm").stdout == "done\n"
    assert len(check(tmp_path, in_order=False)) == 6


def test_spawn(cudart, tmp_path):
    assert start(cudart, tmp_path, "spawn").stdout == "done\n"
    assert len(check(tmp_path)) == 1


def test_exec(cudart, tmp_path):
    assert start(cudart, tmp_path, "exec").stdout == "done\n"
    [paths] = toy.recordings(tmp_path).values()
    assert len(paths) == 2
    assert sorted(recorded(paths)) == sorted(e for events in logged(tmp_path).values() for e in events)


def test_runtime_loaded_after_start(cudart, tmp_path):
    assert start(cudart, tmp_path, "late").stdout == "done\n"
    check(tmp_path)


def no_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@pytest.mark.parametrize("mode,code", [("abort", -6), ("kill", -9), ("kill", -11)])
def test_hard_ends_lose_nothing(cudart, tmp_path, mode, code):
    done = start(cudart, tmp_path, mode, preexec_fn=no_core, env=dict(COUNT=str(-code)))
    assert (done.returncode, done.stderr) == (code, "")
    [[path]] = check(tmp_path, in_order=False).values()
    assert os.path.exists(path + ".live")


@pytest.mark.parametrize("mode", ["_exit", "quick_exit"])
def test_ends_without_destructors_are_ends(cudart, tmp_path, mode):
    done = start(cudart, tmp_path, mode)
    assert (done.returncode, done.stderr) == (7, "")
    [[path]] = check(tmp_path, in_order=False).values()
    ends_well(path)


def test_threads_that_leave_at_once_wait_for_one_end(cudart, tmp_path):
    """One run in 300 failed where a thread could leave between two words of another's decision."""
    folders = [tmp_path / str(i) for i in range(400)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda folder: start(cudart, folder, "exit_race"), folders))
    assert {(done.returncode, done.stderr) for done in runs} == {(7, "")}
    assert not [path for path in tmp_path.glob("*/*.live")]
    [[path]] = check(folders[0], in_order=False).values()
    ends_well(path)


def test_end_in_a_signal_handler(cudart, tmp_path):
    began = time.monotonic()
    done = start(cudart, tmp_path, "exit_in_handler")
    assert (done.returncode, done.stderr) == (7, "") and time.monotonic() - began < 10 * slowness()
    [[path]] = toy.recordings(tmp_path).values()
    assert toy.dump(path)[-1]["kind"] == "end" and not os.path.exists(path + ".live")


def test_children_that_share_our_memory_end_nothing(cudart, tmp_path):
    assert start(cudart, tmp_path, "exits").stdout == "done\n"
    files = check(tmp_path)
    assert len(files) == 2
    for [path] in files.values():
        ends_well(path)


@pytest.mark.parametrize("which", range(9))
def test_exec_is_an_end(cudart, tmp_path, which):
    env = dict(WHICH=str(which), PATH=os.path.dirname(PROGRAM) + ":" + os.environ["PATH"])
    done = start(cudart, tmp_path, "execs", env=env)
    assert (done.stdout, done.stderr) == ("done\n", "")
    [paths] = toy.recordings(tmp_path).values()
    assert len(paths) == 2
    for path in paths:
        ends_well(path)
    assert sorted(recorded(paths)) == sorted(e for events in logged(tmp_path).values() for e in events)


def test_exec_that_fails(cudart, tmp_path):
    done = start(cudart, tmp_path, "exec_fails")
    assert (done.stdout, done.stderr) == ("done\n", "")
    [[path]] = check(tmp_path).values()
    ends_well(path)


def test_exec_of_what_is_no_program(cudart, tmp_path):
    bad = tmp_path / "bad"
    bad.write_bytes(b"\0\1\2\3" * 100)
    bad.chmod(0o755)
    done = start(cudart, tmp_path, "exec_bad", env=dict(BAD=str(bad)))
    assert done.stdout == "done\n"
    assert done.stderr.startswith("gpumemtrace: an exec failed") and done.stderr.count("\n") == 1
    [[path]] = check(tmp_path).values()
    ends_well(path)


@pytest.mark.parametrize("sanitizer,library", [("address", "libasan.so"), ("undefined", None), ("thread", "libtsan.so")])
@pytest.mark.parametrize("mode,code", [("threads", 0), ("_exit", 7), ("fork", 0)])
def test_programs_with_a_sanitizer(cudart, tmp_path, sanitizer, library, mode, code):
    """A sanitizer looks functions up while it sets itself up, before anything of ours has run."""
    program = tmp_path / "program"
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-w", f"-fsanitize={sanitizer}", "-rdynamic", "-Wl,-z,dynamic-undefined-weak", "-o", program,
                    os.path.join(toy.ROOT, "tests/programs/lifecycle.c"), "-ldl", "-lpthread"], check=True)
    first = [subprocess.run(["gcc", "-print-file-name=" + library], capture_output=True, text=True).stdout.strip()] if library else []
    env = dict(os.environ, LOG=str(tmp_path / "log"), GPUMEMTRACE_OUTPUT=str(tmp_path / "run.%p.gmt"), ASAN_OPTIONS="detect_leaks=0",
               TSAN_OPTIONS="die_after_fork=0",  # it refuses threads in a child of a program that has any, and ours is one
               LD_PRELOAD=":".join([*first, toy.SHIM, cudart]))
    done = subprocess.run([program, mode], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (code, "")
    for [path] in check(tmp_path, in_order=False).values():
        ends_well(path)


def test_fork_while_our_thread_starts(cudart, tmp_path):
    """Allocators lock themselves where threads start: a child must not find them locked for ever."""
    program = os.path.join(toy.ROOT, "build/programs/slow_start")
    subprocess.run(["make", "-s", "build/programs/slow_start"], cwd=toy.ROOT, check=True)
    env = dict(os.environ, GPUMEMTRACE_OUTPUT=str(tmp_path / "run.%p.gmt"), LD_PRELOAD=":".join([toy.SHIM, cudart]))
    for _ in range(3):
        assert subprocess.run([program], env=env, capture_output=True, text=True, timeout=600).stdout == "1 threads, free\n"


def test_killed_at_random_moments(cudart, tmp_path):
    """What the program had completed before it was killed is read, whatever the recorder was doing."""
    chance, total = random.Random(11), 0
    for i in range(25):
        folder = tmp_path / str(i)
        folder.mkdir()
        env = dict(os.environ, LOG=str(folder / "log"), GPUMEMTRACE_OUTPUT=str(folder / "run.gmt"),
                   GPUMEMTRACE_FLUSH_MS=str(chance.choice([10, 30, 1000])), LD_PRELOAD=toy.SHIM + ":" + cudart)
        running = subprocess.Popen([PROGRAM, "churn"], env=env)
        time.sleep(chance.uniform(0.005, 0.1))
        running.kill()
        running.wait()
        if not (folder / "log").exists():
            continue
        done = {int(address, 0) for line in (folder / "log").read_text().split("\n")[:-1]
                for _, what, address, *_ in [line.split()] if what == "alloc"}
        events = toy.dump(folder / "run.gmt") if done else []
        assert not done - {int(str(e["addr"]), 0) for e in events if e["kind"] == "mem_alloc"}
        assert all(e["stack"] for e in events if e["kind"] == "mem_alloc")
        total += len(done)
    assert total > 1000


def test_exit_while_threads_record(cudart, tmp_path):
    done = start(cudart, tmp_path, "busy_exit")
    assert (done.returncode, done.stderr) == (7, "")
    [[path]] = toy.recordings(tmp_path).values()
    assert toy.dump(path)[-1]["kind"] == "end"
    [truth] = logged(tmp_path).values()
    found = set(recorded([path]))
    # what is not there happened at the very end, but for a call that each thread may have been in; for how long threads
    # go on after the recorder's end is the scheduler's choice (70 % of the calls on a machine with 20 other programs)
    missing = [i for i, event in enumerate(truth) if event not in found]
    assert len(truth) - len(missing) > 100
    assert sum(i < len(truth) - len(missing) - 4 for i in missing) <= 4


def test_the_call_never_returns(cudart, tmp_path):
    assert start(cudart, tmp_path, "escape").stdout == "done\n"
    [truth] = logged(tmp_path).values()
    [[path]] = toy.recordings(tmp_path).values()
    found = recorded([path])
    assert [size for what, _, size in found if size == 13 * 512] == [13 * 512]
    assert sorted(e for e in found if e[2] != 13 * 512) == sorted(truth)


def test_allocation_in_signal_handlers(cudart, tmp_path):
    assert start(cudart, tmp_path, "signals").stdout == "done\n"
    [truth] = logged(tmp_path).values()
    [[path]] = toy.recordings(tmp_path).values()
    assert set(truth) <= set(recorded([path]))


def test_cpp_exception_through_a_hook(cudart, tmp_path):
    source = tmp_path / "throws.cpp"
    source.write_text("""#include <cstdio>
        extern "C" int cudaMalloc(void **, unsigned long);
        extern "C" void (*toy_escape)();
        static void thrower() { throw 42; }
        int main() {
            void *p; int caught = 0;
            toy_escape = thrower;
            for (int i = 0; i < 3; i++) {
                try { cudaMalloc(&p, 13); } catch (int n) { caught += n; }
                cudaMalloc(&p, 100 + i);
            }
            printf("%d\\n", caught);
        }""")
    subprocess.run(["g++", "-o", tmp_path / "throws", source, cudart], check=True)
    env = dict(os.environ, LD_PRELOAD="%s:%s" % (toy.SHIM, cudart), GPUMEMTRACE_OUTPUT=str(tmp_path / "run.gmt"))
    done = subprocess.run([tmp_path / "throws"], env=env, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "126\n", "")
    assert [size for what, _, size in recorded([tmp_path / "run.gmt"])] == [100, 101, 102]


def test_one_name_for_many_processes(cudart, tmp_path):
    """The first that records takes the name, the others add their process id; nothing is overwritten."""
    (tmp_path / "all.gmt").write_text("mine")
    assert start(cudart, tmp_path, "fork", out="all.gmt").stdout == "done\n"
    assert (tmp_path / "all.gmt").read_text() == "mine"
    os.unlink(tmp_path / "all.gmt")
    os.unlink(tmp_path / "log")
    for path in tmp_path.glob("all.*.gmt"):
        os.unlink(path)
    assert start(cudart, tmp_path, "fork", out="all.gmt").stdout == "done\n"
    files = check(tmp_path, in_order=False)
    names = {os.path.basename(path) for paths in files.values() for path in paths}
    first = min(files)
    assert names == {"all.gmt"} | {"all.%d.gmt" % pid for pid in files if pid != first}


def test_name_pattern(cudart, tmp_path):
    assert start(cudart, tmp_path, "plain", out="x-%h-%r-%%.gmt", env={"RANK": "3"}).stdout == "done\n"
    assert (tmp_path / ("x-%s-3-%%.gmt" % os.uname().nodename)).exists()


def test_default_name_is_where_the_program_started(cudart, tmp_path):
    assert start(cudart, tmp_path, "plain", out="", env={"GPUMEMTRACE_OUTPUT": ""}).stdout == "done\n"
    [pid] = logged(tmp_path)
    assert (tmp_path / ("gpumemtrace.%d.gmt" % pid)).exists()


def warned_once(done):
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr.startswith("gpumemtrace: ") and done.stderr.count("\n") == 1
    return done.stderr


def test_no_such_directory(cudart, tmp_path):
    text = warned_once(start(cudart, tmp_path, "fork", out="missing/run.gmt"))
    assert "missing/run.gmt" in text and "No such file" in text
    done = start(cudart, tmp_path, "fork", out="missing/run.gmt", env={"GPUMEMTRACE_QUIET": "1"})
    assert (done.returncode, done.stderr) == (0, "")


def test_symbolic_links_are_not_followed(cudart, tmp_path):
    os.symlink(tmp_path / "elsewhere", tmp_path / "run.gmt")
    assert start(cudart, tmp_path, "plain", out="run.gmt").stdout == "done\n"
    assert not (tmp_path / "elsewhere").exists()


def test_file_size_limit(cudart, tmp_path):
    """No room for the live file: the program is not killed by SIGXFSZ."""
    def limit(n):
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))
    text = warned_once(start(cudart, tmp_path, "plain", preexec_fn=limit(100 << 10)))
    assert "File too large" in text
    assert not list(tmp_path.glob("*.gmt*"))


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_disk_full_from_the_start(cudart, tmp_path, small_disk):
    (small_disk / "filler").write_bytes(b"x" * (900 << 10))
    text = warned_once(start(cudart, tmp_path, "threads", out="disk/run.gmt"))
    assert "No space left" in text


def test_disk_full_later(cudart, tmp_path, small_disk):
    """Two rings fit; 16 threads need more. What could not be kept is counted."""
    done = start(cudart, tmp_path, "threads", out="disk/run.gmt")
    assert (done.returncode, done.stdout) == (0, "done\n") and done.stderr.count("\n") <= 1
    events = toy.dump(small_disk / "run.gmt")
    kept = sum(e["kind"].startswith("mem_") for e in events)
    dropped = sum(e["arg0"] for e in events if e["kind"] == "dropped")
    [truth] = logged(tmp_path).values()
    assert kept + dropped == len(truth) and dropped > 0


def test_descriptors_closed_by_the_program(cudart, tmp_path):
    """A program that closes what it does not know never gets our bytes into its own files."""
    text = warned_once(start(cudart, tmp_path, "close_all"))
    assert "closed the recording's file" in text
    [truth] = logged(tmp_path).values()
    [[path]] = toy.recordings(tmp_path).values()
    assert recorded([path])[0] == truth[0]


def test_without_a_device_nothing_is_left_and_nothing_is_paid(cudart, tmp_path):
    assert start(cudart, tmp_path, "none").stdout == "done\n"
    assert not [p for p in tmp_path.iterdir() if p.name != "log"]

    def milliseconds(**env):
        began = time.perf_counter()
        subprocess.run(["/bin/true"], env=env, cwd=tmp_path, check=True)
        return (time.perf_counter() - began) * 1000

    alone, ours = zip(*((milliseconds(), milliseconds(LD_PRELOAD=toy.SHIM)) for _ in range(40)))
    assert min(ours) - min(alone) < 5
    assert list(tmp_path.glob("*.gmt")) == []


def test_switched_off(cudart, tmp_path):
    assert start(cudart, tmp_path, "plain", env={"GPUMEMTRACE_ENABLED": "0"}).stdout == "done\n"
    assert not list(tmp_path.glob("*.gmt*"))


@pytest.mark.parametrize("stacks,kinds", [("native", {1}), ("none", set())])
def test_choice_of_stacks(cudart, tmp_path, stacks, kinds):
    start(cudart, tmp_path, "plain", out="run.gmt", env={"GPUMEMTRACE_STACKS": stacks})
    found = {d["frame"] for d in toy.definitions(tmp_path / "run.gmt") if d["def"] == "stack"}
    assert found == kinds


def test_facts(cudart, tmp_path):
    """The commit is what git says; no variable goes in that is not on the list."""
    repo = tmp_path / "repo"
    repo.mkdir()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(repo)]
    for args in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run([*git, *args], check=True)
    (repo / "below").mkdir()
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    env = dict(os.environ, LOG=str(tmp_path / "log"), LD_PRELOAD="%s:%s" % (toy.SHIM, cudart), HF_TOKEN="hush",
               CUDA_VISIBLE_DEVICES="0")

    def facts_of_run(name):
        subprocess.run([PROGRAM, "plain"], cwd=repo / "below", check=True, stdout=subprocess.DEVNULL,
                       env=dict(env, GPUMEMTRACE_OUTPUT=str(tmp_path / name)))
        return toy.facts(tmp_path / name)

    facts = facts_of_run("a.gmt")
    assert (facts["git.commit"], facts["git.branch"]) == (head, "main")
    assert facts["env.CUDA_VISIBLE_DEVICES"] == "0" and "hush" not in json.dumps(facts)
    assert facts["exe"] == PROGRAM and facts["argv"].split("\0")[1] == "plain"
    subprocess.run([*git, "pack-refs", "--all"], check=True)
    assert facts_of_run("b.gmt")["git.commit"] == head
    subprocess.run([*git, "checkout", "-q", "--detach"], check=True)
    facts = facts_of_run("c.gmt")
    assert facts["git.commit"] == head and "git.branch" not in facts and "git.remote" not in facts
    subprocess.run([*git, "config", "credential.helper", "store"], check=True)
    subprocess.run([*git, "remote", "add", "other", "https://example.com/else"], check=True)
    subprocess.run([*git, "remote", "add", "origin", "x"], check=True)
    for nth, (url, remote) in enumerate([
            ("https://ann:hu/sh@hush@github.com/org/net.git", "github.com/org/net"), ("git@github.com:org/net.git", "github.com/org/net"),
            ("ssh://git@github.com:22/org/net", "github.com:22/org/net"), ("https://github.com/org/net.git?token=hush", "github.com/org/net"),
            ("/srv/git/net.git", "/srv/git/net"), ("git", "git")]):
        subprocess.run([*git, "remote", "set-url", "origin", url], check=True)
        facts = facts_of_run(f"remote{nth}.gmt")
        assert facts["git.remote"] == remote and "hush" not in json.dumps(facts)

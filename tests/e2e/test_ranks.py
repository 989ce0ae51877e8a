# SPDX-License-Identifier: Apache-2.0
"""Several recordings as one run: rows, strays, sums, one rank of them, comparisons of two folders; broken files,
folders of two runs, folders without any."""
import json
import re
import shutil
import statistics
import subprocess
import sys

import pytest

from conftest import ROOT, WORKLOADS

MIB = 1 << 20
SECOND = 10**9
LINES = {1: ("train.py", "<module>", 10), 2: ("model.py", "Model.forward", 40), 3: ("model.py", "Loss.forward", 71)}


def script(rank, activations=8, weights=4, world=4, start=1000, parent=77, pid=None, extra=0, oom=False, facts=(), steps=1):
    """A rank that keeps weights, and in each step saves activations (MiB) for backward, some of them on another line;
    `extra` MiB a step stay for ever."""
    lines = [*(f"meta {fact}" for fact in facts), f"meta env.WORLD_SIZE {world}", f"meta ppid {parent}", "meta host one",
             f"meta start_unix_ns {start * SECOND}", "string 1 fwd", "string 2 Optimizer.step#AdamW.step", "string 3 MmBackward0",
             "thread 1 4711 main"]
    if rank is not None:
        lines.insert(0, f"meta env.RANK {rank}")
    for i, (file, function, line) in LINES.items():
        lines += [f"code {i} 779 {line} /home/u/{file} {function} 80 00", f"node {i} 0 2 {i << 32 | 1}"]
    now, seq, held = 100, 0, 0

    def event(kind, **members):
        nonlocal now
        now += 10
        lines.append(f"event {kind} time_ns={now} thread=1 " + " ".join(f"{k}={v}" for k, v in members.items()))

    def take(addr, mib, stack):
        nonlocal held
        held += mib * MIB
        event("block_alloc", addr=addr, size=mib * MIB, arg0=held, arg1=64 * MIB, stack=stack)

    def give(addr, mib):
        nonlocal held
        held -= mib * MIB
        event("block_free", addr=addr, size=mib * MIB, arg0=held, arg1=64 * MIB)

    event("mem_alloc", addr=1 << 28, size=64 * MIB, arg0=1, flags=2, stack=1)
    take(1 << 28, weights, 1)
    event("tag_leaf", addr=1 << 28, size=weights * MIB, arg0=77)
    for step in range(1, steps + 1):
        for nth, (mib, stack) in enumerate([(4, 2), (activations - 4, 3)]):
            if mib:
                addr = (1 << 29) + (nth << 27)
                take(addr, mib, stack)
                event("tag_saved", addr=addr, size=mib * MIB, arg0=500 + 2 * step + nth, name=3, stack=stack)
        if extra:
            take((1 << 33) + (step << 28), extra, 3)
        for nth, mib in enumerate([4, activations - 4]):
            if mib:
                event("tag_released", arg0=500 + 2 * step + nth)
                give((1 << 29) + (nth << 27), mib)
        event("range_begin", arg0=step, arg1=1, name=2)
        event("range_end", arg0=step, arg1=1, name=2)
    if oom:
        event("block_oom", size=90 * MIB, arg0=held, arg1=64 * MIB, stack=2)
    event("end")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session", autouse=True)
def maker():
    subprocess.run(["make", "-s", "build/data/make_recording"], cwd=ROOT, check=True)


def write(folder, name, text):
    folder.mkdir(exist_ok=True)
    subprocess.run([ROOT / "build/data/make_recording", folder / name], input=text, text=True, check=True)
    return folder / name


def run_of(folder, ranks=4, **of):
    """A folder with a recording of each rank; of[f"r{n}"] are the settings of rank n."""
    for rank in range(ranks):
        settings = {"world": ranks, **of.get("every", {}), **of.get(f"r{rank}", {})}
        write(folder, f"run.{rank}.gmt", script(rank, **settings))
    return folder


def failed(tool, *args):
    done = subprocess.run([tool.path, *map(str, args)], capture_output=True, text=True)
    return done.returncode, done.stderr


# Rows


def test_each_rank_says_what_it_says_alone(tool, tmp_path):
    """Every command's row has the members of its answer for that file."""
    run = run_of(tmp_path / "run", r2={"activations": 14}, every={"steps": 3})
    for command in ["report", "peak", "timeline", "live", "steps", "modules", "account", "leaks", "info", "verify"]:
        said = tool.json(command, run)
        assert [r["rank"] for r in said["ranks"]] == [0, 1, 2, 3], command
        for row in said["ranks"]:
            alone = tool.json(command, run / f"run.{row['rank']}.gmt")
            assert row["file"] == str(run / f"run.{row['rank']}.gmt")
            assert {k: row[k] for k in alone} == alone, command
        text = tool(command, run)
        assert re.search(r"^  rank ", text, re.M) and len(re.findall(r"^  [0-3]  ", text, re.M)) == 4, (command, text)
        # A path counts as its last part: how deep the folder of this test lies is not the tool's choice.
        assert max(map(len, text.replace(f"{run}/", "").splitlines())) <= 120


def test_sums_and_the_median(tool, tmp_path):
    run = run_of(tmp_path / "run", r2={"activations": 14}, r1={"activations": 9, "oom": True})
    said = tool.json("report", run)
    peaks = [r["devices"][0]["peak_bytes"] for r in said["ranks"]]
    assert peaks == [12 * MIB, 13 * MIB, 18 * MIB, 12 * MIB]
    assert said["totals"]["peak_bytes"] == sum(peaks) and said["totals"]["ranks"] == 4 and said["totals"]["ooms"] == 1
    assert said["totals"]["events"] == sum(r["events"] for r in said["ranks"])
    assert said["median"]["peak_bytes"] == statistics.median_low(peaks)
    assert [h["host"] for h in said["totals"]["hosts"]] == ["one"]
    text = tool("report", run)
    assert re.search(r"^  sum +55\.0 MiB", text, re.M) and "ran out" in text


@pytest.mark.forks
def test_memory_on_another_ranks_device(tool, programs, tmp_path):
    """A checkpoint is read onto the device that it was written from. The rank says where its tensor is and what PyTorch reserved there."""
    def run(folder, rank, where, **settings):
        (tmp_path / folder).mkdir(exist_ok=True)
        done = programs("elsewhere.py", tmp_path / "state.pt", where, count=2, RANK=rank, GPUMEMTRACE_OUTPUT=tmp_path / folder / f"{rank}.gmt", **settings)
        return [int(n) for n in done.stdout.split()]

    (_, first), (_, reserved) = [run("bad", rank, "none") for rank in (0, 1)]
    shutil.copytree(tmp_path / "bad", tmp_path / "good")
    shutil.copytree(tmp_path / "bad", tmp_path / "own")
    (tmp_path / "good/1.gmt").unlink()
    (tmp_path / "own/1.gmt").unlink()
    run("good", 1, "home")
    run("own", 1, "none", CUDA_VISIBLE_DEVICES=1)  # it sees one device, as its number 0
    (e,) = tool.json("report", tmp_path / "bad")["elsewhere"]
    assert (e["rank"], [e["device"], e["bytes"]], e["of"], e["file"].split("/")[-1], e["line"]) == (1, [0, reserved], str(tmp_path / "bad/0.gmt"), "elsewhere.py", 14)
    assert e["device_bytes"] == first + reserved + 2 * e["context_bytes"]
    text = " ".join(tool("report", tmp_path / "bad").split())
    assert "rank 1: 32.0 MiB reserved on device 0, where rank 0 works (<module> elsewhere.py:14), and a context of about" in text
    for folder in ("good", "own"):
        assert tool.json("report", tmp_path / folder)["elsewhere"] == []
        assert "another rank's device" not in tool("report", tmp_path / folder)


@pytest.mark.parametrize("seen", [False, True])
def test_a_context_on_another_ranks_device(tool, tmp_path, seen):
    """A rank calls CUDA before it chooses its device: no tensor is there, and yet half a gigabyte is gone."""
    said = tool("run", "-q", "--sim", "h100-80g,2", "-o", tmp_path / "%r.gmt", "--", sys.executable, WORKLOADS / "context_elsewhere.py",
                "driver" if seen else "runtime")
    used, *codes = map(int, said.split())
    assert codes == [0, 0]
    (e,) = tool.json("report", tmp_path)["elsewhere"]
    assert (e["rank"], e["device"], e["bytes"], e["of"]) == (1, 0, 0, str(tmp_path / "0.gmt"))
    assert used - e["device_bytes"] == 94 << 20  # the driver's own figure, with the first kernel, behind which nothing was looked at
    assert ((e["file"].split("/")[-1], e["line"]) == ("context_elsewhere.py", 16)) == seen
    assert "rank 1: a context of about 520.0 MiB on device 0, where rank 0 works" in tool("report", tmp_path)


def test_a_context_whose_size_is_not_known(tool, tmp_path):
    """No recording has a figure of the device's free memory."""
    run = run_of(tmp_path / "run", ranks=2, r0={"facts": ["device.0.uuid a-1"]}, r1={"facts": ["device.0.uuid b-1", "device.1.uuid a-1", "device.1.context 1"]})
    assert "rank 1: a context on device 1, where rank 0 works. All ranks" in tool("report", run)


def test_the_one_that_strays_is_named_with_its_class_and_line(tool, tmp_path):
    run = run_of(tmp_path / "run", r3={"activations": 14})
    (stray,) = tool.json("report", run)["stray"]
    assert (stray["rank"], stray["recording"]) == (3, str(run / "run.3.gmt"))
    assert (stray["peak_bytes"], stray["median"], stray["from_median"]) == (18 * MIB, 12 * MIB, 6 * MIB)
    assert (stray["class"], stray["class_delta"]) == ("activations", 6 * MIB)
    assert (stray["function"], stray["file"], stray["line"], stray["line_delta"]) == ("Loss.forward", "/home/u/model.py", 71, 6 * MIB)
    assert "1 of 4 is far from the median" in tool("report", run)
    assert ("rank 3: 18.0 MiB, 6.0 MiB more than the median; activations +6.0 MiB, most of it Loss.forward model.py:71 (+6.0 MiB)"
            in " ".join(tool("report", run).split()))


def test_one_that_has_less_strays_too(tool, tmp_path):
    run = run_of(tmp_path / "run", every={"activations": 20}, r0={"activations": 20, "weights": 16}, r1={"activations": 6})
    low, high = sorted(tool.json("peak", run)["stray"], key=lambda s: s["from_median"])
    assert (low["rank"], low["from_median"], low["class"], low["line"]) == (1, -14 * MIB, "activations", 71)
    assert (high["rank"], high["from_median"], high["class"], high["line"]) == (0, 12 * MIB, "parameters", 10)


def test_equal_ranks_stray_nowhere(tool, tmp_path):
    said = tool.json("report", run_of(tmp_path / "run"))
    assert said["stray"] == [] and said["missing"] == []
    assert "All: peak 12.0 MiB" in tool("report", tmp_path / "run") and "from the median" not in tool("report", tmp_path / "run")


def test_a_part_of_a_run_is_not_compared(tool, tmp_path):
    """A rank whose file was cut, or has damage that only reading its events finds, decides no median and does not stray."""
    run = run_of(tmp_path / "run", ranks=4, r2={"activations": 14})
    assert [(r["part"]) for r in tool.json("report", run)["ranks"]] == [False] * 4
    for rank in (0, 1):
        path = write(run, f"run.{rank}.gmt", script(rank, activations=5))
        path.write_bytes(path.read_bytes()[:-8])
    hurt = bytearray((run / "run.3.gmt").read_bytes())
    hurt[-300] ^= 0xFF
    (run / "run.3.gmt").write_bytes(hurt)
    for command in ["report", "peak", "timeline"]:
        said = tool.json(command, run)
        assert [r["part"] for r in said["ranks"]] == [True, True, False, True] and said["stray"] == []
        assert said["median"]["rank"] == 2, command
        text = " ".join(tool(command, run).split())
        assert "The files of ranks 0-1, 3 have no end or are damaged (see gpumemtrace verify): figures are those of their readable parts, and the median is of the others." in text
        assert "from the median" not in text
    (run / "run.2.gmt").write_bytes((run / "run.2.gmt").read_bytes()[:-8])
    said = tool.json("report", run)
    assert "median" not in said and said["stray"] == []
    assert "Highest peak: 18.0 MiB, rank 2\n" in tool("report", run) and "there is no median" in " ".join(tool("report", run).split())


def test_the_last_line_names_the_rank_to_look_at(tool, tmp_path):
    run = run_of(tmp_path / "run", r3={"activations": 14}, r1={"activations": 12})
    assert tool("report", run).endswith(f"\nLook at rank 3: gpumemtrace report {run}/run.3.gmt\n")
    path = run / "run.2.gmt"
    path.write_bytes(path.read_bytes()[:-8])
    done = subprocess.run([tool.path, "verify", run], capture_output=True, text=True)
    assert done.stdout.endswith(f"\nOne of them: gpumemtrace verify {path}\n")


def test_those_that_stray_alike_are_one_line(tool, tmp_path):
    run = run_of(tmp_path / "run", ranks=20, r3={"activations": 14}, r4={"activations": 14}, r9={"weights": 10})
    text = " ".join(tool("report", run).split())
    assert "3 of 20 are far from the median" in text and "ranks 3-4: 18.0 MiB, 6.0 MiB more than the median; activations +6.0 MiB" in text
    assert "rank 9: 18.0 MiB, 6.0 MiB more than the median; parameters +6.0 MiB, most of it <module> train.py:10" in text
    assert re.search(r"^  0-2, 5-8, 10-19 ", tool("report", run), re.M)


def test_a_leak_of_one_rank(tool, tmp_path):
    run = run_of(tmp_path / "run", every={"steps": 6}, r2={"steps": 6, "extra": 1})
    said = tool.json("leaks", run)
    assert [r["growth_per_step"] for r in said["ranks"]] == [0, 0, MIB, 0]
    assert [s["rank"] for s in said["stray"]] == [2]
    assert re.search(r"^  2 +1\.0 MiB +6 +\S.*Loss\.forward model\.py:71$", tool("leaks", run), re.M)
    assert re.search(r"rank 2: 1\.0 MiB, 1\.0 MiB more than the median; \S+ of Loss\.forward model\.py:71", " ".join(tool("leaks", run).split()))


def test_many_ranks_are_grouped(tool, tmp_path):
    """512 of them: the text stays short, JSON has each."""
    run = tmp_path / "run"
    for rank in range(512):
        write(run, f"run.{rank}.gmt", script(rank, world=512, activations=14 if rank == 511 else 8, oom=rank == 17))
    text = tool("report", run)
    assert len(text.splitlines()) < 16, text
    assert re.search(r"^  0-16, 18-510 +12\.0 MiB", text, re.M) and re.search(r"^  17 +12\.0 MiB", text, re.M)
    assert re.search(r"^  511 +18\.0 MiB", text, re.M) and "rank 511: 18.0 MiB, 6.0 MiB more" in text
    said = tool.json("report", run)
    assert [r["rank"] for r in said["ranks"]] == list(range(512)) and [s["rank"] for s in said["stray"]] == [511]


# Which files


def test_files_by_name_are_a_run_in_any_order(tool, tmp_path):
    run = run_of(tmp_path / "run", r1={"activations": 14})
    said = tool.json("report", *[run / f"run.{i}.gmt" for i in (3, 1, 0, 2)])
    assert [r["rank"] for r in said["ranks"]] == [0, 1, 2, 3] and [s["rank"] for s in said["stray"]] == [1]
    both = tool.json("report", run / "run.2.gmt", run / "run.0.gmt")
    assert [r["rank"] for r in both["ranks"]] == [0, 2] and both["missing"] == [1, 3]


def test_one_file_is_no_run(tool, tmp_path):
    run = run_of(tmp_path / "run")
    assert "ranks" not in tool.json("report", run / "run.0.gmt")
    assert [r["rank"] for r in tool.json("report", run_of(tmp_path / "single", ranks=1))["ranks"]] == [0]


def test_without_ranks_by_name(tool, tmp_path):
    for i, pid in ((0, 10), (1, 9), (2, 100)):
        write(tmp_path / "run", f"run.{pid}.gmt", script(None, world=0))
    said = tool.json("report", tmp_path / "run")
    assert [r["file"].rsplit("/")[-1] for r in said["ranks"]] == ["run.9.gmt", "run.10.gmt", "run.100.gmt"]
    assert all("rank" not in r for r in said["ranks"])
    assert re.search(r"^  run\.9\.gmt ", tool("report", tmp_path / "run"), re.M)


def test_python_is_needed_for_several_only(tool, tmp_path):
    run = run_of(tmp_path / "run", ranks=2)

    def without_python(*args):
        return subprocess.run([tool.path, *map(str, args)], capture_output=True, text=True, env={"PATH": str(tmp_path)})
    several, one, rank = without_python("report", run), without_python("report", run / "run.0.gmt"), without_python("report", run, "--rank", 1)
    assert several.returncode == 2 and "several recordings are compared by Python 3.9 or later" in several.stderr
    assert (one.returncode, one.stderr, rank.returncode, rank.stderr) == (0, "", 0, "")


def test_a_program_of_another_version_in_front_is_passed_over(tool, tmp_path):
    """A `python3` that is none, or too old, does not end the command: the next one answers."""
    run = run_of(tmp_path / "run", ranks=2)
    (tmp_path / "bin").mkdir()
    false = tmp_path / "bin/python3"
    false.write_text("#!/bin/sh\nexit 97\n")
    false.chmod(0o755)
    (tmp_path / "bin/python").symlink_to(sys.executable)
    done = subprocess.run([tool.path, "report", run], capture_output=True, text=True, env={"PATH": f"{tmp_path}/bin:/bin:/usr/bin"})
    assert (done.returncode, done.stderr) == (0, "") and "2 ranks" in done.stdout


def test_other_files_are_left_alone_and_counted(tool, tmp_path):
    run = run_of(tmp_path / "run")
    (run / "train.log").write_text("loss 1.0\n")
    (run / "run.0.gmt.live").write_bytes(b"")
    (run / ".hidden.gmt").write_bytes(b"x")
    (run / "checkpoints").mkdir()
    shutil.copy(run / "run.3.gmt", run / "three")  # a recording by its content
    (run / "run.3.gmt").unlink()
    said = tool.json("report", run)
    assert [r["rank"] for r in said["ranks"]] == [0, 1, 2, 3] and said["other_files"] == 1
    assert said["left_alone"] == [str(run / "train.log")]
    assert "Not read: 1 other file in the folder\n" in tool("report", run)


def test_a_recording_that_breaks_off_before_any_memory_is_an_empty_row(tool, tmp_path):
    whole = ROOT / "tests/data/example/old.gmt"
    shutil.copy(whole, tmp_path / "a.gmt")
    (tmp_path / "b.gmt").write_bytes(whole.read_bytes()[:300])
    text = tool("report", tmp_path)
    assert "2 recordings" in text and re.search(r"^  a\.gmt .*GiB", text, re.M) and re.search(r"^  b\.gmt *$", text, re.M), text
    assert [len(row["devices"]) for row in tool.json("report", tmp_path)["ranks"]] == [1, 0]


@pytest.mark.parametrize("cut,words", [([2], "The file of rank 2 has no end or is damaged"), ([0, 1, 3], "The files of ranks 0-1, 3 have no end or are damaged")])
def test_ranks_that_have_only_a_part_of_their_run_are_named(tool, tmp_path, cut, words):
    run = run_of(tmp_path / "run")
    for command in ["report", "peak", "leaks", "steps"]:
        assert "no end" not in tool(command, run)
    for rank in cut:
        path = run / f"run.{rank}.gmt"
        path.write_bytes(path.read_bytes()[:-8])
    for command in ["report", "peak", "leaks", "steps"]:
        assert words in tool(command, run).replace("\n", " ")


def test_a_broken_recording_spoils_nothing(tool, tmp_path):
    run = run_of(tmp_path / "run")
    (run / "run.1.gmt").write_bytes(b"")
    (run / "run.2.gmt").write_bytes(b"no recording at all" * 10)
    said = tool.json("report", run)
    assert [r["rank"] for r in said["ranks"]] == [0, 1, 2, 3]
    assert ["error" in r for r in said["ranks"]] == [False, True, True, False]
    assert str(run / "run.1.gmt") in said["ranks"][1]["error"] and said["totals"]["ranks"] == 2
    text = tool("report", run)
    assert re.search(r"^  1  \S*run\.1\.gmt: empty file", text, re.M) and re.search(r"^  2  \S*run\.2\.gmt: ", text, re.M), text
    assert failed(tool, "verify", run)[0] == 1
    for rank in (0, 3):
        (run / f"run.{rank}.gmt").write_bytes(b"")
    code, said = failed(tool, "report", run)
    assert code == 3 and "of 4 recordings none gives an answer" in said


def test_folders_without_a_recording(tool, tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path, tmp_path / "empty"):
        for command in ("report", "leaks", "oom", "stack", "html"):
            more = ["-o", tmp_path / "x.html"] if command == "html" else []
            code, said = failed(tool, command, folder, *more)
            assert code == 3 and said.endswith("no recording (*.gmt) in this folder\n"), (command, said)
    assert failed(tool, "report", tmp_path / "nowhere")[0] == 3


def test_a_folder_for_each_host(tool, tmp_path):
    for rank in range(4):
        (tmp_path / "run").mkdir(exist_ok=True)
        write(tmp_path / "run" / f"node{rank // 2}", f"{rank}.gmt", script(rank).replace("host one", f"host node{rank // 2}"))
    code, said = failed(tool, "report", tmp_path / "run")
    assert code == 3 and re.search(r"in a folder in it: name \S+/run/node[01], or several", said)
    said = tool.json("report", tmp_path / "run/node1", tmp_path / "run/node0")
    assert [r["rank"] for r in said["ranks"]] == [0, 1, 2, 3]
    assert {h["host"]: (h["ranks"], h["peak_bytes"]) for h in said["totals"]["hosts"]} == {f"node{i}": (2, 24 * MIB) for i in (0, 1)}
    assert "4 ranks on 2 hosts" in tool("report", tmp_path / "run/node1", tmp_path / "run/node0")


def test_of_two_runs_the_last_is_taken_and_that_is_said(tool, tmp_path):
    run = tmp_path / "run"
    for nth, start in enumerate((1000, 5000)):
        for rank in range(4):
            if (nth, rank) != (0, 2):  # of the first run one recording is missing
                write(run, f"run.{rank}.{nth}.gmt", script(rank, start=start + rank, activations=8 + 2 * nth))
    said = tool.json("report", run)
    assert [r["file"][-5] for r in said["ranks"]] == ["1"] * 4
    assert said["note"].startswith("2 runs are in this folder: 3 recordings of 1970-01-01 00:16:40 UTC") and "4 recordings of 1970-01-01 01:23:20" in said["note"]
    assert said["other_files"] == 3
    assert "2 runs are in this folder" in tool("report", run) and "name its files" in " ".join(tool("report", run).split())
    assert len(tool.json("report", *run.glob("*.0.gmt"))["ranks"]) == 3
    code, said = failed(tool, "report", *run.glob("run.1.*.gmt"))
    assert code == 2 and "are both of rank 1: two runs" in said


def test_folders_of_two_runs_by_name(tool, tmp_path):
    """Those who look at each recording alone look at all; oom explains one run and says so; the others say which they take."""
    (tmp_path / "x").mkdir()
    run_of(tmp_path / "x/old", ranks=2, every={"activations": 8})
    run_of(tmp_path / "x/new", ranks=2, every={"start": 5000}, r0={"activations": 20, "oom": True})
    write(tmp_path / "x/one", "a.gmt", script(None, world=0))
    folders = [tmp_path / "x" / name for name in ("old", "new", "one")]
    files = [folders[0] / "run.0.gmt", folders[0] / "run.1.gmt", folders[1] / "run.0.gmt", folders[1] / "run.1.gmt", folders[2] / "a.gmt"]
    said = tool.json("verify", *folders)
    assert [r["file"] for r in said["ranks"]] == list(map(str, files)) and "note" not in said and said["missing"] == []
    text = tool("verify", *folders)
    assert text.startswith("5 recordings of 3 runs\n")
    assert re.findall(r"^  (\S+ of \S+)  ", text, re.M) == ["0 of old", "1 of old", "0 of new", "1 of new", "a.gmt of one"]
    done = subprocess.run([tool.path, "check", *folders, "--max-peak", "14MiB", "--json"], capture_output=True, text=True)
    assert done.returncode == 1 and [(r["file"], r["ok"]) for r in json.loads(done.stdout)["recordings"]] == [(str(f), f != files[2]) for f in files]
    for ranks in ([0], [1]):
        done = subprocess.run([tool.path, "check", *folders[:2], "--max-peak", "14MiB", "--rank", str(ranks[0]), "--json"], capture_output=True, text=True)
        assert [r["file"] for r in json.loads(done.stdout)["recordings"]] == [str(f) for f in files[:4] if f.name == f"run.{ranks[0]}.gmt"]
    code, words = failed(tool, "verify", *folders, "--rank", "0")
    assert code == 2 and "name the folder of one" in words
    for named in (folders[:2], folders[1:]):
        code, words = failed(tool, "oom", *named)
        assert code == 2 and words == f"gpumemtrace oom: oom explains one run, and 2 are named ({named[0]}, {named[1]}): name one of them\n"
    assert tool.json("oom", folders[1])["rank"] == "rank 0"
    said = tool.json("report", *folders[:2])
    assert [r["file"] for r in said["ranks"]] == list(map(str, files[2:4])) and said["note"].startswith("2 runs are in these folders: ")
    assert len(tool.json("verify", folders[0], folders[0])["ranks"]) == 2
    assert [r["file"] for r in tool.json("verify", files[0], files[2])["ranks"]] == [str(files[0]), str(files[2])]


def test_files_of_different_runs_are_said_to_be(tool, tmp_path):
    """By what a run has once; commands, hosts, and what one does not say are no sign."""
    job = {"facts": ["env.MASTER_ADDR node1", "env.MASTER_PORT 29500", "env.SLURM_JOB_ID 17"]}
    zero = write(tmp_path / "run", "0.gmt", script(0, **job))
    for nth, (other, why) in enumerate([
            ({"world": 8}, "WORLD_SIZE is 4 in {} and 8 in {}"), ({"facts": [*job["facts"][:2], "env.SLURM_JOB_ID 18"]}, "SLURM_JOB_ID is 17 in {} and 18 in {}"),
            ({"facts": ["env.MASTER_ADDR node1", "env.MASTER_PORT 29501"]}, "MASTER_PORT is 29500 in {} and 29501 in {}"), ({"start": 1601}, "{1} began 10 min 01 s after {0}"),
            ({"start": 1599}, None), ({"facts": ["argv eval.py", "host other", "env.MASTER_ADDR localhost"]}, None)]):
        one = write(tmp_path / "run", f"1.{nth}.gmt", script(1, **{**job, **other}))
        note = f"These files are of different runs: {why.format(zero, one)}. " if why else None
        assert tool.json("report", zero, one).get("note") == note, other
        said = failed(tool, "oom", one, zero)[1]
        assert ("These files are of different runs" in said) == bool(why), said
    for rank in (0, 1):
        write(tmp_path / "run", f"host{rank}.gmt", script(rank, facts=["env.MASTER_ADDR 127.0.0.1"]).replace("host one", f"host node{rank}"))
    note = tool.json("report", tmp_path / "run/host0.gmt", tmp_path / "run/host1.gmt")["note"]
    assert "MASTER_ADDR is the host itself, which is node0 of" in note and "and node1 of" in note


# of two recordings without a rank: what the second has -> why they are not of one run
APART = {
    "long after": ({"start": 1000 + 49 * 60, "facts": ["argv train.py"]}, "{1} began 49 min 00 s after {0}"),
    "another program": ({"start": 1100, "facts": ["argv other.py --lr 1"]}, "{0} is of train.py and {1} of other.py --lr 1"),
    "both": ({"start": 4000, "facts": ["argv other.py"]}, "{1} began 50 min 00 s after {0}"),
    "another module": ({"start": 1100, "facts": ["argv python -m train.py"]}, "{0} is of train.py and {1} of python -m train.py"),
    "other arguments": ({"start": 1100, "facts": ["argv train.py --device 1"]}, None),
    "a process that it started": ({"start": 9000, "parent": 4242, "facts": ["argv evaluate.py"]}, None),
    "it does not say": ({"start": 1100}, None),
    "one launcher": ({"start": 1100, "facts": ["argv other.py", "env.MASTER_PORT 7"]}, None),
}


@pytest.mark.parametrize("name", APART)
def test_recordings_without_a_rank_that_are_of_different_runs(tool, tmp_path, name):
    """Of a folder the last run is taken; one page explains one run; the others say what does not belong together."""
    other, why = APART[name]
    first = {"facts": ["argv train.py", *(["env.MASTER_PORT 7"] if name == "one launcher" else [])]}
    paths = [write(tmp_path / "run", f"{n}.gmt", script(None, world=0, **more)) for n, more in (("a", first), ("b", other))]
    said, text = tool.json("report", tmp_path / "run"), " ".join(tool("report", tmp_path / "run").split())
    note = tool.json("report", *paths).get("note")
    if why is None:
        assert [r["file"] for r in said["ranks"]] == list(map(str, paths)) and "note" not in said and note is None
        tool("html", *paths, "-o", tmp_path / "x.html")
        return
    assert [r["file"] for r in said["ranks"]] == [str(paths[1])]
    assert said["note"].startswith("2 runs are in this folder: 1 recording of 1970-01-01 00:16:40 UTC (train.py), 1 recording of ")
    assert "The last one is taken" in text and "for another one name its files" in text
    assert note == f"These files are of different runs: {why.format(*paths)}. "
    for command in (["html", *paths, "-o", tmp_path / "x.html"], ["oom", *paths]):
        code, said = failed(tool, *command)
        assert (code, said) == (2, f"gpumemtrace {command[0]}: {command[0]} explains one run. {note.strip()} Name the files of one, or compare "
                                   "two: gpumemtrace diff OLD NEW\n")
    assert not (tmp_path / "x.html").exists()


def test_three_recordings_of_two_runs_and_one_that_breaks_off(tool, tmp_path):
    """Each within ten minutes of another is one run; of a file that breaks off at once nothing tells it apart."""
    for name, start, program in (("a", 1000, "train"), ("b", 1500, "train"), ("c", 2000, "train"), ("d", 1500, "other")):
        write(tmp_path / "run", f"{name}.gmt", script(None, world=0, start=start, facts=[f"argv {program}.py"]))
    (tmp_path / "run/e.gmt").write_bytes((tmp_path / "run/a.gmt").read_bytes()[:300])
    said = tool.json("report", tmp_path / "run")
    assert [r["file"][-5] for r in said["ranks"]] == ["d", "e"]
    assert said["note"].startswith("2 runs are in this folder: ")


def test_two_jobs_at_the_same_time(tool, tmp_path):
    for port, start in ((1, 2000), (2, 2001)):
        for rank in range(2):
            write(tmp_path / "run", f"{port}.{rank}.gmt", script(rank, world=2, start=start + 2 * rank, facts=[f"env.MASTER_PORT {port}"]))
    said = tool.json("peak", tmp_path / "run")
    assert [r["file"][-7:] for r in said["ranks"]] == ["2.0.gmt", "2.1.gmt"] and "2 runs are in this folder" in said["note"]


def test_one_job_begun_twice_or_on_two_hosts(tool, tmp_path):
    """Ranks that began long apart are of two runs, though no rank comes twice; so are those of two hosts that met at their own address."""
    for rank, start in ((0, 1000), (1, 1001), (2, 1700), (3, 1701)):
        write(tmp_path / "apart", f"{rank}.gmt", script(rank, start=start))
        write(tmp_path / "slow", f"{rank}.gmt", script(rank, start=1000 + 599 * rank))
        for host in "ab":
            address = ["env.MASTER_ADDR 127.0.0.1", "env.MASTER_PORT 29500"]
            write(tmp_path / "hosts", f"{host}{rank}.gmt", script(rank, start=2000 + rank, facts=address).replace("host one", f"host node-{host}"))
    said = tool.json("peak", tmp_path / "apart")
    assert [r["file"][-5:] for r in said["ranks"]] == ["2.gmt", "3.gmt"] and said["note"].startswith("2 runs are in this folder: 2 recordings of ")
    assert len(tool.json("peak", tmp_path / "slow")["ranks"]) == 4
    said = tool.json("peak", tmp_path / "hosts")
    assert len({r["file"][-6] for r in said["ranks"]}) == 1 and len(said["ranks"]) == 4 and said["note"].startswith("2 runs are in this folder: 4 recordings of ")


def test_ranks_of_a_simulated_world_that_ran_by_themselves(tool, tmp_path):
    """Each has a port of its own, at which something answers for the other ranks. They are one run, until a rank comes again; a port
    that two ranks share is where they met, and ranks of a machine's own cards meet always."""

    def alone(folder, name, rank, start, port, world=64, command="train.py", facts=("env.SIMGPU_RANKS alone",)):
        write(tmp_path / folder, name, script(rank, world=world, start=start, facts=[
            "env.SIMGPU_CARD h100-80g", "env.SIMGPU_COUNT 8", "env.MASTER_ADDR 127.0.0.1", f"env.MASTER_PORT {port}", f"argv {command}", *facts]))

    for nth, rank in enumerate((0, 32, 63)):
        alone("one", f"{rank}.gmt", rank, 1000 + 300 * nth, 5000 + nth)
        alone("again", f"old.{rank}.gmt", rank, 1000 + nth, 5000 + nth)
        alone("again", f"new.{rank}.gmt", rank, 3000 + nth, 6000 + nth)
        alone("large", f"{rank}.gmt", rank, 1000 + nth, 5000 + nth, facts=())  # more ranks than devices
        alone("fits", f"{rank}.gmt", rank, 1000 + nth, 5000 + nth, facts=["env.SIMGPU_WORLD 0,32,63:/x/a.messages"])
        alone("fits", f"b.{rank}.gmt", rank, 1000 + nth, 6000 + nth, facts=["env.SIMGPU_WORLD 0,32,63:/x/b.messages"])
        alone("met", f"a.{rank}.gmt", rank, 1000 + nth, 5000)
        alone("met", f"b.{rank}.gmt", rank, 1001 + nth, 6000)
        alone("others", f"{rank}.gmt", rank, 1000 + nth, 5000 + nth, command=f"train{nth}.py")
        write(tmp_path / "cards", f"{rank}.gmt", script(rank, world=64, start=1000 + nth, facts=[f"env.MASTER_PORT {nth}"]))
    for folder, ranks, runs in (("one", [0, 32, 63], 1), ("again", [0, 32, 63], 2), ("large", [0, 32, 63], 1), ("fits", [0, 32, 63], 2),
                                ("met", [0, 32, 63], 2), ("others", [63], 3), ("cards", [63], 3)):
        said = tool.json("report", tmp_path / folder)
        assert [r["rank"] for r in said["ranks"]] == ranks, folder
        assert said.get("note", "1 run").startswith(f"{runs} run"), (folder, said.get("note"))
    assert "The other 61 of 64 ranks were simulated, not run." in tool("report", tmp_path / "one")
    assert {r["file"].rsplit("/")[-1][:3] for r in tool.json("report", tmp_path / "again")["ranks"]} == {"new"}
    assert tool.json("live", tmp_path / "one", "--rank", "32") == tool.json("live", tmp_path / "one/32.gmt")


def test_a_program_that_runs(tool, tmp_path):
    """What is not in the recording yet lies beside it: one row, whether there is anything in the first or not."""
    golden = ROOT / "tests/data/v1"
    (tmp_path / "run").mkdir()
    for name in ("killed.gmt", "killed.gmt.live"):
        shutil.copy(golden / name, tmp_path / "run" / name)
    shutil.copy(golden / "killed.gmt.live", tmp_path / "run/late.gmt.live")
    rows = tool.json("info", tmp_path / "run")["ranks"]
    assert [r["file"].rsplit("/")[-1] for r in rows] == ["killed.gmt", "late.gmt.live"]
    assert rows[0]["events"] == tool.json("info", golden / "killed.gmt")["events"] > rows[1]["events"] > 0


def test_what_a_rank_starts_is_no_rank(tool, tmp_path):
    run = run_of(tmp_path / "run")
    pid = tool.json("info", run / "run.1.gmt")["pid"]
    write(run, "run.1.4711.gmt", script(1, start=1500, parent=pid))
    said = tool.json("report", run)
    assert [r["file"] for r in said["ranks"]] == [str(run / f"run.{i}.gmt") for i in range(4)]
    assert "run.1.4711.gmt is of a process that rank 1 started" in said["note"]


def test_a_batch_scripts_task_number_is_no_rank(tool, tmp_path):
    for i in range(3):
        write(tmp_path / "run", f"{i}.gmt", script(None, world=0, facts=["env.SLURM_PROCID 0"]))
    assert all("rank" not in r for r in tool.json("report", tmp_path / "run")["ranks"])
    for i in range(3):
        write(tmp_path / "srun", f"{i}.gmt", script(None, world=0, facts=[f"env.SLURM_PROCID {2 - i}"]))
    assert [r["file"][-5] for r in tool.json("report", tmp_path / "srun")["ranks"]] == ["2", "1", "0"]


# One rank


def test_rank_chooses_one(tool, tmp_path):
    run = run_of(tmp_path / "run", r2={"activations": 14})
    for command in (["report"], ["live"], ["stack", "1"], ["flame"], ["steps"], ["dump"], ["why", hex(1 << 28)]):
        here = [command[0], run, *command[1:]]
        for form in ([], ["--json"]):
            assert tool(*here, "--rank", "2", *form) == tool(command[0], run / "run.2.gmt", *command[1:], *form), command


def test_what_only_one_recording_can_answer(tool, tmp_path):
    run = run_of(tmp_path / "run")
    for command in (["stack", run, "1"], ["why", run, "0x10"], ["flame", run], ["dump", run], ["export", run, "-t", "csv", "-o", "-"],
                    ["recover", run, "-o", tmp_path / "x.gmt"], ["top", run]):
        code, said = failed(tool, *command)
        assert code == 2 and said.count("\n") == 1 and "--rank N" in said and "ranks 0-3" in said, (command, said)
    assert failed(tool, "report", run, "--rank", "9")[0] == 2
    assert "no recording of rank 9; there are those of 0-3" in failed(tool, "report", run, "--rank", "9")[1]
    assert "number from 0 up" in failed(tool, "report", run, "--rank", "x")[1]
    assert failed(tool, "report", run / "run.1.gmt", "--rank", "2")[0] == 2
    assert tool("report", run / "run.1.gmt", "--rank", "1") == tool("report", run / "run.1.gmt")


def test_export_writes_a_file_for_each(tool, tmp_path):
    run = run_of(tmp_path / "run", r2={"activations": 14})
    said = tool.json("export", run, "-t", "csv", "-o", f"{tmp_path}/out/")
    written = [tmp_path / f"out/rank-{rank}.csv" for rank in range(4)]
    assert [r["file"] for r in said["ranks"]] == [str(w) for w in written]
    assert said["totals"]["file_bytes"] == sum(w.stat().st_size for w in written)
    for rank, file in enumerate(written):
        tool("export", run, "--rank", rank, "-t", "csv", "-o", tmp_path / "one.csv")
        assert file.read_bytes() == (tmp_path / "one.csv").read_bytes()
    assert "rank-3.csv" in tool("export", run, "-t", "csv", "-o", tmp_path / "out")
    code, why = failed(tool, "export", run, "-t", "csv", "-o", tmp_path / "file.csv")
    assert code == 2 and "-o FOLDER/" in why


def test_no_two_files_of_an_export_have_one_name(tool, tmp_path):
    """Recordings without a rank: one file name in several folders, names that differ before their last point, one named
    twice, one that is named like another's rank. Each file has its own recording's rows."""
    given = ["a/run.gmt", "b/run.gmt", "b/c/run.gmt", "a/run.1.gmt", "a/run.2.gmt", "a/run.2.gmt", "a/c/run.gmt", "run.gmt", "run-2.gmt"]
    for path in set(given):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path / path.rpartition("/")[0], path.rpartition("/")[2], script(None, world=1, activations=5 + sorted(set(given)).index(path)))
    done = subprocess.run([tool.path, "export", *given, "-t", "csv", "-o", "out/", "--json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)["ranks"]
    written = {"a-run": "a/run", "b-run": "b/run", "b-c-run": "b/c/run", "run.1": "a/run.1", "a-run.2": "a/run.2", "a-run.2-2": "a/run.2",
               "a-c-run": "a/c/run", "run": "run", "run-2": "run-2"}
    assert sorted(r["file"] for r in rows) == sorted(f"out/{name}.csv" for name in written)
    for name, of in written.items():
        tool("export", tmp_path / f"{of}.gmt", "-t", "csv", "-o", tmp_path / "one.csv")
        assert (tmp_path / f"out/{name}.csv").read_bytes() == (tmp_path / "one.csv").read_bytes(), name
    here = tmp_path / "here"
    write(here, "rank-0.gmt", script(None))
    write(here, "ranked.gmt", script(0))
    said = tool.json("export", here / "rank-0.gmt", here / "ranked.gmt", "-t", "csv", "-o", f"{tmp_path}/two/")
    assert len({r["file"] for r in said["ranks"]}) == 2 == len(list((tmp_path / "two").iterdir()))


def test_page_and_oom_of_a_folder(tool, tmp_path):
    run = run_of(tmp_path / "run", r1={"oom": True})
    (run / "run.2.gmt").write_bytes(b"")
    tool("html", run, "-o", tmp_path / "x.html")
    tool("html", run, "--rank", "1", "-o", tmp_path / "one.html")
    assert (tmp_path / "x.html").stat().st_size > (tmp_path / "one.html").stat().st_size
    said = tool.json("oom", run)
    assert said["rank"] == "rank 1" and len(said["ranks"]) == 3
    assert tool.json("oom", run, "--rank", "1")["asked_bytes"] == said["asked_bytes"]
    code, words = failed(tool, "oom", run, "--rank", "0")
    assert code == 1 and "did not run out" in words


def test_documents_say_what_takes_a_folder():
    """Each command that takes recordings stands where the documents say what it makes of several."""
    table = dict(re.findall(r"^COMMAND\((\w+), \w+, (\w+),", (ROOT / "viewer/ask/commands.def").read_text(), re.M))
    of = {kind: sorted(c for c, k in table.items() if k in kinds) for kind, kinds in (("rows", ["ROWS"]), ("one", ["ONE", "FILES"]))}
    for page in ("docs/questions/many-ranks.md", "docs/man/gpumemtrace.1.md"):
        text = " ".join((ROOT / page).read_text().split())
        rows = re.search(r"- ((?:`\w+`(?:, | and )?)+)(?:: a row| print a row) for each rank", text)[1]
        one = re.search(r"- ((?:`\w+`(?:, | and )?)+) (?:answer for|work on) one (?:rank|recording)", text)[1]
        assert [sorted(re.findall(r"\w+(?=`)", found)) for found in (rows, one)] == [of["rows"], of["one"]], page
        assert all(f"`{command}" in text for command, kind in table.items() if kind in ("ALL", "PAIRS")), page


# Two runs


def test_diff_of_two_folders(tool, tmp_path):
    old = run_of(tmp_path / "old")
    new = run_of(tmp_path / "new", every={"activations": 12}, r2={"activations": 20})
    said = tool.json("diff", old, new)
    assert [(r["rank"], r["delta"]) for r in said["ranks"]] == [(0, 4 * MIB), (1, 4 * MIB), (2, 12 * MIB), (3, 4 * MIB)]
    for r in said["ranks"]:
        alone = tool.json("diff", old / f"run.{r['rank']}.gmt", new / f"run.{r['rank']}.gmt")
        assert {k: r[k] for k in alone} == alone
    assert said["worst"]["rank"] == 2 and said["shared"][0] == {"finding": 1, "ranks": 4}
    assert said["totals"]["delta"] == 24 * MIB and [s["rank"] for s in said["stray"]] == [2]
    text = tool("diff", old, new)
    assert "The most growth, or the least shrinking: rank 2" in text and "Finding 1: all 4 ranks have it." in text
    worst = old / "run.2.gmt", new / "run.2.gmt"
    assert text.endswith(tool("diff", *worst))
    comment = tool("diff", old, new, "--markdown")
    assert comment.startswith("```\n4 ranks") and comment.count("```") == 2 and comment.endswith("rank 2\n\n" + tool("diff", *worst, "--markdown"))
    for form in ([], ["--json"]):
        tool("diff", old, new, "-o", tmp_path / "x.html", *form)
        assert "run.2.gmt" in (tmp_path / "x.html").read_text()
        (tmp_path / "x.html").unlink()
    assert failed(tool, "diff", old, new, "--json", "--markdown")[0] == 2


def test_fail_above_counts_the_worst(tool, tmp_path):
    old, new = run_of(tmp_path / "old"), run_of(tmp_path / "new", r2={"activations": 10})
    assert failed(tool, "diff", old, new, "--fail-above", "3MiB")[0] == 0
    for form in ([], ["--json"], ["--markdown"]):
        code, said = failed(tool, "diff", old, new, "--fail-above", "1MiB", *form)
        assert code == 1 and "12.0 MiB to 14.0 MiB" in said, (form, said)
    assert failed(tool, "diff", old, new, "--fail-above", "1MiB", "--rank", "1")[0] == 0
    assert failed(tool, "diff", old, new, "--fail-above", "1MiB", "--rank", "2")[0] == 1


def test_diff_where_ranks_are_missing(tool, tmp_path):
    old, new = run_of(tmp_path / "old", ranks=3), run_of(tmp_path / "new", ranks=4)
    (new / "run.1.gmt").unlink()
    said = tool.json("diff", old, new)
    assert [(r["rank"], "error" in r) for r in said["ranks"]] == [(0, False), (2, False), (3, True)]
    assert "the new run has no recording of: 1" in subprocess.run([tool.path, "diff", old, new], capture_output=True, text=True).stderr
    code, words = failed(tool, "diff", old, new / "run.0.gmt")
    assert code == 2 and "is a folder and" in words


# A real one


def test_two_ranks_of_torchrun(programs, tool):
    """PyTorch's own counters of each rank are what the rows say."""
    done = programs("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", programs.workload("distributed.py"),
                    ".", "fsdp", count=2, GPUMEMTRACE_OUTPUT="run.%r.gmt")
    assert done.returncode == 0, done.stderr[-3000:]
    truth = [json.loads((programs.folder / f"truth.{i}.json").read_text())["marks"][-1]["devices"][0] for i in range(2)]
    said = tool.json("report", programs.folder)
    assert [r["rank"] for r in said["ranks"]] == [0, 1] and said["missing"] == [] and "note" not in said
    assert [r["devices"][0]["peak_bytes"] for r in said["ranks"]] == [t["max_allocated"] for t in truth]
    assert [r["devices"][0]["peak_reserved_bytes"] for r in said["ranks"]] == [t["max_reserved"] for t in truth]
    assert said["totals"]["peak_bytes"] == sum(t["max_allocated"] for t in truth)
    for command in ("steps", "leaks", "account", "modules", "timeline", "live", "peak", "info", "verify"):
        tool(command, programs.folder)
    assert all(r["delta"] == 0 for r in tool.json("diff", programs.folder, programs.folder)["ranks"])

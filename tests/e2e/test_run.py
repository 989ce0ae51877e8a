# SPDX-License-Identifier: Apache-2.0
"""`gpumemtrace run`: where the recording lies, what is cleared before, and what is said when there is none."""
import json
import os
import socket
import subprocess
import sys
import time

import json_page
import pytest
import toy
from conftest import NO_CARD, TABLES

PROGRAM = os.path.join(toy.ROOT, "build/programs/lifecycle")
SEEN = "gpumemtrace: nothing was recorded: no CUDA allocation in "


@pytest.fixture(scope="session", autouse=True)
def cudart(tmp_path_factory):
    subprocess.run(["make", "-s", "build/programs/lifecycle"], cwd=toy.ROOT, check=True)
    return toy.build_cudart(tmp_path_factory.mktemp("cudart"))


@pytest.fixture
def run(cudart, tmp_path):
    def start(*args, json_too=False, code=0, **env):
        full = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_"))}
        full.update(LD_PRELOAD=cudart, LOG=str(tmp_path / "log"), **env)
        done = subprocess.run([toy.TOOL, "run", *map(str, args)], env=full, cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert done.returncode == code, done.stderr
        return done.stderr
    return start


def names(folder):
    return sorted(p.name for p in folder.glob("**/*.gmt*"))


def plain(folder, name="t"):
    """A program that does nothing."""
    (folder / "t.c").write_text("int main(void) { return 0; }\n")
    out = folder / name
    subprocess.run(["gcc", "-o", out, folder / "t.c"], check=True)
    return out


def test_the_program_goes_elsewhere(run, tmp_path):
    (tmp_path / "sub").mkdir()
    said = run("-o", "x.gmt", "--", "sh", "-c", f"cd sub && {PROGRAM} plain")
    assert said.startswith("gpumemtrace: x.gmt, 4 events;") and names(tmp_path) == ["x.gmt"]
    said = run("--", "sh", "-c", f"cd sub && {PROGRAM} plain")
    assert said.startswith("gpumemtrace: gpumemtrace.") and len(names(tmp_path)) == 2 and not list((tmp_path / "sub").iterdir())


def test_a_sentence_is_one_write():
    """Several runs print into one log, as those of `fit --ranks` do: what one says is not torn by the others."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)  # each write is a message
    with ours, theirs:
        subprocess.run([toy.TOOL, "report", "no/such/file.gmt"], stderr=theirs, timeout=600)
        assert ours.recv(4096) == b"gpumemtrace report: no/such/file.gmt: No such file or directory\n"


def test_a_folder_with_percent_signs(run, tmp_path):
    odd = tmp_path / "100%p [a]*"
    odd.mkdir()
    said = run("sh", "-c", f"cd '{odd}' && {toy.TOOL} run -o y.%r.gmt {PROGRAM} plain && {toy.TOOL} run -o y.%r.gmt {PROGRAM} plain")
    assert said.count("gpumemtrace: y.0.gmt, ") == 2 and os.listdir(odd) == ["y.0.gmt"]


def test_twice_under_one_name(run, tmp_path):
    """Each process's file of the run before is gone; what is not that run's stays."""
    for pattern, name in [("x.gmt", "x"), ("x.%r.gmt", "x.0"), ("x.%h.%r", None)]:
        assert " and 2 more files, " in run("-o", pattern, "--", PROGRAM, "fork")
        if name:
            (tmp_path / f"{name}.77777.gmt").write_bytes((tmp_path / f"{name}.gmt").read_bytes())  # no file of process 77777
            (tmp_path / f"{name}.1234.gmt").write_text("mine")
            (tmp_path / f"{name}.old.gmt").write_bytes((tmp_path / f"{name}.gmt").read_bytes())
        assert " more file" not in run("-o", pattern, "--", PROGRAM, "plain")
        if name:
            assert names(tmp_path) == sorted(f"{name}{end}.gmt" for end in ("", ".77777", ".1234", ".old"))
        for path in tmp_path.glob("x*"):
            path.unlink()


def test_names_with_a_process_id_pile_up(run, tmp_path):
    for _ in range(2):
        run("-o", "x.%p.gmt", "--", PROGRAM, "plain")
    assert len(names(tmp_path)) == 2


def test_several_ranks_are_named_by_their_folder(run, tmp_path):
    """The next command takes the whole run; processes of one rank, or ranks in several folders, have none."""
    ranks = f"for i in 0 1 2; do RANK=$i WORLD_SIZE=3 MASTER_PORT=5 {PROGRAM} plain; done"
    (tmp_path / "ranks").mkdir()
    for pattern, folder in [("ranks/%r.gmt", "ranks/"), ("x.%r.gmt", "./")]:
        said = run("-o", pattern, "--", "sh", "-c", ranks)
        assert said.startswith(f"gpumemtrace: 3 recordings of 3 ranks in {folder}; ") and said.endswith(f"next: gpumemtrace report {folder}\n"), said
        report = subprocess.run([toy.TOOL, *said.rsplit("gpumemtrace ", 1)[1].split()], cwd=tmp_path, capture_output=True, text=True)
        assert report.returncode == 0 and "3 ranks" in report.stdout, report.stderr
    document = json.loads(run("--json", "-o", "ranks/%r.gmt", "--", "sh", "-c", ranks))
    assert document["folder"] == "ranks/" and document["files"] == 3 and json_page.check(TABLES, "run", document) == []
    assert "report x.0.gmt" in run("-o", "x.%r.gmt", "--", PROGRAM, "fork", RANK="0", WORLD_SIZE="3")
    for i in range(3):
        (tmp_path / str(i)).mkdir()
    said = run("-o", "%r/x.gmt", "--", "sh", "-c", ranks)
    assert "and 2 more files" in said and "/x.gmt\n" in said


def test_only_the_own_rank_is_cleared(run, tmp_path):
    for rank in "01":
        run("-o", "x.%r.gmt", "--", PROGRAM, "plain", RANK=rank)
    assert names(tmp_path) == ["x.0.gmt", "x.1.gmt"]
    old = (tmp_path / "x.0.gmt").stat().st_mtime_ns
    run("-o", "x.%r.gmt", "--", PROGRAM, "plain", RANK="1")
    assert (tmp_path / "x.0.gmt").stat().st_mtime_ns == old and len(names(tmp_path)) == 2
    run("-o", "x.%r.gmt", "--", PROGRAM, "plain")
    assert names(tmp_path) == ["x.0.gmt"]


def test_no_other_file_is_touched(run, tmp_path):
    (tmp_path / "x.0.gmt").write_text("mine")
    said = run("-o", "x.%r.gmt", "--", PROGRAM, "plain", code=2)
    assert "x.0.gmt exists and is not a recording" in said and (tmp_path / "x.0.gmt").read_text() == "mine"
    assert f"there is no folder {tmp_path}/no; make it first: mkdir -p {tmp_path}/no\n" in run("-o", "no/x.%r.gmt", PROGRAM, "plain", code=3)
    assert names(tmp_path) == ["x.0.gmt"]


def test_what_is_being_written_stays(run, cudart, tmp_path):
    env = dict(os.environ, LOG=str(tmp_path / "other"), GPUMEMTRACE_OUTPUT=str(tmp_path / "x.gmt"), LD_PRELOAD=toy.SHIM + ":" + cudart)
    other = subprocess.Popen([PROGRAM, "churn"], env=env)
    try:
        while not (tmp_path / "x.gmt.live").exists() or not (tmp_path / "x.gmt").stat().st_size:
            time.sleep(0.01)
        inode = (tmp_path / "x.gmt").stat().st_ino
        said = run("-o", "x.gmt", "--", PROGRAM, "plain")
        assert said.startswith("gpumemtrace: x.") and not said.startswith("gpumemtrace: x.gmt")
        assert (tmp_path / "x.gmt").stat().st_ino == inode
    finally:
        other.kill()
        other.wait()
    assert run("-o", "x.gmt", "--", PROGRAM, "plain").startswith("gpumemtrace: x.gmt, 4 events;")
    assert names(tmp_path) == ["x.gmt"]  # its other name was the first run's second choice


def test_why_there_is_none(run, tmp_path):
    program = plain(tmp_path)
    assert run(program) == SEEN + "t, the only program that loaded the library" + NO_CARD + "\n"
    assert run("sh", "-c", f"{program}; cat /dev/null; {program}") == (
        SEEN + "the programs that loaded the library: sh, t and cat" + NO_CARD + "\n")
    assert run("env", "-u", "LD_PRELOAD", program) == SEEN + "env, the only program that loaded the library" + NO_CARD + "\n"
    assert run("sh", "-c", "kill -9 $$", code=137).endswith("library" + NO_CARD + "; signal 9 (Killed) ended the program\n")
    assert run(program, GPUMEMTRACE_ENABLED="off").endswith("recorded: GPUMEMTRACE_ENABLED switches the library off\n")
    assert run(PROGRAM, "plain", GPUMEMTRACE_OUTPUT="/no/x.gmt").endswith(
        "nothing was recorded: /no/x.gmt could not be written: No such file or directory\n")
    root = subprocess.run([toy.TOOL, "run", "-o", "proc/x.gmt", "--sim", "h100-80g", "--", PROGRAM, "plain"], cwd="/", capture_output=True, text=True)
    assert root.stderr.endswith("nothing was recorded: /proc/x.gmt could not be written: No such file or directory\n")
    said = run("-o", "x.gmt", "sh", "-c", f"{PROGRAM} plain; rm x.gmt")
    assert said.endswith(f"nothing was recorded: the recording {tmp_path}/x.gmt cannot be read: No such file or directory\n")
    answer = json.loads(run("--json", program).splitlines()[-1])
    assert answer["files"] == 0 and answer["why"].startswith("no CUDA allocation") and answer["exit_code"] == 0


def test_programs_that_take_no_library(run, tmp_path):
    (tmp_path / "t.c").write_text("int main(void) { return 0; }\n")
    if subprocess.run(["gcc", "-static", "-o", tmp_path / "still", tmp_path / "t.c"], capture_output=True).returncode == 0:
        assert run("./still") == "gpumemtrace: nothing was recorded: ./still is statically linked, so the library is not loaded into it\n"
        (tmp_path / "script").write_text("#!./still\n")
        (tmp_path / "script").chmod(0o755)
        assert "./still is statically linked" in run("./script")
    if os.geteuid() == 0:
        other = plain(tmp_path, "other")
        os.chown(other, 65534, 65534)
        other.chmod(0o4755)
        assert "./other runs with another user's rights (setuid)" in run("./other")


def test_what_stands_in_the_environment_is_not_trusted(run, tmp_path):
    """A name for the notes that is no file of `run` changes nothing."""
    fifo, big = tmp_path / "fifo", tmp_path / "big"
    os.mkfifo(fifo)
    big.write_bytes(b"x" * (1 << 18))
    for path in ("/dev/null", "/dev/zero", fifo, big, "nowhere", tmp_path, ""):
        env = dict(os.environ, GPUMEMTRACE_NOTES=str(path), LD_PRELOAD=toy.SHIM)
        done = subprocess.run([sys.executable, "-c", "print(1)"], env=env, capture_output=True, text=True, timeout=600)
        assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert big.read_bytes() == b"x" * (1 << 18)


def held(folder):
    return {p.name: p.read_bytes() for p in folder.glob("**/*.gmt*")}


def test_a_run_that_records_nothing_leaves_the_recording_before(run, tmp_path):
    """It is replaced when the first event is written, never before: however the run fails, and whatever the pattern names."""
    program = plain(tmp_path)
    (tmp_path / "ranks").mkdir()
    for pattern, file in [("x.gmt", "x.gmt"), ("y.%r.gmt", "y.0.gmt"), ("ranks/%r.%h.gmt", None)]:
        run("-o", pattern, "--", PROGRAM, "plain")
        before = held(tmp_path)
        kept = f"; {file} is still that of an earlier run\n" if file else " is still that of an earlier run\n"
        for code, command in [(0, [program]), (1, ["sh", "-c", "exit 1"]), (137, ["sh", "-c", "kill -9 $$"])]:
            assert run("-o", pattern, "--", *command, code=code).endswith(kept)
        for code, command in [(127, ["no-such-program"]), (126, ["./ranks"]), (0, ["-q", program])]:
            options = command[:1] if command[0] == "-q" else []
            run(*options, "-o", pattern, "--", *command[len(options):], code=code)
        run("-o", pattern, "--", PROGRAM, "plain", code=2, GPUMEMTRACE_MAX_SIZE="1")
        assert held(tmp_path) == before
        assert "4 events" in run("-o", pattern, "--", PROGRAM, "plain") and held(tmp_path).keys() == before.keys()
        assert held(tmp_path) != before


def test_a_recording_stays_until_the_first_event(run, tmp_path):
    """Also those of further processes and the live file of a run that was killed; then they go."""
    assert " and 2 more files, " in run("-o", "x.gmt", "--", PROGRAM, "fork")
    (tmp_path / "x.gmt.live").write_bytes(b"OGMTLVE\0" + bytes(4096))
    before = held(tmp_path)
    assert len(before) == 4
    said = run("-o", "x.gmt", "--", "sh", "-c", f"mkdir seen && cp x.* seen; {PROGRAM} plain")
    assert held(tmp_path / "seen") == before and said.startswith("gpumemtrace: x.gmt, 4 events;")
    assert [p.name for p in tmp_path.glob("x*")] == ["x.gmt"] and (tmp_path / "x.gmt").read_bytes() != before["x.gmt"]


def test_two_processes_of_one_run_replace_one_recording(run, tmp_path):
    """The first that records takes the name; the other does not take its file for the earlier run's."""
    run("-o", "x.gmt", "--", PROGRAM, "plain")
    both = run("-o", "x.gmt", "--", "sh", "-c", f"{PROGRAM} plain; {PROGRAM} plain")
    assert " and 1 more file, " in both and len(names(tmp_path)) == 2 and not list(tmp_path.glob("*.old*"))


def test_a_recording_that_cannot_be_begun_leaves_the_one_before(run, tmp_path):
    """No file may grow to what a recording needs: the earlier one gets its name back."""
    run("-o", "x.gmt", "--", PROGRAM, "plain")
    before = held(tmp_path)
    said = run("-o", "x.gmt", "--", "sh", "-c", f"ulimit -f 8; exec {PROGRAM} plain")
    assert "File too large" in said and said.endswith("; x.gmt is still that of an earlier run\n") and held(tmp_path) == before
    assert sorted(p.name for p in tmp_path.glob("x*")) == ["x.gmt"]

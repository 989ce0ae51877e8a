# SPDX-License-Identifier: Apache-2.0
"""Answers of another process that are slow, cut, empty or mixed with other output: the whole answer or one sentence, never a part that
passes for all. Of `sql` and `dashboard`: test_lake.py; of the pytest plugin: test_pytest_plugin.py."""
import json
import os
import subprocess
import sys

import gpumemtrace
import pytest
from conftest import ROOT, Tool
from gpumemtrace import _tool
from test_pager import on_terminal, run  # noqa: F401
from test_ranks import run_of

NEW = ROOT / "tests/data/example/new.gmt"


# The Python package and its tool


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A script in place of the tool; $TOOL is the real one."""
    def put(does):
        script = tmp_path / "tool"
        script.write_text(f"#!/bin/bash\nTOOL={Tool.path}\n{does}\n")
        script.chmod(0o755)
        monkeypatch.setattr(_tool, "tool", lambda: str(script))
    return put


@pytest.mark.parametrize("does, says", [
    ('"$TOOL" "$@"', None), ('sleep 1; "$TOOL" "$@"; echo warning >&2', None),
    ("true", "is empty"), ('"$TOOL" "$@" | head -c 300', "is cut or mixed"), ('echo hello; "$TOOL" "$@"', "is cut or mixed"),
    ('"$TOOL" "$@"; echo bye', "is cut or mixed"), ("echo 7", "is cut or mixed"), ("kill -KILL $$", "ended with code -9"), ("exit 3", "ended with code 3"),
])
def test_documents_of_the_tool(stand_in, does, says):
    stand_in(does)
    if says is None:
        assert _tool.ask("report", str(NEW))["events"] > 1000
        return
    with pytest.raises(gpumemtrace.Error) as caught:
        _tool.ask("report", str(NEW))
    assert says in caught.value.sentence and caught.value.exit_code == 3


# Ranks and lakes: a process for each recording


LIMIT = "trap '' XFSZ; ulimit -f {blocks}; exec \"$@\""


@pytest.mark.parametrize("command", ["report", "oom", "check"])
def test_a_rank_whose_answer_does_not_fit(tmp_path, command):
    """As on a full disk: every write beyond so many kB fails."""
    run_of(tmp_path / "run", ranks=2, every={"activations": 30, "oom": True})
    words = [Tool.path, command, *(["--max-peak", "1GiB"] if command == "check" else []), str(tmp_path / "run"), "--json"]
    plain = subprocess.run(words, capture_output=True, text=True)
    for blocks in range(4):  # in the first document, in the second, behind them
        done = subprocess.run(["bash", "-c", LIMIT.format(blocks=blocks), "bash", *words], capture_output=True, text=True, timeout=600)
        assert done.stdout == plain.stdout or done.returncode == 3 and done.stderr, (blocks, done)
        if done.returncode == plain.returncode:
            assert json.loads(done.stdout) == json.loads(plain.stdout)


@pytest.mark.parametrize("words, says", [(["export", "run", "--to", "csv", "-o", "out/", "--json"], "ended by signal 25"),
                                         (["collect", "run", "-o", "lake", "--json"], "lake cannot be written: File too large")])
def test_the_process_of_a_recording_is_killed(tmp_path, words, says):
    """By the system, for the size of what it writes: that is said, and nothing of it is kept."""
    run_of(tmp_path / "run", ranks=2, every={"activations": 30, "oom": True})
    done = subprocess.run(["bash", "-c", 'ulimit -f 0; exec "$@"', "bash", Tool.path, *words], capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert done.returncode == 3 and says in done.stdout + done.stderr, done
    assert not list(tmp_path.rglob("*.parquet"))


# The pager


@pytest.mark.parametrize("pager", ["/no/such/pager", "no-such-pager -R", "/etc/passwd"])
def test_a_pager_that_is_not_there(tool, on_terminal, run, pager):  # noqa: F811
    """The text is shown all the same, behind the shell's sentence."""
    code, text = on_terminal("report", run, "--top", 0, PAGER=pager)
    assert code == 0 and text.endswith(tool("report", run, "--top", 0)) and pager.split()[0] in text


# attach: the snapshot that the program's Python writes


PROGRAM = """
import os, pickle, sys, time
import torch
kept = torch.ones(1 << 20, device="cuda")
way, dump = sys.argv[1], pickle.dump
def other(data, file, protocol):
    text = pickle.dumps(data, protocol)
    print("the program's own output", flush=True)
    if way == "slow":
        for i in range(0, len(text), len(text) // 3):
            file.write(text[i:i + len(text) // 3])
            file.flush()
            time.sleep(1)
    file.write({"slow": b"", "cut": text[:len(text) // 2], "empty": b"", "mixed": b"hello" + text}[way])
pickle.dump = other
print("ready", flush=True)
time.sleep(100)
"""


@pytest.mark.parametrize("way", ["slow", "cut", "empty", "mixed"])
def test_a_snapshot_of_attach(programs, tmp_path, way):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    running = subprocess.Popen([sys.executable, program, way], stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=programs.environment(traced=False))
    try:
        assert running.stdout.readline() == "ready\n"
        done = subprocess.run([Tool.path, "attach", str(running.pid), "-o", "x.gmt"], capture_output=True, text=True, timeout=600, cwd=tmp_path)
        if way == "slow":
            assert done.returncode == 0 and json.loads(Tool()("report", tmp_path / "x.gmt", "--json"))["devices"][0]["end_bytes"] == 4 << 20, done.stderr
        else:
            assert done.returncode == 3 and done.stderr.count("\n") == 1 and not done.stdout and not (tmp_path / "x.gmt").exists(), done
        assert running.poll() is None
    finally:
        running.kill()
        running.wait()


# What the report proposes next


@pytest.mark.parametrize("name", ["old", "new"])
def test_the_next_commands_run_as_printed(tmp_path, name):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/gpumemtrace").symlink_to(Tool.path)
    lines = Tool()("report", ROOT / f"tests/data/example/{name}.gmt").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Where next: "))
    commands = [line.replace("Where next:", "").strip() for line in lines[start:]]
    assert len(commands) >= 3 and all(c.startswith("gpumemtrace ") for c in commands)
    for command in commands:
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PATH": f"{tmp_path}/bin:/usr/bin:/bin"})
        assert done.returncode == 0, (command, done.stderr)

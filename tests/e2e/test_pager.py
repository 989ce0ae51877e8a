# SPDX-License-Identifier: Apache-2.0
"""Text that is longer than the terminal's screen goes through a pager, nothing else does, and exit codes stay."""
import os
import shutil
import subprocess

import pytest

from conftest import ROOT

MIB = 1 << 20


def keep(path):
    """A pager that only says that it was one."""
    return f"(echo paged; cat) > {path}"


@pytest.fixture
def on_terminal(tool, terminal):
    """A command's exit code and what it writes on a terminal of 24 lines."""
    def said(*args, **env):
        t = terminal(tool.path, *args, NO_COLOR="1", **env)
        return t.ended(), t.text
    return said


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Sixty stacks, so that a report with all lines is longer than the screen; and its double."""
    folder = tmp_path_factory.mktemp("pager")
    subprocess.run(["make", "-s", "build/data/make_recording"], cwd=ROOT, check=True)
    for name, size in (("old", MIB), ("new", 2 * MIB)):
        lines = ["thread 1 1 main"]
        for i in range(1, 61):
            lines += [f"string {i} f{i}", f"code {i} 779 {i} model.py f{i} 80 00", f"node {i} 0 2 {i << 32 | 1}",
                      f"event block_alloc time_ns={i} addr={0x10000000 + i * 4 * MIB} size={size} arg0={i * size} arg1={64 * size} stack={i} thread=1"]
        subprocess.run([ROOT / "build/data/make_recording", folder / f"{name}.gmt"], input="\n".join(lines).encode(), check=True)
    return folder / "old.gmt"


def test_long_text_is_paged(tool, on_terminal, run, tmp_path):
    out = tmp_path / "paged"
    assert on_terminal("report", run, "--top", 0, PAGER=keep(out)) == (0, "")
    assert out.read_text() == "paged\n" + tool("report", run, "--top", 0)


def test_what_is_not_paged(tool, on_terminal, run, tmp_path):
    out = tmp_path / "paged"
    whole = tool("report", run, "--top", 0)
    assert len(whole.splitlines()) > 24
    for env, more in (({"PAGER": keep(out)}, ["--no-pager"]), ({"PAGER": "cat"}, []), ({"PAGER": ""}, []), ({"PAGER": keep(out), "TERM": "dumb"}, [])):
        assert on_terminal("report", run, "--top", 0, *more, **env) == (0, whole)
    assert on_terminal("verify", run, PAGER=keep(out)) == (0, tool("verify", run))
    assert on_terminal("dump", run, "--json", PAGER=keep(out)) == (0, tool("dump", run, "--json"))
    piped = subprocess.run([tool.path, "report", run, "--top", "0"], capture_output=True, text=True, env={**os.environ, "PAGER": keep(out)})
    assert piped.stdout == whole
    assert not out.exists()


def test_exit_code_and_sentence_after_the_text(on_terminal, run, tmp_path):
    """A check that fails: its sentence comes when the reader has left the pager."""
    pages = on_terminal("dump", run, PAGER=keep(tmp_path / "a"))
    assert pages == (0, "")
    new = run.with_name("new.gmt")
    code, text = on_terminal("diff", run, new, "--fail-above", "1%", PAGER=f"sleep 0.3; (echo paged; cat) | tee {tmp_path / 'b'}")
    assert code == 1
    said = (tmp_path / "b").read_text() if (tmp_path / "b").exists() else ""
    assert said.startswith("paged\n") and text.startswith(said)
    assert text[len(said):].startswith("gpumemtrace diff: ") and text.count("gpumemtrace diff: ") == 1


def test_a_reader_who_leaves_early(on_terminal, run):
    code, text = on_terminal("dump", run, PAGER="head -1")
    assert code in (0, -13) and len(text.splitlines()) == 1


@pytest.mark.skipif(not shutil.which("less"), reason="no less")
def test_less(tool, terminal, run):
    t = terminal(tool.path, "report", run, "--top", 0, NO_COLOR="1")
    t.wait_for(lambda text: "\n:" in text)
    assert "Device 0: peak" in t.text and "60 MiB" in t.text.replace("60.0", "60")
    assert "allocated at the end" not in t.text
    t.key(b"q")
    assert t.ended() == 0

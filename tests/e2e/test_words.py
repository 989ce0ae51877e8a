# SPDX-License-Identifier: Apache-2.0
"""Lines of code in the tables of all commands: on a terminal of 80 columns the function is left out and the file's
name is shortened, the number never; in a pipe nothing is cut. Code that torch.compile made stands under the line that
it was made from. Commands stand whole in the first line."""
import json
import re
import subprocess

import pytest

from conftest import ROOT, Tool
from terminal import Terminal
from test_import import BASE, M, entry, segment, write

LONG = "modeling_" + "x" * 60 + ".py"
FUNCTION = "ScaledDotProductAttentionOfAVeryLongName.forward_with_everything"
NN = "/usr/lib/python3/site-packages/torch/nn/modules/module.py"
HASH = "/tmp/torchinductor_me/ab/c" + "abcdefghijklmnopqrstuvwxyz2345672345abcdefghijklmno" + ".py"


def frames(*own):
    return [{"name": name, "filename": file, "line": line} for name, file, line in own] + [
        {"name": "_call_impl", "filename": NN, "line": 1520}, {"name": "<module>", "filename": "/home/me/train.py", "line": 9}]


PLACES = [frames(("forward", "/home/me/modeling_bert.py", 335)), frames((FUNCTION, f"/home/me/{LONG}", 12345)),
          frames((FUNCTION, "/home/me/modeling_roberta_prelayernorm.py", 1077)),
          frames(("call", HASH, 102), ("forward", "/home/me/model.py", 57)),
          frames(("call", HASH, 155), ("forward", "/home/me/model.py", 57)),
          [{"name": "call", "filename": HASH, "line": 201}]]
NUMBERS = {"modeling_bert.py": "335", LONG: "12345", "modeling_roberta_prelayernorm.py": "1077", "model.py": "57"}


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    paths = []
    for i, places in enumerate((PLACES, PLACES[::-1])):
        trace = [entry("alloc", BASE + k * M, (k + 1 + i) * M // 8, 10 + k, frames=f) for k, f in enumerate(places)]
        trace.append({**entry("oom", 0, 99 * M, 30, frames=places[1]), "device_free": M})
        blocks = [(M, (k + 1 + i) * M // 8, "active_allocated") for k in range(len(places))]
        for row, f in zip(blocks, places):
            assert row
        whole = segment(BASE, 20 * M, [*blocks, ((20 - len(blocks)) * M, 0, "inactive")])
        for block, f in zip(whole["blocks"], places):
            block["frames"] = f
        paths.append(write(folder / f"{i}.pickle", {"segments": [whole], "device_traces": [trace]}))
    return paths


COMMANDS = [["report"], ["peak"], ["live"], ["steps"], ["leaks"], ["oom"], ["modules", "--class", "all", "--at", "end"], ["timeline"], ["diff"]]


def numbers(text):
    """What stands behind the names of files: a name that was shortened keeps its end."""
    for name, number in NUMBERS.items():
        tail = name[-5:]
        for said in re.findall(re.escape(tail) + r":(\d*)", text):
            yield tail, said, {n for f, n in NUMBERS.items() if f.endswith(tail)}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_no_number_is_cut(snapshots, command):
    args = [*command, *snapshots] if command[0] == "diff" else [*command, snapshots[0]]
    terminal = Terminal([Tool.path, *args], lines=500, columns=80)
    terminal.ended()
    on_screen = re.sub(r"\x1b\[[0-9;]*m", "", terminal.text)
    piped = subprocess.run([Tool.path, *map(str, args)], capture_output=True, text=True, check=True).stdout
    for text in (on_screen, piped):
        for tail, said, right in numbers(text):
            assert said in right, (tail, said, text)
    if command[0] in ("report", "peak", "live", "oom"):
        assert "modeling_bert.py:335" in on_screen and f"{LONG}:12345" in piped
    assert command[0] == "timeline" or ".." not in piped.replace("Where next", "").replace("../", "").replace("0x7f..", "")
    assert HASH.split("/")[-1] + ":" not in piped
    tables = [line for line in on_screen.split("Where next")[0].splitlines() if "  " in line.strip()]
    assert max(map(len, tables), default=0) <= 80, on_screen


EXAMPLE = ROOT / "tests/data/example"
NEW = EXAMPLE / "new.gmt"
TABLES = [["report", NEW], ["report", "--steps", NEW], ["peak", NEW], ["live", NEW], ["steps", NEW], ["leaks", NEW], ["oom", NEW], ["replay", NEW], ["modules", NEW],
          ["account", NEW], ["timeline", NEW], ["diff", EXAMPLE / "old.gmt", NEW], ["advise", NEW],
          *([command, EXAMPLE] for command in ("report", "peak", "steps", "leaks", "modules", "account"))]
FIGURE = re.compile(r"[-+]?[\d.,]+ (?:[KMG]i)?B\b|\d+ %")


@pytest.mark.parametrize("columns", [80, 96, 120])
def test_tables_fit_the_terminal(columns):
    """No row is wider than the screen. Figures of rows stay, and so do names of settings."""
    narrower = 0
    for args in TABLES:
        terminal = Terminal([Tool.path, *args], lines=500, columns=columns, PAGER="cat", NO_COLOR="1")
        terminal.ended()
        piped = subprocess.run([Tool.path, *map(str, args)], capture_output=True, text=True, check=True).stdout
        tables = [line for line in terminal.text.split("Where next")[0].splitlines() if "  " in line.strip()]
        assert max(map(len, tables), default=0) <= columns, (args, terminal.text)
        narrower += max(map(len, piped.splitlines())) > columns
        if args[0] not in ("timeline", "live") and args[1] != EXAMPLE:  # one is as wide as the screen, one as long, one has figures in texts
            assert FIGURE.findall(" ".join(terminal.text.split())) == FIGURE.findall(" ".join(piped.split())), args
        if args[0] == "replay":
            assert re.findall(r"[a-z_0-9]+:\S+", terminal.text) == re.findall(r"[a-z_0-9]+:\S+", piped)
    assert narrower > 1 or columns > 110  # replay, and a report of ranks: they are wider in a pipe


def test_compiled_code_stands_under_the_line_it_was_made_from(tool, snapshots):
    text = tool("report", snapshots[0]).split("\n  allocated at")[1]
    assert text.count("forward model.py:57 (compiled)") == 1
    assert text.count("compiled code") == 1
    found = [b for b in tool.json("peak", snapshots[0])["lines"] if b["file"].endswith("model.py")]
    assert [(b["function"], b["line"], b["blocks"]) for b in found] == [("forward", 57, 2)]


CODE = """
import torch
kept = torch.empty(1 << 20, device="cuda")
if kept.numel() > 5:
    print("more than a line of code")
"""


def test_commands_stand_whole(programs, tool):
    recording = programs.traced("-c", CODE, "--batch", "16")
    head = tool("report", recording).splitlines()[0]
    assert re.match(r"python\S* -c 'import torch kept = torch\.empty\(.*\.\.' --batch 16  \|", head) and "?" not in head, head
    (programs.folder / "package").mkdir()
    (programs.folder / "package/__init__.py").write_text("")
    (programs.folder / "package/train.py").write_text(CODE)
    long = [f"--setting-number-{i}=value" for i in range(8)]
    recording = programs.traced("-m", "package.train", *long, output="long.gmt", PYTHONPATH=str(programs.folder))
    text = " ".join(tool("report", recording).split("Device 0")[0].split())
    assert f"-m package.train {' '.join(long)}" in text
    assert json.loads(subprocess.run([Tool.path, "diff", "--json", recording, recording], capture_output=True,
                                     text=True, check=True).stdout)["new"]["command"].endswith(long[-1])

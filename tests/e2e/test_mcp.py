# SPDX-License-Identifier: Apache-2.0
"""The tool server, asked by the official library's own client: the same text as the commands print, never more than its room, and
nothing written; and the commands that docs/assistants.md tells an assistant to run."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import BUILD, PACKAGE, ROOT

TOOLS = ROOT / ".venv-tools/bin/python"
KNOWN = any(ROOT.glob(".venv-tools/lib/python3*/site-packages/mcp"))
EXAMPLE = ROOT / "tests/data/example"
PAGE = ROOT / "docs/assistants.md"
pytestmark = pytest.mark.installed
client = pytest.mark.skipif(not KNOWN, reason="no .venv-tools with mcp: scripts/setup.sh tools")

CLIENT = """
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    server = StdioServerParameters(command=sys.executable, args=["-m", "gpumemtrace.mcp"], env=json.loads(sys.argv[1]))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        listed = [t.model_dump(mode="json", by_alias=True) for t in (await session.list_tools()).tools]
        said = [(await session.call_tool(name, arguments)).model_dump(mode="json", by_alias=True) for name, arguments in json.loads(sys.argv[2])]
        print(json.dumps([listed, [[a["content"][0]["text"], a["isError"]] for a in said]]))
asyncio.run(main())
"""


def ask(*questions, cwd=ROOT):
    env = {"PYTHONPATH": str(PACKAGE), "PATH": f"{BUILD}:/usr/bin:/bin"}
    done = subprocess.run([TOOLS, "-c", CLIENT, json.dumps(env), json.dumps(questions)], capture_output=True, text=True, timeout=600, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def folder(tmp_path):
    for name in "old.gmt", "new.gmt":
        shutil.copy(EXAMPLE / name, tmp_path)
    return tmp_path


@client
def test_tools_are_read_only_and_the_documented_ones(folder):
    listed, _ = ask(cwd=folder)
    assert all(t["annotations"]["readOnlyHint"] for t in listed)
    assert [t["name"] for t in listed] == re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.M)


@client
def test_an_answer_is_what_the_command_prints(folder, tool):
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    path = str(folder / "new.gmt")
    text = tool("live", path, "--top", "0", "--no-pager")
    first = re.search(r"0x[0-9a-f]+", text)[0]
    _, said = ask(("what_matters", {"path": path}), ("leaks", {"path": path}), ("diff", {"old": str(folder / "old.gmt"), "new": path}),
                  ("why", {"path": path, "address": first}), cwd=folder)
    for (answer, wrong), command in zip(said, (("report", path), ("leaks", path), ("diff", str(folder / "old.gmt"), path), ("why", path, first))):
        assert not wrong and answer == tool(*command).rstrip("\n")[:len(answer)] and len(answer) > 100
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


@client
def test_a_long_answer_is_read_in_parts(folder, tool):
    path, start, got = str(folder / "old.gmt"), 0, []
    for _ in range(100):
        _, [(text, wrong)] = ask(("who_holds", {"path": path, "start": start}))
        assert not wrong and len(text) <= 6000
        *lines, last = text.split("\n")
        more = re.fullmatch(r"\[\d+ more lines: start=(\d+)\]", last)
        got += lines if more else [*lines, last]
        if not more:
            break
        start = int(more[1])
    assert start and "\n".join(got) == tool("live", path, "--top", "0").rstrip("\n")


@client
def test_wrong_questions_get_the_sentence(folder):
    bad = folder / "bad.json"
    bad.write_text('{"cards": [{"card": 1}]}')
    dashed = folder / "--alloc-conf=x"
    dashed.write_bytes(b"")
    _, said = ask(("what_matters", {"path": "no.gmt"}), ("oom", {"path": str(folder / "old.gmt")}), ("why", {"path": str(folder / "old.gmt"), "address": "0x1"}),
                  ("fit", {"result": str(bad)}), ("peak", {"path": "--alloc-conf=x"}), cwd=folder)
    words = ["there is no file", "memory did not run out", "no block holds address 0x1", "not the output of gpumemtrace fit", "--alloc-conf=x"]
    assert all(wrong and word in text for (text, wrong), word in zip(said, words)), said


@client
def test_nothing_without_an_end_is_read(folder):
    """A device, a pipe that nobody writes to, a file beyond the limit; and errors are cut as answers are."""
    os.mkfifo(folder / "pipe")
    with open(folder / "large.json", "wb") as large:
        large.truncate((64 << 20) + 1)
    (folder / "deep.json").write_text("[" * 200000)
    paths = ["/dev/zero", "/dev/stdin", str(folder / "pipe"), str(folder / "large.json"), str(folder / "deep.json"), str(folder), "x" * 12000, "nul\0"]
    tools = [("fit", "result"), ("what_matters", "path"), ("oom", "path")]
    _, said = ask(*((name, {member: path}) for name, member in tools for path in paths),
                  ("why", {"path": str(folder / "old.gmt"), "address": "y" * 12000}), ("stack", {"path": "z" * 12000, "stack": 1}), cwd=folder)
    for text, wrong in said:
        assert len(text) <= 6000, text[:200]
    assert [i for i, (_, wrong) in enumerate(said) if not wrong] == [len(paths) + 5, 2 * len(paths) + 5]  # answers about the folder
    for i in range(len(tools)):
        assert all("neither a file nor a folder" in text for text, _ in said[i * len(paths):][:3])
    assert "64 MiB at most" in said[3][0] and "not the output of gpumemtrace fit" in said[4][0]


def test_without_its_package_the_message_names_one_that_there_is(folder):
    """The project's own name is on no index, so that anybody could take it."""
    (folder / "mcp.py").write_text("raise ImportError\n")
    done = subprocess.run([sys.executable, "-m", "gpumemtrace.mcp"], capture_output=True, text=True, cwd=folder,
                          env={**os.environ, "PYTHONPATH": f"{folder}:{PACKAGE}"})
    assert done.returncode == 2 and done.stderr.endswith("needs the package mcp: " + sys.executable + " -m pip install 'mcp>=2'\n")
    for file in subprocess.run(["git", "ls-files", "*.md", "*.py", "*.yml", "*.def", "*.c", "*.ipynb"], cwd=ROOT, capture_output=True, text=True).stdout.split():
        if not file.startswith("tests/") and file != "CHANGELOG.md":
            assert not re.search(r"pip install [^`\n]*(?<![/-])\bgpumemtrace(\[|'|\"|`|\s|$)", (ROOT / file).read_text()), file


@client
def test_a_saved_search(folder):
    card = {"card": "h100-80g", "verdict": "does not fit", "vary": {"batch": 8}, "peak_bytes": 5, "peak_reserved_bytes": 6, "capacity_bytes": 7, "text": "Too large."}
    (folder / "fit.json").write_text(json.dumps({"cards": [card], "summary": [{"text": "It grows.", "action": "gpumemtrace leaks x"}]}))
    _, [(text, wrong)] = ask(("fit", {"result": "fit.json"}), cwd=folder)
    assert not wrong and text == "h100-80g batch=8: does not fit; peak 5 B, reserved 6 B of 7 B. Too large.\nIt grows. Next: gpumemtrace leaks x"


def test_commands_of_the_skill_run(folder, tool):
    """Every command of it that reads a recording, with the addresses that another one printed."""
    skill = PAGE.read_text().split("<!-- skill -->")[1].split("<!-- end -->")[0]
    commands = re.findall(r"`gpumemtrace ([^`]*)`", skill)
    assert len(commands) >= 10
    shutil.copy(folder / "new.gmt", folder / "run.gmt")
    shutil.copy(folder / "old.gmt", folder / "after.gmt")
    live = tool("live", folder / "run.gmt")
    address, stack = re.search(r"(0x[0-9a-f]+) .* (\d+)  ", live).groups()
    ran = []
    for command in commands:
        words = command.replace("ADDRESS", address).replace("STACK", stack).split()
        if "--" in words:
            assert tool(words[0], "--help").startswith("usage: gpumemtrace " + words[0])
            continue
        done = subprocess.run([BUILD / "gpumemtrace", *words], cwd=folder, capture_output=True, text=True)
        assert (done.returncode, words[0]) in [(0, words[0]), (1, "oom")], done.stderr
        ran.append(words[0])
    assert {"report", "oom", "leaks", "advise", "diff", "live", "why", "stack"} == set(ran)

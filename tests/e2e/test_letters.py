# SPDX-License-Identifier: Apache-2.0
"""Names of files and functions in other letters than ASCII's stand as they are in titles and exports; bytes that are no text
become '?' there. A title names the program, not the path of its interpreter."""
import gzip
import json
import re
import subprocess

import pytest
from conftest import ROOT

NAME = "größe_モデル😀"
RECORDING = f"""meta argv /opt/environments/of-a-long-name/bin/python3.11
thread 1 4711 main
code 1 779 10 /home/u/{NAME}.py {NAME} 80 00
node 1 0 2 4294967297
event mem_alloc time_ns=110 thread=1 addr=268435456 size=67108864 arg0=1 flags=2 stack=1
event block_alloc time_ns=120 thread=1 addr=268435456 size=4194304 arg0=4194304 arg1=67108864 stack=1
event end time_ns=130 thread=1
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    subprocess.run(["make", "-s", "build/data/make_recording"], cwd=ROOT, check=True)
    path = tmp_path_factory.mktemp("letters") / f"{NAME}.gmt"
    subprocess.run([ROOT / "build/data/make_recording", path], input=RECORDING, text=True, check=True)
    return path


@pytest.mark.parametrize("form", ["pprof", "folded", "speedscope", "csv", "jsonl"])
def test_exports(tool, recording, tmp_path, form):
    tool("export", recording, "-t", form, "-o", tmp_path / "x")
    data = (tmp_path / "x").read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    if form in ("speedscope", "jsonl"):
        data = json.dumps([json.loads(text) for text in ([data] if form == "speedscope" else data.splitlines())], ensure_ascii=False).encode()
    assert NAME.encode() in data and b"??" not in data


def titles(page):
    text = page.read_text(encoding="utf-8")
    first = json.loads(re.search(r'id="first">(.*?)</script>', text, re.S)[1])
    return re.search("<title>(.*?) - gpumemtrace", text)[1], json.dumps(first, ensure_ascii=False)


def test_pages(tool, recording, tmp_path):
    page = tmp_path / "x.html"
    tool("html", recording, "-o", page)
    title, first = titles(page)
    assert title == f"{NAME}.gmt" and '"python3.11"' in first and "of-a-long-name" not in first
    tool("html", recording, recording, "-o", page)
    assert titles(page)[0] == f"{NAME}.gmt and 1 more"
    tool("diff", recording, recording, "-o", page)
    assert NAME in titles(page)[0]
    odd = recording.with_name("a\udcff<&\u202e.gmt")  # a byte that is no text, characters of HTML, one that turns what follows
    odd.write_bytes(recording.read_bytes())
    tool("html", odd, "-o", page)
    assert titles(page)[0] == "a\\xff&#60;&#38;\\u202e.gmt"
    tool("html", odd, odd, "--redact", "-o", page)
    assert titles(page)[0] == "recordings"

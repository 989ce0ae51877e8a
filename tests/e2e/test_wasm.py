# SPDX-License-Identifier: Apache-2.0
"""The viewer without installation (browser/): the command compiled for WebAssembly says in Chromium what it says here, to
the byte, of recordings, of snapshots, and of files that are broken, and so it does in Firefox; the page takes files, and asks
the network for nothing."""
import base64
import functools
import gzip
import http.server
import json
import lzma
import pickle
import random
import shutil
import subprocess
import threading
import zlib

import pytest

from conftest import BUILD, ROOT, Tool
from packed import compressed
from test_html import look, look_in_firefox, needs_browser

VIEWER = BUILD / "gpumemtrace.html"
DATA = ROOT / "tests/data"
MIB = 1 << 20
BAD = sorted(p.name for p in (DATA / "bad").glob("*.gmt*"))
pytestmark = [needs_browser, pytest.mark.skipif(not VIEWER.exists(), reason="no build/gpumemtrace.html (make viewer)")]

RUN = """new Promise((done) => { const work = %s; let said = '';
  run(work.words, work.files.map(([name, text]) => ({ name, blob: new Blob([unbase64(text)]) })), {
    said(text) { said += text; }, done: async (d) => done({ ...d, said, page: d.page ? await d.page.text() : null }) }); })"""


def drive(*actions, page=VIEWER):
    heard = look(page, *actions)
    assert heard["said"] == [], heard["said"]
    heard["asked"] = [url for url in heard["asked"] if not url.startswith("blob:")]
    return heard


def drive_firefox(*actions):
    heard = look_in_firefox(VIEWER, *actions)
    assert heard["said"] == []
    return {**heard, "asked": []}


DRIVERS = {"chromium": drive, "firefox": drive_firefox}
needs_firefox = pytest.mark.skipif(not (shutil.which("firefox-esr") or shutil.which("firefox")), reason="no firefox (scripts/setup.sh browser)")


@pytest.fixture(params=["chromium", pytest.param("firefox", marks=needs_firefox)])
def browser(request):
    return request.param


def encoded(folder):
    return [[str(p.relative_to(folder)), base64.b64encode(p.read_bytes()).decode()] for p in sorted(folder.rglob("*")) if p.is_file()]


def compare(browser, folder, *commands):
    """Each command on the files of a folder, here and in the browser."""
    files = encoded(folder)
    heard = DRIVERS[browser](*(RUN % json.dumps({"words": words, "files": files}) for words in commands))
    assert heard["asked"] == []
    for words, there in zip(commands, heard["results"]):
        here = subprocess.run([Tool.path, *words], cwd=folder, capture_output=True, text=True, timeout=600)
        assert (there["code"], there["printed"], there["said"]) == (here.returncode, here.stdout, here.stderr), words
        if words[-1] == "page.html":
            page = folder / "page.html"
            assert there["page"] == (page.read_text() if page.exists() else None), words
            page.unlink(missing_ok=True)


def copied(folder, *files):
    for file in files:
        shutil.copy(file, folder)
    return folder


def of(name):
    return [["report", name], ["report", name, "--json"], ["dump", name, "--json"], ["advise", name, "--json"], ["oom", name, "--json"],
            ["leaks", name, "--json"], ["why", name, "0x1"], ["html", name, "-o", "page.html"]]


@pytest.mark.parametrize("version, name", [("v1", "training"), ("v2", "killed"), ("v3", "thinned"), ("v4", "kinds"), ("v5", "repeats"), ("example", "new")])
def test_documents_are_those_of_the_command(tmp_path, browser, version, name):
    compare(browser, copied(tmp_path, *(DATA / version).glob(name + ".gmt"), *(DATA / version).glob(name + ".gmt.live")), *of(name + ".gmt"))


def test_snapshots_are_read(tool, tmp_path, browser):
    tool("export", DATA / "example/new.gmt", "--to", "torch", "-o", tmp_path / "s.pickle")
    raw = (tmp_path / "s.pickle").read_bytes()
    (tmp_path / "s.gz").write_bytes(gzip.compress(raw))
    (tmp_path / "s.zst").write_bytes(compressed(raw))
    (tmp_path / "s.xz").write_bytes(lzma.compress(raw, preset=9))
    (tmp_path / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": [{"name": "[memory]", "ts": 10.5 + i, "args": {
        "Device Type": 1, "Device Id": 0, "Addr": 4096 * (i % 3), "Bytes": 512 if i < 3 else -512, "Total Allocated": 5120 + 512 * min(i + 1, 5 - i), "Total Reserved": 1 << 21}} for i in range(6)]}))
    compare(browser, tmp_path, ["report", "trace.json", "--json"], ["html", "trace.json", "-o", "page.html"])
    compare(browser, tmp_path, *of("s.pickle"), ["report", "s.gz", "--json"], ["report", "s.zst", "--json"], ["report", "s.xz", "--json"])


def large_snapshot(mib):
    """Packs to more than 4.3 MB: a thousand times as much is no size of 32 bits."""
    noise = random.Random(0).randbytes(5 * MIB)
    events = [{"action": "alloc", "addr": 4096 * (i + 1), "size": 1024, "stream": 0, "frames": []} for i in range(100)]
    return pickle.dumps({"segments": [], "device_traces": [events], "padding": noise + bytes((mib - 5) * MIB)})


def bomb(mib):
    """gzip data that unpacks to that much, of blocks that can be repeated as they are."""
    z = zlib.compressobj(wbits=31)
    head = z.compress(large_snapshot(6)) + z.flush(zlib.Z_FULL_FLUSH)
    block = z.compress(bytes(64 * MIB)) + z.flush(zlib.Z_FULL_FLUSH)
    return head + block * (mib // 64)


def test_a_packed_snapshot_may_unpack_to_more_than_64_mib(tmp_path, browser):
    (tmp_path / "s.gz").write_bytes(gzip.compress(large_snapshot(70), 1))
    assert (tmp_path / "s.gz").stat().st_size > 4.3e6
    compare(browser, tmp_path, ["report", "s.gz", "--json"])


@pytest.mark.more
@pytest.mark.parametrize("mib", [1088, 3072, 4160])
def test_bombs_end_in_one_sentence(mib):
    data = base64.b64encode(bomb(mib)).decode()
    (done,) = drive(RUN % json.dumps({"words": ["report", "bomb.gz"], "files": [["bomb.gz", data]]}))["results"]
    assert done["code"] == 3 and done["said"] == "gpumemtrace report: bomb.gz unpacks to more than 1 GiB, the most that is unpacked here; unpack it first\n"


def test_two_files_and_a_folder(tmp_path, browser):
    copied(tmp_path, DATA / "example/old.gmt", DATA / "example/new.gmt")
    (tmp_path / "run").mkdir()
    for rank in range(3):
        shutil.copy(DATA / "example/new.gmt", tmp_path / f"run/rank{rank}.gmt")
    compare(browser, tmp_path, ["diff", "old.gmt", "new.gmt", "--json"], ["diff", "old.gmt", "new.gmt", "-o", "page.html"],
            ["html", "old.gmt", "new.gmt", "-o", "page.html"], ["html", "run", "-o", "page.html"], ["html", "nothing", "-o", "page.html"])


def test_broken_files_give_the_same_sentence(tmp_path, browser):
    copied(tmp_path, *(DATA / "bad" / name for name in BAD))
    assert len(BAD) > 20
    compare(browser, tmp_path, *(["verify", name] for name in BAD), *(["html", name, "-o", "page.html"] for name in BAD[::5]))


def drop(*files):
    listed = json.dumps([[f.name, base64.b64encode(f.read_bytes()).decode()] for f in files])
    return {"evaluate": f"""(() => {{ const data = new DataTransfer();
      for (const [name, text] of {listed}) data.items.add(new File([unbase64(text)], name));
      window.dispatchEvent(new DragEvent('drop', {{ dataTransfer: data, cancelable: true }})); }})()"""}


def test_files_that_are_dropped_and_opened():
    old, new, bad = DATA / "example/old.gmt", DATA / "example/new.gmt", DATA / "bad/text.gmt"
    told = subprocess.run([Tool.path, "html", bad.name, "-o", "/dev/shm/none.html"], cwd=bad.parent, capture_output=True, text=True)
    heard = drive(drop(bad), {"await": "#state.alarm"}, {"evaluate": "$('state').textContent"},
                  {"open": [str(old), str(new)], "on": "#files"}, {"await": "iframe"},
                  {"inside": "document.getElementById('delta').dataset.bytes"}, {"evaluate": "$('names').textContent"},
                  drop(new), {"await": "iframe[title$=' new.gmt']"}, {"inside": "document.documentElement.dataset.ready"},
                  {"evaluate": "[...$('actions').children].find((b) => b.textContent === 'Close').click() || $('start').hidden"})
    sentence, delta, names, ready, hidden = (heard["results"][i] for i in (2, 5, 6, 9, 10))
    assert told.stderr == f"gpumemtrace html: {sentence}\n"
    assert abs(int(delta)) == abs(Tool().json("diff", old, new)["delta"]) and set(names.split(" \u2192 ")) == {"old.gmt", "new.gmt"}
    assert ready is not None and hidden is False and heard["asked"] == []


def test_a_link_opens_a_file_of_the_web(tmp_path):
    copied(tmp_path, VIEWER, DATA / "example/new.gmt")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        at = f"http://127.0.0.1:{server.server_port}/gpumemtrace.html"
        heard = drive({"await": "iframe"}, {"evaluate": "$('names').textContent"}, page=at + "#url=new.gmt")
        missing = look(at + "#url=none.gmt", {"await": "#state.alarm"}, "$('state').textContent")
        server.shutdown()
    assert heard["results"][1] == "new.gmt" and heard["asked"] == [at.replace("gpumemtrace.html", "new.gmt")]
    assert missing["results"][1] == "none.gmt: the server says 404 File not found"


def test_the_page_is_small():
    assert VIEWER.stat().st_size <= 4_000_000

# SPDX-License-Identifier: Apache-2.0
"""A notebook with cells of %%gpumemtrace, executed by nbconvert and opened in Chromium: the page stands below each cell, its
scripts run, and nothing of it leaves its frame."""
import json
import os
import shutil
import subprocess

import pytest
from conftest import BUILD, PACKAGE, ROOT

BROWSER = ROOT / ".venv-browser/bin/python"
KNOWN = BROWSER.exists() and not subprocess.run([BROWSER, "-c", "import nbconvert, ipykernel"], capture_output=True).returncode
pytestmark = [pytest.mark.installed, pytest.mark.skipif(not (KNOWN and shutil.which("chromium")), reason="no .venv-browser with nbconvert, or no chromium: scripts/setup.sh browser")]

CELL = """%%gpumemtrace --sim h100-80g --name {name} --height {height}
import ctypes
cuda, p, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t({size})) == 0
print("took", {size})
"""

LOOK = """
import json, shutil, sys
from playwright.sync_api import sync_playwright

OF_HOST = "[document.title, location.href, Object.keys(window).length, getComputedStyle(document.querySelector('h2')).color]"
with sync_playwright() as driver:
    browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
    page = browser.new_page()
    said, asked = [], []
    page.on("console", lambda m: said.append(m.text))
    page.on("pageerror", lambda e: said.append(str(e)))
    # The notebook's own template asks for two scripts of another host: it does without.
    page.on("request", lambda r: asked.append([r.frame == page.main_frame, r.url]))
    page.route("**/*", lambda r: r.continue_() if r.request.url.startswith(("file:", "data:")) else r.fulfill(body=""))
    page.goto(sys.argv[1])
    host = page.evaluate(OF_HOST)
    frames = []
    for frame in page.frames[1:]:
        frame.frame_element().scroll_into_view_if_needed()  # a browser draws nothing in a frame that is out of sight
        frame.wait_for_selector("html[data-ready]", state="attached", timeout=30000)
        inside = {"text": frame.inner_text("body"), "drawn": frame.evaluate("document.querySelectorAll('canvas, svg').length"),
                  "high": frame.evaluate("innerHeight")}
        frame.click("nav a:has-text('Recording')")
        page.wait_for_timeout(300)
        inside.update(scrolled=frame.evaluate("scrollY"), title=frame.evaluate("document.title"), frames=len(frame.child_frames))
        frame.click("#theme")
        inside["dark"] = frame.evaluate("document.documentElement.dataset.theme")
        inside["reach"] = frame.evaluate("(() => { try { return parent.document.title } catch (e) { return e.name } })()")
        frames.append(inside)
    print(json.dumps({"host": [host, page.evaluate(OF_HOST)], "frames": frames, "said": said, "asked": asked}))
"""


def notebook(*cells):
    """As JSON; the last cell is a heading."""
    kinds = ["code"] * len(cells) + ["markdown"]
    body = [{"cell_type": kind, "metadata": {}, "id": f"c{i}", "source": text, **({"execution_count": None, "outputs": []} if kind == "code" else {})}
            for i, (kind, text) in enumerate(zip(kinds, [*cells, "## After them"]))]
    kernel = {"name": "python3", "display_name": "Python", "language": "python"}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": body})


def executed(tmp_path, *cells):
    (tmp_path / "n.ipynb").write_text(notebook(*cells))
    env = {**os.environ, "PYTHONPATH": str(PACKAGE), "PATH": f"{BUILD}:{os.environ['PATH']}",
           **{f"{name}_DIR": str(tmp_path / name) for name in ("JUPYTER_DATA", "JUPYTER_CONFIG", "JUPYTER_RUNTIME")}, "IPYTHONDIR": str(tmp_path / "ip")}
    done = subprocess.run([BROWSER, "-m", "nbconvert", "--to", "html", "--execute", "n.ipynb"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return tmp_path / "n.html"


def test_pages_stand_below_cells_and_stay_in_their_frames(tmp_path):
    sizes = {"a": 1 << 20, "b": 3 << 20}
    page = executed(tmp_path, "%load_ext gpumemtrace", CELL.format(name="a", height=600, size=sizes["a"]),
                    CELL.format(name="b", height=450, size=sizes["b"]), "print('peaks', a.peak, b.peak)")
    text = page.read_text()
    assert f"peaks {sizes['a']} {sizes['b']}" in text and "UserWarning" not in text
    done = subprocess.run([BROWSER, "-c", LOOK, page.as_uri()], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    assert [f["high"] for f in seen["frames"]] == [600, 450] and not seen["said"], seen["said"]
    for frame, peak in zip(seen["frames"], ("1.0 MiB", "3.0 MiB")):
        assert peak in frame["text"] and "Timeline" in frame["text"] and frame["drawn"] > 1 and frame["dark"] == "dark"
        # A link of the page leads within the page, and not to the notebook again.
        assert frame["scrolled"] > 0 and frame["title"].endswith("gpumemtrace") and frame["frames"] == 0
        assert frame["reach"] == "SecurityError"
    assert seen["host"][0] == seen["host"][1] and seen["host"][0][1] == page.as_uri()
    assert all(of_host for of_host, url in seen["asked"] if not url.startswith(("about:", "data:"))), seen["asked"]

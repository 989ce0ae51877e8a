# SPDX-License-Identifier: Apache-2.0
"""memory_viz.py FOLDER PAGE: opens the page that PyTorch's memory_viz writes (_memory_viz.trace_plot), whose script and
libraries come from the network elsewhere and here from FOLDER: MemoryViz.js of the pytorch repository, and node_modules
with d3@5 (npm install d3@5). Prints one line of JSON: what it drew, and what its console said. Run by
.venv-browser/bin/python."""
import json
import re
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

LOOK = """async () => {
  const all = (what) => [...document.querySelectorAll(what)], shapes = all('svg g polygon');
  const details = shapes.filter((s) => s.__data__ && s.__data__.elem !== 'summarized').map((s) => {
    s.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
    return { size: s.__data__.size, fill: s.getAttribute('fill'), text: document.querySelector('pre').textContent };
  });
  return { details, legend: all('svg g g text').map((t) => t.textContent), swatches: all('svg g g rect').map((r) => r.getAttribute('fill')) };
}"""


def modules(folder):
    """Where each library is, by the names that scripts import."""
    found = {}
    for package in sorted((folder / "node_modules").glob("d3*/package.json")):
        said = json.loads(package.read_text())
        found[package.parent.name] = f"http://viz/node_modules/{package.parent.name}/{said['module'].removesuffix('.js')}.js"
    script = (folder / "MemoryViz.js").read_text()
    return found | {url: found[name] for url, name in re.findall(r'from "(https://[^"]*/(d3[a-z-]*)@\d+)"', script)}


def answer(route, folder, markup, left):
    url = route.request.url
    file = folder / url.removeprefix("http://viz/")
    file = file if file.suffix else file.with_suffix(".js")
    if url == "http://viz/":
        route.fulfill(body=markup, content_type="text/html")
    elif url.endswith("/MemoryViz.js"):
        route.fulfill(body=(folder / "MemoryViz.js").read_bytes(), content_type="text/javascript", headers={"Access-Control-Allow-Origin": "*"})
    elif url.startswith("http://viz/") and file.is_file():
        route.fulfill(body=file.read_bytes(), content_type="text/javascript")
    else:
        left.append(url)
        route.abort()


def main():
    folder, said, left = Path(sys.argv[1]), [], []
    names = f'<script type="importmap">{json.dumps({"imports": modules(folder)})}</script>'
    markup = Path(sys.argv[2]).read_text().replace("<head>", "<head>" + names, 1)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.on("console", lambda m: m.type in ("error", "warning") and said.append(m.text))
        page.on("pageerror", lambda e: said.append(str(e)))
        page.route("**/*", lambda route: answer(route, folder, markup, left))
        page.goto("http://viz/")
        page.wait_for_selector("svg polygon", state="attached", timeout=300000)
        result = page.evaluate(LOOK)
        browser.close()
    print(json.dumps(result | {"said": said, "left": left}))


main()

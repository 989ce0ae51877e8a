# SPDX-License-Identifier: Apache-2.0
"""page.py FOLDER RECORDING: what the page of a run of ten million events costs, made of RECORDING by repeating its
third step: "name value unit" lines. The page is opened five times in Chromium, the median counts: until the first
text or picture, until the timeline is drawn, until all can be used."""
import json
import resource
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL, MAKER, BROWSER = ROOT / "build/gpumemtrace", ROOT / "build/data/make_long", ROOT / ".venv-browser/bin/python"
EVENTS = 10_000_000

TIMES = """() => [performance.getEntriesByName('first-contentful-paint')[0].startTime, performance.getEntriesByName('timeline-drawn')[0].startTime,
  performance.getEntriesByName('ready')[0].startTime]"""


def opened(page):
    """In the environment of the browser: the three times of one opening, in ms."""
    import shutil

    from playwright.sync_api import sync_playwright
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for _ in range(5):
            tab = browser.new_page(viewport={"width": 1280, "height": 900})
            tab.goto(Path(page).resolve().as_uri(), wait_until="commit")
            tab.wait_for_selector("html[data-ready]", state="attached", timeout=60000)
            print(json.dumps(tab.evaluate(TIMES)))
            tab.close()
        browser.close()


def events(recording):
    told = subprocess.run([TOOL, "report", recording, "--json"], capture_output=True, text=True, check=True)
    return json.loads(told.stdout)["events"]


def make_long(folder, recording):
    told = subprocess.run([TOOL, "steps", recording, "--json"], capture_output=True, text=True, check=True)
    steps = [r for r in json.loads(told.stdout)["rows"] if r["phase"] == "step"]
    count = events(recording)
    times = EVENTS * len(steps) // count * 5 // 4  # a step has less than its share: there is a beginning and an end
    long = folder / f"long-{recording.name}"
    subprocess.run([MAKER, recording, long, str(steps[1]["begin_ns"]), str(steps[2]["begin_ns"]), str(times)], check=True)
    return long


def measure(folder, recording):
    run = make_long(folder, recording)
    count = events(run)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([TOOL, "html", run, "-o", folder / "long.html"], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    yield "page.events", count, "events"
    yield "page.size", f"{(folder / 'long.html').stat().st_size / 1e6:.2f}", "MB"
    yield "page.made-in", f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f}", "s of CPU"
    told = subprocess.run([BROWSER, __file__, folder / "long.html"], capture_output=True, text=True, check=True).stdout
    times = zip(*map(json.loads, told.splitlines()))
    for name, values in zip(("first-paint", "timeline-drawn", "ready"), times):
        yield f"page.{name}", f"{statistics.median(values):.0f}", "ms"


if __name__ == "__main__":
    if len(sys.argv) == 2:
        opened(sys.argv[1])
    else:
        for name, value, unit in measure(Path(sys.argv[1]), Path(sys.argv[2])):
            print(f"{name:<42} {value:>12} {unit}", flush=True)

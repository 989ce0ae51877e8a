# SPDX-License-Identifier: Apache-2.0
"""page.py FOLDER RECORDING: what the page of a run of ten million events costs, made of RECORDING by repeating its
third step: "name value unit" lines. The page is opened five times in Chromium, the median counts: until the first
text or picture, until the timeline is drawn, until all can be used. The viewer (make viewer) opens the recording itself,
once: until its page can be used, and the most memory of the tab."""
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL, MAKER, BROWSER = ROOT / "build/gpumemtrace", ROOT / "build/data/make_long", ROOT / ".venv-browser/bin/python"
VIEWER = ROOT / "build/gpumemtrace.html"
EVENTS = 10_000_000

TIMES = """() => [performance.getEntriesByName('first-contentful-paint')[0].startTime, performance.getEntriesByName('timeline-drawn')[0].startTime,
  performance.getEntriesByName('ready')[0].startTime]"""


def in_chromium(measured, file):
    """In the environment of the browser: one of the two below, on a file."""
    import shutil

    from playwright.sync_api import sync_playwright
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        {"page": open_page, "recording": open_recording}[measured](browser, file)
        browser.close()


def ready(frame):
    frame.wait_for_selector("html[data-ready]", state="attached", timeout=120000)


def open_page(browser, page):
    """Three times in ms, five times."""
    for _ in range(5):
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(Path(page).resolve().as_uri(), wait_until="commit")
        ready(tab)
        print(json.dumps(tab.evaluate(TIMES)))
        tab.close()


def most_memory():
    """In MB, of the largest process that Chromium has for a page."""
    found = [0]
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            if b"--type=renderer" in (status.parent / "cmdline").read_bytes():
                found += [int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        except OSError:
            continue
    return max(found)


def open_recording(browser, recording):
    """Seconds, and MB."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.goto(VIEWER.as_uri())
    ready(tab)
    with tab.expect_file_chooser() as chooser:
        tab.click("#files")
    start = time.monotonic()
    chooser.value.set_files(recording)
    while len(tab.frames) == 1:
        tab.wait_for_timeout(20)
    ready(tab.frames[1])
    print(json.dumps([time.monotonic() - start, most_memory()]))


def ask_chromium(measured, file):
    done = subprocess.run([BROWSER, __file__, "--in-chromium", measured, file], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def events(recording):
    told = subprocess.run([TOOL, "report", recording, "--json"], capture_output=True, text=True, check=True)
    return json.loads(told.stdout)["events"]


def make_long(folder, recording, of=EVENTS):
    """One of its steps so often that there are so many events, between its own beginning and end."""
    told = subprocess.run([TOOL, "steps", recording, "--json"], capture_output=True, text=True, check=True)
    steps = [r for r in json.loads(told.stdout)["rows"] if r["phase"] == "step"]
    count = events(recording)
    times = of * len(steps) // count * 5 // 4  # a step has less than its share: there is a beginning and an end
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
    for name, values in zip(("first-paint", "timeline-drawn", "ready"), zip(*ask_chromium("page", folder / "long.html"))):
        yield f"page.{name}", f"{statistics.median(values):.0f}", "ms"
    if VIEWER.exists():
        (seconds, memory), = ask_chromium("recording", run)
        yield "page.in-viewer", f"{seconds:.1f}", "s"
        yield "page.in-viewer.memory", f"{memory:.0f}", "MB"


if __name__ == "__main__":
    if sys.argv[1] == "--in-chromium":
        in_chromium(*sys.argv[2:])
    else:
        for name, value, unit in measure(Path(sys.argv[1]), Path(sys.argv[2])):
            print(f"{name:<42} {value:>12} {unit}", flush=True)

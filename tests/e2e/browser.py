# SPDX-License-Identifier: Apache-2.0
"""browser.py PAGE [THEME [WIDTH]] < ACTIONS: opens a page in Chromium and does what the lines of JSON on stdin say;
prints one line of JSON: what each action gave, what the console said, what the page asked the network for.
browser.py --serve: does that for each line [PAGE, THEME, WIDTH, ACTIONS] on stdin, in one tab of one Chromium: a tab is a window to it,
which takes longer to make than most pages.
Run by .venv-browser/bin/python: the tests' own environment has no browser."""
import json
import shutil
import sys
import traceback
from pathlib import Path

from playwright.sync_api import sync_playwright

# What the page has yet to do: its timers, its frames, ways back that have not arrived.
COUNT = """(() => {
  const due = new Set(), begin = { setTimeout: window.setTimeout, requestAnimationFrame: window.requestAnimationFrame }, back = history.back;
  for (const [name, end] of [['setTimeout', 'clearTimeout'], ['requestAnimationFrame', 'cancelAnimationFrame']]) {
    const first = begin[name], last = window[end];
    window[name] = (f, ...rest) => { const id = first.call(window, (...a) => { due.delete(name + id); f(...a); }, ...rest); due.add(name + id); return id; };
    window[end] = (id) => { due.delete(name + id); last.call(window, id); };
  }
  history.back = () => { due.add('back'); window.addEventListener('popstate', () => begin.setTimeout.call(window, () => due.delete('back')), { once: true }); back.call(history); };
  const frame = () => new Promise((then) => begin.requestAnimationFrame.call(window, () => begin.setTimeout.call(window, then)));
  window.settled = async () => { for (let quiet = 0; quiet < 2; quiet = due.size ? 0 : quiet + 1) await frame(); };
})()"""
ACTIONS = {
    "evaluate": lambda page, a: page.evaluate(a["evaluate"]),
    "press": lambda page, a: page.press(a.get("on", "body"), a["press"]),
    "click": lambda page, a: page.click(a["click"], position=a.get("at")),
    "hover": lambda page, a: page.hover(a["hover"], position=a.get("at")),
    "type": lambda page, a: page.fill(a["on"], a["type"]),
    "choose": lambda page, a: page.select_option(a["on"], a["choose"]),
    "wheel": lambda page, a: (page.hover(a["on"]), page.keyboard.down("Control"), page.mouse.wheel(0, a["wheel"]), page.keyboard.up("Control")) and None,
    "drag": lambda page, a: drag(page, a),
    "settle": lambda page, a: settle(page),
    "reload": lambda page, a: (page.reload(), ready(page)) and None,
    "open": lambda page, a: choose_files(page, a),
    "await": lambda page, a: page.wait_for_selector(a["await"], state="attached", timeout=300000) and None,
    "inside": lambda page, a: inside(page).evaluate(a["inside"]),
    "media": lambda page, a: page.emulate_media(**a["media"]),
    "high": lambda page, a: page.set_viewport_size({"width": a.get("wide", page.viewport_size["width"]), "height": a["high"]}),
    "picture": lambda page, a: page.screenshot(path=a["picture"], full_page=a.get("full", False)) and None,
}


def ready(page):
    page.wait_for_selector("html[data-ready]", state="attached", timeout=300000)


def settle(page):
    """Until what the page has begun is done, and drawn."""
    for frame in page.main_frame, *(f.content_frame() for f in page.query_selector_all("iframe")):
        frame.evaluate("window.settled()")


def inside(page):
    """The page's frame as of now: page.frames still has one that was just replaced."""
    frame = page.wait_for_selector("iframe", state="attached", timeout=300000).content_frame()
    frame.wait_for_selector("html[data-ready]", state="attached", timeout=300000)
    return frame


def choose_files(page, action):
    with page.expect_file_chooser() as chooser:
        page.click(action["on"])
    chooser.value.set_files(action["open"])


def drag(page, action):
    box = page.locator(action["drag"]).bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + action["from"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + (action["from"] + action["to"]) / 2, y)
    page.mouse.move(box["x"] + action["to"], y)
    page.mouse.up()


def look(page, path, theme, width, actions):
    """Opens the page and does what the actions say."""
    said, asked, results = [], [], []
    heard = {"console": lambda m: said.append(m.type + ": " + m.text), "pageerror": lambda e: said.append("error: " + str(e)),
             "dialog": lambda d: (said.append("dialog: " + d.message), d.dismiss()), "request": lambda r: asked.append(r.url)}
    for event, hear in heard.items():
        page.on(event, hear)
    page.set_viewport_size({"width": int(width), "height": 900})
    page.emulate_media(media="null", forced_colors="null", color_scheme=theme)
    page.goto(path if path.startswith("http:") else Path(path).resolve().as_uri())
    ready(page)
    for action in actions:
        do = next(ACTIONS[key] for key in ACTIONS if key in action)
        results.append(do(page, action))
    for event, hear in heard.items():
        page.remove_listener(event, hear)
    return {"results": results, "said": said, "asked": [u for u in asked if u != asked[0]]}


def forget(page):
    """Nothing of this page is left for the next one: what it remembers, a key that is down, where the pointer is."""
    page.evaluate("(localStorage.clear(), sessionStorage.clear())")
    page.keyboard.up("Control")
    page.mouse.move(-1, -1)
    page.goto("about:blank")


def serve(page):
    for line in sys.stdin:
        try:
            answer = look(page, *json.loads(line))
            forget(page)
        except Exception:
            answer = {"failed": traceback.format_exc()}
        print(json.dumps(answer), flush=True)


def main():
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.add_init_script(COUNT)
        if sys.argv[1] == "--serve":
            serve(page)
        else:
            path, theme, width = (sys.argv[1:] + ["light", "1280"])[:3] if len(sys.argv) < 4 else sys.argv[1:4]
            print(json.dumps(look(page, path, theme, width, map(json.loads, sys.stdin))))
        browser.close()


main()

# SPDX-License-Identifier: Apache-2.0
"""Pages of runs with one trouble each, at the widths of a phone, a notebook and a large screen, light and dark, in print and in
forced colours: the trouble stands in the first 800 pixels, and nothing scrolls sideways. `make test-page` leaves the pictures in
build/pictures, for people to look at."""
import json
import subprocess
from pathlib import Path

import pytest

import test_summary
from conftest import BUILD, ROOT, Tool
from test_html import MIB, SETTLE, browse, makers, needs_browser, record  # noqa: F401 (makers: a fixture)
from test_import import small, write

pytestmark = needs_browser
PICTURES = BUILD / "pictures"
# Name of the page -> what its first lines say; the kind of a finding, or words.
PAGES = {"leak": "growth", "spike": "spike", "oom": "out_of_memory", "cache": "reserved", "ranks": "ranks", "state": "a state at one moment", "steps": "3,999 steps", "events": "out_of_memory"}
MOST = 12_000_000  # events of that page
ALLOC = "event block_alloc time_ns={} addr={} size={} arg0={} arg1={} thread=1\n"


def made(name, folder):
    """The files that the page is made of."""
    if name in ("leak", "spike", "oom", "cache"):
        return [test_summary.record(folder, name, *(("mine=720MiB", 1) if name == "oom" else ()))[0]]
    if name == "ranks":
        return [record(folder, f"meta rank {i}\nthread 1 1 main\n" + ALLOC.format(100, 1 << 28, (64 + 32 * (i == 5)) * MIB, 96 * MIB, 96 * MIB), f"rank{i}.gmt") for i in range(8)]
    if name == "state":
        bare = small()
        bare["device_traces"][0] = []
        return [write(folder / "state.pickle", bare)]
    if name == "events":
        run, path = ROOT / "tests/data/example/new.gmt", folder / "long.gmt"
        begins = [str(r["begin_ns"]) for r in Tool().json("steps", run)["rows"] if r["phase"] == "step"]
        subprocess.run([BUILD / "data/make_long", run, path, *begins[1:3], str(MOST // 680)], check=True)
        assert Tool().json("report", path)["events"] > MOST
        return [path]
    text, mark = "thread 1 1 main\n", "event range_{} time_ns={} arg0=1 arg1=1 name={} thread=1\n"
    for i in range(4000):
        text += f"string {i + 1} ProfilerStep#{i}\n" + mark.format("begin", 1000 * i + 1, i + 1) + ALLOC.format(1000 * i + 2, 1 << 28, (8 + i % 7) * MIB, (8 + i % 7) * MIB, 64 * MIB)
        text += f"event block_free time_ns={1000 * i + 500} addr={1 << 28} size={(8 + i % 7) * MIB} arg0=0 arg1={64 * MIB} thread=1\n" + mark.format("end", 1000 * i + 900, i + 1)
    return [record(folder, text)]


# Where what is looked for ends, how far the page scrolls sideways, and whether the chart, if there is one, is drawn.
LOOK = """((want) => { const of = document.querySelector(`#findings [data-kind="${want}"]`) || [...document.querySelectorAll('#summary, #findings, #peak .headline')].find((e) => e.innerText.includes(want));
  const chart = document.querySelector('.chart canvas'), shown = chart && chart.clientWidth > 0;
  return [of ? Math.round(of.getBoundingClientRect().bottom + scrollY) : null, document.documentElement.scrollWidth - innerWidth, shown ? chart.toDataURL().length > 4000 : null] })(%s)"""


# A spike and a cache stand where a leak does; 12 million events take a minute.
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.more if n in ("events", "spike", "cache") else ()) for n in PAGES])
def test_the_trouble_stands_first(name, tmp_path):
    PICTURES.mkdir(exist_ok=True)
    Tool()("html", *made(name, tmp_path), "-o", tmp_path / "page.html")
    actions, looks = [], []
    for how in ({"wide": 1280}, {"wide": 400}, {"wide": 3840}, {"wide": 1280, "click": "#theme"}, {"wide": 1280, "media": {"media": "print"}}, {"wide": 1280, "media": {"media": "screen", "forced_colors": "active"}}):
        picture = "-".join([name, str(how["wide"]), *(["dark"] if "click" in how else []), *(list(how["media"].values())[-1:] if "media" in how else [])]) + ".png"
        actions += [{"high": 800, "wide": how["wide"]}, *({k: how[k]} for k in ("click", "media") if k in how), SETTLE, LOOK % json.dumps(PAGES[name]), {"picture": str(PICTURES / picture)}]
        looks.append(len(actions) - 2)
    results = browse(tmp_path / "page.html", *actions)
    for bottom, sideways, chart in (results[i] for i in looks):
        assert bottom is not None and bottom <= 800 and sideways <= 0 and chart == (None if name == "state" else True)
    assert len(list(PICTURES.glob(f"{name}-*.png"))) == 6 and all(Path(p).stat().st_size > 5000 for p in PICTURES.glob(f"{name}-*.png"))

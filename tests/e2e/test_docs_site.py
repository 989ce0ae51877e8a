# SPDX-License-Identifier: Apache-2.0
"""The site of the documents: every command on its pages ends as the page says, its reference has all that the built tool has,
Sphinx has nothing to say of it, no link is broken, and it works from a folder without a network."""
import json
import re
import shutil
import subprocess

import pytest

import docs_reference
import docs_site
from conftest import BUILD, ROOT, Tool, made_once

CHROMIUM = docs_site.BROWSER.exists() and shutil.which("chromium")
SPHINX = (ROOT / ".venv-docs/bin/python").exists()
NO_SPHINX = "no .venv-docs: scripts/setup.sh docs"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """What Sphinx reads, with the output of all examples."""
    def make(folder):
        (folder / "place").mkdir()
        docs_site.assemble(folder / "source", docs_site.Examples(folder / "place"), bool(CHROMIUM))
    return made_once(tmp_path_factory, "site_source", make) / "source"


@pytest.fixture(scope="module")
def site(source, tmp_path_factory):
    if not SPHINX:
        pytest.skip(NO_SPHINX)

    def make(folder):
        shutil.copytree(source, folder / "source")
        (folder / "source/extra/gpumemtrace.html").write_text("<!doctype html>")  # the viewer's place
        docs_site.render(folder / "source", folder / "html")
    return made_once(tmp_path_factory, "site", make) / "html"


def said(source, page):
    return (source / f"docs/questions/{page}.md").read_text()


@pytest.mark.slow
def test_pages_show_what_commands_print(source):
    pages = {name: said(source, name) for name in docs_site.QUESTIONS}
    for name, text in pages.items():
        assert "```example" not in text and "$ gpumemtrace" in text and "ADDRESS:" not in text and str(source.parent / "place") not in text, name
    assert "requested" in pages["out-of-memory"] and "\nCause: " in pages["out-of-memory"] and "Halve the batch" in pages["out-of-memory"]
    line = next(i for i, l in enumerate((ROOT / "docs/questions/train.py").read_text().splitlines(), 1) if "self.head(x)" in l)
    assert f"Model.forward train.py:{line}" in pages["what-grew"].split("1. Kept from step to step")[1][:200]
    assert "ok   old.gmt: growth 0 B a step" in pages["in-ci"] and "fail new.gmt: growth 1000.0 MiB a step" in pages["in-ci"]
    assert re.search(r"rtx4090-24g +no .*\n +a100-40g +yes", pages["will-it-fit"])
    assert "rank 0: " in pages["many-ranks"] and "parameters +444.3 MiB" in pages["many-ranks"]
    cache = [float(x) for x in re.findall(r"KV cache +([\d.]+) GiB", pages["kv-cache"])]
    assert len(cache) == 2 and cache[0] > cache[1] + 0.5 and "context and modules" in pages["not-pytorch"]
    assert "The engine's phase: serving" in pages["engine-oom"] and "Make the KV cache smaller" in pages["engine-oom"]
    for card, tokens in re.findall(r" (\S+) +max-model-len 65536 +yes .* ([\d,]+)  run", pages["max-model-len"]):
        assert f"{card} " in pages["max-model-len"] and re.search(rf"{card} +max-model-len {tokens.replace(',', '')}  the next does not fit", pages["max-model-len"])
    one, of_one = re.findall(r"CUDA graphs +0 B +([\d.]+) MiB", pages["cuda-graphs"])
    assert float(one) >= float(of_one) > 10 and "graphs only" in pages["cuda-graphs"]
    assert re.search(r"\(certain|\(likely|\(a guess", pages["classes"])
    reserved = [float(x) for x in re.findall(r"reserved ([\d.]+) GiB", pages["reserved"])]
    assert len(reserved) == 2 and reserved[0] > reserved[1] + 0.5  # expandable segments help here
    pictures = list((source / "extra/made").glob("*.png"))
    assert len(pictures) == bool(CHROMIUM) and all(p.stat().st_size > 20000 for p in pictures)


def test_an_example_that_fails_ends_the_build(tmp_path):
    examples = docs_site.Examples(tmp_path)
    page = "```example\n$ gpumemtrace peak {}\n```"
    for bad in ("none.gmt", "none.gmt | cat", f"{ROOT}/tests/data/example/new.gmt  # exit code 1"):
        with pytest.raises(docs_site.Failed) as caught:
            examples.fill("page", page.format(bad))
        assert str(caught.value).startswith("page: `gpumemtrace peak ") and "ended with code" in str(caught.value)
    assert "No such file" in examples.fill("page", page.format("none.gmt  # exit code 3"))


def test_reference_has_what_the_tool_has(tool):
    pages = {name: docs_reference.page(name) for name in docs_reference.PAGES}
    rows = {name: re.findall(r"^\| `([^`]+)`", text, re.M) for name, text in pages.items()}
    symbols = subprocess.run(["nm", "-D", "--defined-only", BUILD / "libgpumemtrace.so"], capture_output=True, text=True, check=True).stdout.split()
    assert len(rows["hooks"]) > 80 and set(rows["hooks"]) == {s for s in symbols if re.match(r"cu[A-Zd]\w+", s)} | set(rows["hooks"]) <= set(symbols)
    strings = (BUILD / "libgpumemtrace.so").read_bytes()
    assert len(rows["settings"]) >= 10 and all(name.removeprefix("GPUMEMTRACE_").encode() in strings for name in rows["settings"])
    unknown = subprocess.run([Tool.path, "run", "--sim", "nosuch", "--", "true"], capture_output=True, text=True).stderr
    assert len(rows["cards"]) == 27 and all(card in unknown for card in rows["cards"])
    kinds = {e["kind"] for e in tool.events(ROOT / "tests/data/example/new.gmt")}
    assert len(kinds) > 5 and kinds <= set(rows["events"])
    schema = subprocess.run([Tool.path, "sql", "--schema"], capture_output=True, text=True, check=True).stdout
    assert len(rows["tables"]) > 60 and all(re.search(rf"\b{column}\b", schema) for column in rows["tables"])
    compiled = subprocess.run(["cc", "-E", "-P", "-x", "c", ROOT / "viewer/classes/rules.def"], capture_output=True, text=True, check=True).stdout
    assert rows["rules"] == re.findall(r'^RULE\("([\w-]+)"', compiled, re.M) and len(rows["rules"]) > 30


@pytest.mark.slow
def test_the_site_is_whole(site):
    """render() has looked: no warning of Sphinx, no broken link, nothing loaded from elsewhere."""
    assert "docs/reference/" not in (ROOT / "docs/questions/will-it-fit.md").read_text()
    assert 'href="../reference/cards.html"' in (site / "docs/questions/will-it-fit.html").read_text()
    pages = {str(p.relative_to(site)) for p in site.rglob("*.html")}
    assert 'href="gpumemtrace.html"' in (site / "index.html").read_text() and "gpumemtrace.html" in pages
    assert {"index.html", "README.html", "docs/json.html", "docs/questions/reserved.html", "docs/reference/hooks.html", "format/FORMAT.html",
            "docs/man/gpumemtrace-oom.1.html", "docs/glossary.html"} <= pages
    manuals = {f"docs/man/{p.stem}.html" for p in (ROOT / "docs/man").glob("*.md")}
    assert len(manuals) > 20 and manuals <= pages
    assert {f"docs/{p.stem}.html" for p in (ROOT / "docs").glob("*.md")} - {"docs/index.html"} <= pages


@pytest.mark.skipif(not SPHINX, reason=NO_SPHINX)
@pytest.mark.parametrize("text, words", [
    ("[x](nowhere.md), [x](#nowhere)\n\n# one\n\n### three", ("'nowhere.md'", "'nowhere'", "H1 to H3")),
    ('<a href="other.html">x</a> <img src="https://example.invalid/x.png">', ("other.html, which is not there", "loads https://example.invalid/x.png"))])
def test_what_is_wrong_ends_the_build(tmp_path, text, words):
    source = tmp_path / "source"
    (source / "extra").mkdir(parents=True)
    (source / "index.md").write_text(f"# Title\n\n{text}\n")
    shutil.copy(ROOT / "docs/conf.py", source)
    with pytest.raises(docs_site.Failed) as caught:
        docs_site.render(source, tmp_path / "html")
    assert all(w in str(caught.value) for w in words), caught.value


SEARCH = """
import json, shutil, sys
from playwright.sync_api import sync_playwright
with sync_playwright() as driver:
    browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
    page = browser.new_page()
    asked, said = [], []
    page.on("request", lambda r: asked.append(r.url))
    page.on("pageerror", lambda e: said.append(str(e)))
    page.goto(sys.argv[1] + "/index.html")
    page.click("text=Why did it run out of memory? >> nth=0")
    title = page.text_content("h1")
    page.fill("input[name=q]", "expandable_segments")
    page.press("input[name=q]", "Enter")
    page.wait_for_selector(".search li a:has-text('reserved above allocated')", timeout=20000)  # they come one by one
    found = page.eval_on_selector_all(".search li a", "all => all.map(a => a.textContent)")
    print(json.dumps({"title": title, "found": found, "asked": asked, "said": said}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="no .venv-browser or chromium: scripts/setup.sh browser")
def test_it_works_from_a_folder(site):
    done = subprocess.run([docs_site.BROWSER, "-c", SEARCH, site.as_uri()], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    assert seen["title"].startswith("Why did it run out of memory?") and not seen["said"]
    assert any("reserved above allocated" in title for title in seen["found"])
    assert all(url.startswith(("file:", "data:", "blob:")) for url in seen["asked"]), seen["asked"]

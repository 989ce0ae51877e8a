# SPDX-License-Identifier: Apache-2.0
"""Builds the site of the documents in build/site: docs_site.py [--no-pictures]. `make docs` runs it.

The pages are the documents of the repository as they stand, in the folders that they have there, so that their links hold.
A command in a block ```example is run, once for all pages, and what it prints stands below it; one that ends otherwise
than with code 0, or with the N of a comment `# exit code N`, ends the build. In a command, ADDRESS is the first address
that the command before it printed. The reference is made from tables (docs_reference.py, man.sh)."""
import argparse
import html.parser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

import docs_reference
from json_page import ROOT

OUT = ROOT / "build/site"
QUESTIONS = ["out-of-memory", "what-grew", "will-it-fit", "who-holds", "reserved", "in-ci", "many-ranks", "classes", "kv-cache", "not-pytorch", "cuda-graphs", "server-grows", "engine-oom", "max-model-len", "sleep"]
PARTS = {
    "Questions": [f"docs/questions/{name}" for name in QUESTIONS],
    "Use": ["README", "docs/make-it-fit", "docs/python", "docs/ci"],
    "Reference": ["docs/man/gpumemtrace", "docs/json", *(f"docs/reference/{name}" for name in docs_reference.PAGES),
                  "format/FORMAT", "docs/glossary"],
    "How good it is": ["docs/benchmarks", "docs/cost", "docs/fit", "docs/accuracy", "docs/engines", "docs/conclusions", "docs/frameworks", "docs/other-programs", "docs/reliability", "docs/driver-lookups", "docs/pytorch-versions", "docs/format-versions",
                       "docs/gpu-results"],
    "Inside": ["viewer/README", "browser/README", "shim/README", "simgpu/README", "python/README", "packaging/README", "tests/README",
               "tests/classes/README", "tests/frameworks/README", "CONTRIBUTING", "SECURITY", "CHANGELOG"],
}
TITLES = {"README": "First steps", "examples/README": "Examples", "docs/man/gpumemtrace": "Commands", "viewer/README": "viewer/", "browser/README": "browser/", "shim/README": "shim/",
          "simgpu/README": "simgpu/", "python/README": "python/", "packaging/README": "packaging/", "tests/README": "tests/",
          "tests/classes/README": "tests/classes/", "tests/frameworks/README": "tests/frameworks/"}
# Documents that no list names have their place too.
PARTS["Use"] += sorted({str(p.relative_to(ROOT).with_suffix("")) for p in (*ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/README.md"))} -
                       {"docs/index", *sum(PARTS.values(), [])})
LINK = re.compile(r"(?<=\]\()([^)#\s]+)((?:#[^)]*)?)(?=\))")
PICTURE = re.compile(r"^<!-- picture: (\S+\.html): (.*) -->$", re.M)
BROWSER = ROOT / ".venv-browser/bin/python"


class Failed(Exception):
    """One sentence."""


class Examples:
    """Runs what pages show, in one folder with the program of the pages."""

    def __init__(self, place):
        self.place, self.said = Path(place), {}
        for program in ("train.py", "serve.py"):
            shutil.copy(ROOT / "docs/questions" / program, self.place)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
        self.env.update(PATH=f"{ROOT / 'build'}:{ROOT / '.venv/bin'}:{os.environ['PATH']}", LC_ALL="C.UTF-8", OMP_NUM_THREADS="1")

    def run(self, page, command):
        """What it printed. The same command again is not run again."""
        if command not in self.said:
            done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=self.place, env=self.env, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace", timeout=300)
            wanted = re.search(r"# exit code (\d+)$", command)
            if done.returncode != int(wanted[1] if wanted else 0):
                raise Failed(f"{page}: `{command}` ended with code {done.returncode}:\n{done.stdout}")
            self.said[command] = "\n".join(line.rstrip().replace(str(self.place), "/home/me") for line in done.stdout.splitlines())
        return self.said[command]

    def fill(self, page, text):
        """The page with the output of its examples."""
        last = ""

        def block(m):
            nonlocal last
            lines = []
            for line in m[1].splitlines():
                address = re.search(r"0x[0-9a-f]+", last)
                if address:
                    line = line.replace("ADDRESS", address[0])
                last = self.run(page, line.removeprefix("$ "))
                lines += [line, *filter(None, [last])]
            return "```console\n" + "\n".join(lines) + "\n```"
        return re.sub(r"^```example\n(.*?)\n```$", block, text, flags=re.M | re.S)


def picture(page, out):
    """A page of the tool as Chromium shows it."""
    actions = f'{{"settle": true}}\n{{"picture": "{out}"}}\n'
    done = subprocess.run([BROWSER, ROOT / "tests/e2e/browser.py", page], input=actions, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise Failed(f"no picture of {page}: {done.stderr.strip().splitlines()[-1]}")


def pictures(text, depth, examples, made, wanted):
    """Comments that ask for a picture become one that links to the page itself."""
    def one(m):
        page, up = examples.place / m[1], "../" * depth
        made.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, made)
        if not wanted:
            return f'<p><a href="{up}made/{m[1]}">{m[2]}</a></p>'
        name = Path(m[1]).with_suffix(".png").name
        picture(page, made / name)
        return f'<p><a href="{up}made/{m[1]}"><img src="{up}made/{name}" alt="{m[2]}"></a></p>'
    return PICTURE.sub(one, text)


def manual(name):
    """A page of the manual with the output of its examples."""
    done = subprocess.run(["bash", ROOT / "scripts/man.sh", "--markdown", ROOT / "docs/man" / name], capture_output=True, text=True, check=True)
    text = re.sub(r"^# (GPUMEMTRACE[\w-]*)\(1\)", lambda m: f"# {m[1].lower()}", done.stdout)
    known = sorted(p.name.removesuffix(".1.md") for p in (ROOT / "docs/man").glob("*.1.md"))
    return re.sub(r"(?<![\w`-])(gpumemtrace-[a-z]+)\(1\)", lambda m: f"[{m[0]}]({m[1]}.1.md)" if m[1] in known else m[0], text)


def sources():
    """Where a page stands in the repository -> its text; pages made from tables are in no file."""
    for part in PARTS.values():
        for name in part:
            if name.startswith("docs/reference/"):
                yield f"{name}.md", docs_reference.page(Path(name).name)
            elif name != "docs/man/gpumemtrace":
                yield f"{name}.md", (ROOT / f"{name}.md").read_text()
    for path in sorted((ROOT / "docs/man").glob("*.1.md")):
        yield f"docs/man/{path.name}", manual(path.name)


def take_along(page, text, src):
    """Files that a page links to and that are no pages."""
    for target, _ in LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)):
        if "://" in target or target.endswith(".md"):
            continue
        path = Path(os.path.normpath(Path(page).parent / target))
        if not (ROOT / path).is_file():
            raise Failed(f"{page}: the link to {target} leads to no file")
        (src / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, src / path)


def to_pages(page, text):
    """docs/index.md stands at the top of the site; for a table there is the page made from it."""
    moved = {path: f"docs/reference/{name}.md" for name, (_, path) in docs_reference.PAGES.items() if not page.startswith("docs/reference/")}
    moved["docs/index.md"] = "index.md"

    def target(m):
        path = os.path.normpath(Path(page).parent / m[1])
        return os.path.relpath(moved[path], Path(page).parent) + m[2] if path in moved else m[0]
    return LINK.sub(target, text)


def trees():
    """The side bar."""
    for caption, pages in PARTS.items():
        names = [n + (".1" if n == "docs/man/gpumemtrace" else "") for n in pages]
        names = [f"{TITLES[p]} <{n}>" if p in TITLES else n for p, n in zip(pages, names)]
        yield f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(names) + "\n```\n"


def assemble(src, examples, with_pictures):
    """All that Sphinx reads."""
    shutil.rmtree(src, ignore_errors=True)
    for page, text in [("docs/index.md", (ROOT / "docs/index.md").read_text()), *sources()]:
        if page.startswith("docs/questions/"):
            text = examples.fill(page, text.replace("<!-- classes -->\n", docs_reference.classes()))
        text = pictures(text, page.count("/"), examples, src / "extra/made", with_pictures)
        text = to_pages(page, text) if page != "docs/index.md" else text
        take_along(page, text, src)
        if page == "docs/index.md":  # stands at the top
            page, text = "index.md", LINK.sub(lambda m: os.path.normpath(f"docs/{m[1]}") + m[2], text) + "\n" + "\n".join(trees())
        if page == "docs/man/gpumemtrace.1.md":
            commands = sorted(p.name.removesuffix(".md") for p in (ROOT / "docs/man").glob("gpumemtrace-*.md"))
            text += "\n```{toctree}\n:hidden:\n\n" + "\n".join(commands) + "\n```\n"
        (src / page).parent.mkdir(parents=True, exist_ok=True)
        (src / page).write_text(text)
    shutil.copy(ROOT / "docs/conf.py", src)
    (src / "extra").mkdir(exist_ok=True)


class Links(html.parser.HTMLParser):
    """Where a page leads, what it loads, and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        self.anchors.update(filter(None, (a.get("id"), a.get("name"))))
        if tag in ("script", "img", "iframe") or (tag == "link" and a.get("rel") not in ("index", "search", "next", "prev", "canonical")):
            self.loads += filter(None, (a.get("src"), a.get("href")))
        elif a.get("href"):
            self.links.append(a["href"])


def wrong_links(site):
    """Links that lead nowhere, and what would be loaded from another host."""
    pages = {p: Links(p) for p in sorted(site.rglob("*.html")) if "made" not in p.parts}
    for page, found in pages.items():
        yield from (f"{page.relative_to(site)} loads {url}" for url in found.loads if re.match(r"(\w+:)?//", url))
        for url in found.links + found.loads:
            parts = urllib.parse.urlsplit(url)
            if parts.scheme or url.startswith("//"):
                continue
            target = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
            if not target.exists() or parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors:
                yield f"{page.relative_to(site)} links to {url}, which is not there"
    for sheet in site.rglob("*.css"):
        yield from (f"{sheet.relative_to(site)} loads {url}" for url in re.findall(r"url\([\"']?((?:https?:)?//[^)\"']+)", sheet.read_text()))


def render(src, site):
    """Warnings are errors."""
    python = ROOT / ".venv-docs/bin/python"
    if not python.exists():
        raise Failed("no .venv-docs: run scripts/setup.sh docs")
    shutil.rmtree(site, ignore_errors=True)
    done = subprocess.run([python, "-m", "sphinx", "-W", "--keep-going", "-q", "-n", "-d", src.parent / "doctrees", src, site], capture_output=True, text=True)
    if done.returncode:
        raise Failed(done.stderr.strip())
    wrong = list(wrong_links(site))
    if wrong:
        raise Failed("\n".join(wrong))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-pictures", action="store_true", help="links in their place, on a machine without Chromium")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as place:
            assemble(OUT / "source", Examples(place), not options.no_pictures)
        shutil.copy(ROOT / "build/gpumemtrace.html", OUT / "source/extra")  # the viewer
        render(OUT / "source", OUT / "html")
    except Failed as error:
        sys.exit(f"docs: {error}")
    print(f"docs: {OUT / 'html/index.html'}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""`gpumemtrace open`: the page of `html`, and a browser on it; where there is none, its name."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT, Tool, until

RUN = ROOT / "tests/data/example/new.gmt"


@pytest.fixture
def opened(tmp_path):
    def opened(*args, **env):
        (tmp_path / "pages").mkdir(exist_ok=True)
        env = {k: v for k, v in os.environ.items() if k not in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")} | {"TMPDIR": str(tmp_path / "pages")} | env
        return subprocess.run([Tool.path, "open", *map(str, args)], capture_output=True, text=True, env=env, timeout=600)
    return opened


def browser(folder, body):
    path = folder / "browser"
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(0o755)
    return str(path)


def test_the_browser_gets_the_page_of_html(tool, opened, tmp_path):
    tool("html", RUN, "-o", tmp_path / "own.html")
    seen = tmp_path / "seen"
    done = opened(RUN, "--json", BROWSER=browser(tmp_path, f'echo noise; echo noise >&2; cp "$2" {seen}.new && mv {seen}.new {seen}; sleep 5') + " --new-tab")
    said = json.loads(done.stdout)
    assert (done.returncode, done.stderr, said["started"]) == (0, "", True)
    until(seen.exists)
    assert seen.read_bytes() == (tmp_path / "own.html").read_bytes() == Path(said["file"]).read_bytes()
    assert said["bytes"] == seen.stat().st_size


def test_without_a_browser_the_page_is_named(opened):
    for env in ({}, {"BROWSER": ""}, {"BROWSER": "no-such-browser --new"}):
        done = opened(RUN, RUN, **env)
        page, words = done.stdout.strip().split(": ")
        assert done.returncode == 0 and words == "no browser was found here; open this file in one"
        assert Path(page).read_text().startswith("<!doctype html>")


def test_nothing_is_left_of_a_file_that_cannot_be_read(opened, tmp_path):
    done = opened(tmp_path / "none.gmt", BROWSER=browser(tmp_path, "touch started"))
    assert done.returncode == 3 and done.stderr.startswith("gpumemtrace open: ") and done.stdout == ""
    assert not list((tmp_path / "pages").iterdir())

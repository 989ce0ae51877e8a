# SPDX-License-Identifier: Apache-2.0
"""The command diff: its faces say the same, limits give the right exit code, names of the program stay text."""
import json
import re

import pytest
from test_cli import HOSTILE, MIB, SAMPLE, answer, assert_refused, make, ok, on_terminal, run  # noqa: F401

MORE = SAMPLE.replace(f"addr=0x10800000 size={8 * MIB} arg0={14 * MIB}", f"addr=0x10800000 size={10 * MIB} arg0={16 * MIB}") \
    .replace(f"addr=0x10800000 size={8 * MIB}", f"addr=0x10800000 size={10 * MIB}")


@pytest.fixture
def two(make):  # noqa: F811
    """The first peak is 14 MiB with 8 MiB of activations, the second 16 MiB with 10."""
    return make(SAMPLE, "old.gmt"), make(MORE, "new.gmt")


def test_one_line_grew(two):
    said = answer("diff", *two)
    assert (said["peak_old"], said["peak_new"], said["delta"]) == (14 * MIB, 16 * MIB, 2 * MIB)
    assert said["peak_phase_old"] == said["peak_phase_new"] == "forward"
    first = said["findings"][0]
    assert len(said["findings"]) == 1 and first["kind"] == "grown" and first["class"] == "activations"
    assert (first["function"], first["file"], first["line"]) == ("Model.forward", "/home/u/model.py", 40)
    assert (first["bytes_old"], first["bytes_new"], first["delta"]) == (8 * MIB, 10 * MIB, 2 * MIB)


def test_the_other_way_round(two):
    first = answer("diff", *reversed(two))["findings"][0]
    assert first["kind"] == "shrunk" and first["delta"] == -2 * MIB


def test_nothing_differs(two):
    assert answer("diff", two[0], two[0])["findings"] == []
    assert "Nothing differs." in ok("diff", two[0], two[0])


def test_text_and_markdown_say_the_same(two):
    first = answer("diff", *two)["findings"][0]["text"]
    text, markdown = ok("diff", *two), ok("diff", *two, "--markdown")
    assert max(map(len, text.splitlines())) <= 80
    assert first in re.sub(r"\s+", " ", text)
    assert first in re.sub(r"&#\d+;", "", markdown.replace("\\", ""))
    for out in (text, markdown):
        assert "14.0 MiB -> 16.0 MiB" in out and "+2.0 MiB" in out
        assert re.search(r"activations\W+8\.0 MiB\W+10\.0 MiB\W+2\.0 MiB", out)


@pytest.mark.parametrize("limit, code", [("14%", 1), ("14.2%", 1), ("14.3%", 0), ("2MiB", 0), ("2047KiB", 1), ("0", 1), ("1GiB", 0)])
def test_limits(two, limit, code):
    done = run("diff", *two, "--fail-above", limit)
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == code
    if code:
        assert "from 14.0 MiB to 16.0 MiB" in done.stderr and limit in done.stderr
    assert run("diff", *reversed(two), "--fail-above", limit).returncode == 0


def test_limits_of_a_class(two):
    assert run("diff", *two, "--fail-above", "20%", "--class", "activations").returncode == 1
    assert run("diff", *two, "--fail-above", "25%", "--class", "activations").returncode == 0
    assert run("diff", *two, "--fail-above", "0%", "--class", "parameters").returncode == 0


@pytest.mark.parametrize("args, word", [(["--fail-above", "much"], "much"), (["--fail-above", "-1"], "-1"),
                                        (["--class", "activations"], "--fail-above"),
                                        (["--fail-above", "1%", "--class", "nothing"], "nothing"),
                                        (["--markdown", "--json"], "choose")])
def test_wrong_use(two, args, word):
    done = run("diff", *two, *args)
    assert_refused(done, 2)
    assert word in done.stderr


def test_names_stay_text(make, on_terminal, two):  # noqa: F811
    hostile = make(HOSTILE.replace("train.py", "tr|ain<b>`@x`.py").replace("size=%d" % (8 * MIB), "size=%d" % (9 * MIB)), "hostile2.gmt")
    text = on_terminal("diff", two[0], hostile, NO_COLOR="1")
    assert not [c for c in text if (ord(c) < 32 and c not in "\r\n") or 0x7f <= ord(c) < 0xa0], text
    markdown = ok("diff", two[0], hostile, "--markdown")
    assert "\x1b" not in markdown and "<b>" not in markdown
    json.loads(ok("diff", two[0], hostile, "--json"))

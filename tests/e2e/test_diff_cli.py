# SPDX-License-Identifier: Apache-2.0
"""The command diff: its faces say the same, limits give the right exit code, names of the program stay text."""
import html
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


STACKS = "meta python_stacks {}\nmeta native_stacks {}\nmeta torch.tags {}\n"


@pytest.mark.parametrize("old, new, named, lines", [
    (("yes", "yes", "on"), ("no: Python stacks are switched off", "no: native stacks are switched off", "on"), "Python stacks are recorded in the old one only", False),
    (("yes", "yes", "off: GPUMEMTRACE_TAGS"), ("yes", "yes", "on"), "autograd's tags are recorded in the new one only", True),
    (("yes", "yes", "on"), ("yes", "no: native stacks are switched off", "on"), "native stacks are recorded in the old one only", True)])
def test_recordings_of_other_settings(make, old, new, named, lines):  # noqa: F811
    """What only one of them could record is no change of the program: no cause is named, lines are compared where both have them."""
    files = make(STACKS.format(*old) + SAMPLE, "old.gmt"), make(STACKS.format(*new) + MORE, "new.gmt")
    said, text = answer("diff", *files), " ".join(ok("diff", *files).split())
    assert said["not_compared"].startswith("The recordings were made with different settings: " + named)
    assert said["not_compared"] in text and "Nothing differs" not in text
    assert [(f["cause"], f["delta"]) for f in said["findings"]] == ([("line", 2 * MIB)] if lines else [])
    assert bool(said["lines"]) == lines and "More activations" not in text
    assert {b["what"] for b in said["besides"]} >= {re.match("(.*) (is|are) ", named).group(1)}
    same = answer("diff", files[0], make(STACKS.format(*old) + MORE, "like.gmt"))
    assert same["not_compared"] == "" and not same["besides"] and same["findings"]


def test_a_program_without_a_backward_pass_frees_no_gradients(make):  # noqa: F811
    gradient = f"addr=0x10600000 size={MIB} arg0={7 * MIB}"
    trained = SAMPLE.replace(gradient, f"addr=0x10600000 size={9 * MIB} arg0={15 * MIB}").replace(f"size={MIB} arg0=77", f"size={9 * MIB} arg0=77")
    passes = "".join(line + "\n" for line in SAMPLE.splitlines() if "thread=2" not in line and not line.startswith("event tag"))
    for files in ((trained, passes), (passes, trained)):
        texts = [f["text"] for f in answer("diff", make(files[0], "a.gmt"), make(files[1], "b.gmt"))["findings"]]
        about = [t for t in texts if "gradients" in t.split(":")[0]]
        side = "new" if files[1] is passes else "old"
        assert len(about) == 1 and "the %s recording has no backward pass" % side in about[0], texts
        assert not any(word in about[0] for word in ("zero_grad", "freed", "before"))


def test_factors_in_plain_digits(make):  # noqa: F811
    small = SAMPLE.replace(f"addr=0x10800000 size={8 * MIB}", "addr=0x10800000 size=1024")
    for files, words in (((small, SAMPLE), "8,192 times as large"), ((SAMPLE, small), "1/8,192 as large")):
        text = answer("diff", make(files[0], "a.gmt"), make(files[1], "b.gmt"))["findings"][0]["text"]
        assert words in text and "e+" not in text and "e-" not in text, text


def test_text_and_markdown_say_the_same(two):
    first = answer("diff", *two)["findings"][0]["text"]
    text, markdown = ok("diff", *two), ok("diff", *two, "--markdown")
    assert max(map(len, text.splitlines())) <= 80
    assert first in re.sub(r"\s+", " ", text)
    assert first in html.unescape(markdown.replace("\\", ""))
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

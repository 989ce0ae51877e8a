# SPDX-License-Identifier: Apache-2.0
"""Every command that answers from one file says of which part of the run, where that is not all of it: behind its text, and
where other programs read what is on stdout, on stderr."""
import os
import re

import pytest

from test_cli import COMMANDS, SAMPLE, make, run

SENTENCES = {"damaged": "The file is damaged (see gpumemtrace verify): these figures are those of the readable part.",
             "killed": "The program was killed or crashed, or the file was cut: figures are up to the last event.",
             "snapshot": "The recording stops before the run's end (a snapshot, or recovered): figures are up to there.", "whole": None}
TEXT = {"report": [], "peak": [], "timeline": [], "live": [], "why": ["{addr}"], "steps": [], "modules": [], "account": [], "leaks": [], "oom": [],
        "replay": [], "advise": [], "diff": ["{file}"]}
EXPORTS = {"flame": [], "export": ["--to", "csv", "-o", "-"]}
BY_ITSELF = {"info", "verify", "recover", "top", "check", "html", "open"}  # in words of its own, or on its page
NO_FIGURES = {"dump", "stack"}
OF_NO_FILE = {"run", "fit", "bisect", "ctl", "attach", "import", "collect", "compact", "regressions", "sql", "dashboard"}
make = make


@pytest.fixture(scope="module", params=SENTENCES)
def file(request, make):
    path = make(SAMPLE.replace("event end time_ns=230", {"whole": "event end time_ns=230", "snapshot": ""}.get(request.param, "unfinished")),
                request.param + ".gmt")
    if request.param == "damaged":
        os.rename(path, path + ".0")
        with open(path + ".0", "rb") as old, open(path, "wb") as new:
            new.write(old.read() + b"no block of a recording")
    return request.param, path


def test_every_command_is_named_here():
    assert {*TEXT, *EXPORTS, *BY_ITSELF, *NO_FIGURES, *OF_NO_FILE} == set(COMMANDS)


@pytest.mark.parametrize("command", [*TEXT, *EXPORTS])
def test_says_what_the_recording_lacks(file, command):
    state, path = file
    addr = re.search(r"0x[0-9a-f]+", run("live", path).stdout)[0]
    more = [a.format(addr=addr, file=path) for a in {**TEXT, **EXPORTS}[command]]
    for json in [[], ["--json"]] if command not in EXPORTS else [[]]:
        done = run(command, path, *more, *json)
        assert done.returncode == 0, done.stderr
        streams = [re.sub(r"\s+", " ", text) for text in (done.stdout, done.stderr)]
        where = 1 if json or command in EXPORTS else 0
        for k, stream in enumerate(streams):
            said = [s for s in SENTENCES.values() if s and s in stream]
            own = command == "report" and json  # `truncated` says it
            assert said == ([SENTENCES[state]] if k == where and SENTENCES[state] and not own else []), (json, k, stream)
        assert streams[where].count(SENTENCES[state] or "-->") == (0 if own or state == "whole" else 1 + (command == "diff"))


def test_top_says_how_the_process_ended(file):
    state, path = file
    first, second = run("top", path).stdout.splitlines()[:2]
    ends = {"whole": "(ended)", "damaged": "(the file is damaged)", "killed": "(killed or crashed)", "snapshot": "(a part of its run)"}
    assert ends[state] in first and " at the end, peak " in second

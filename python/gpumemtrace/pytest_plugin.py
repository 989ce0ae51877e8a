# SPDX-License-Identifier: Apache-2.0
"""pytest-gpumemtrace: bounds for the device memory of tests.

    @pytest.mark.gpu_memory(peak="2 GiB", growth="0 B", classes={"activations": "1 GiB"})
    def test_training(): ...

A test with this mark runs in a process of its own under ``gpumemtrace run``, on the simulated device where there is no
card, and fails if a bound does not hold. Fixtures of wider scope are made anew in that process. What pytest reports is
what that process reported. ``growth`` is what stays with each training step, as ``gpumemtrace leaks`` counts it.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from typing import Any, Dict, Generator, List, Mapping, NamedTuple, Optional

import pytest

from ._error import Error
from ._files import has_card, tool
from ._recording import Recording, bounds as words_of
from ._tool import run

_CHILD = "GPUMEMTRACE_PYTEST_REPORTS"  # in the recorded process: the file that its reports go to
_MARK = "gpu_memory(peak=None, growth=None, reserved=None, classes=None): the test runs recorded by gpumemtrace and fails if it holds more"
_WORDS = {"peak": "max_peak", "growth": "max_growth", "reserved": "max_reserved", "classes": "max_class"}
# Options of the session that make no sense for one test of it: name -> how many words follow.
_LEFT_OUT = {"--basetemp": 1, "-n": 1, "--numprocesses": 1, "--dist": 1, "--junitxml": 1, "--junit-xml": 1, "--lf": 0, "--last-failed": 0, "--ff": 0,
             "--failed-first": 0, "--nf": 0, "--sw": 0, "--stepwise": 0, "--collect-only": 0, "--co": 0, "--gpu-memory": 0,
             "--gpu-memory-report": 0, "--gpu-memory-keep": 1, "--gpu-memory-sim": 1, "--gpu-memory-fail-above": 1}
# Options whose value may look like a test.
_FOLDERS = ("--rootdir", "--confcutdir", "-c", "--config-file", "-p", "-o")


class Result(NamedTuple):
    """Of one test that was recorded."""

    name: str
    peak: int
    words: str  # when the peak was, and which line holds most of it
    file: Optional[str]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpumemtrace", "device memory of tests")
    group.addoption("--gpu-memory", action="store_true", help="record every test, not only those marked gpu_memory")
    group.addoption("--gpu-memory-report", action="store_true", help="print the peak of every test that was recorded")
    group.addoption("--gpu-memory-keep", metavar="DIR", help="keep the recordings in this folder")
    group.addoption("--gpu-memory-sim", metavar="CARD", help="simulate this card, as gpumemtrace run --sim (default: h100-80g where there is none)")
    group.addoption("--gpu-memory-fail-above", metavar="LIMIT",
                    help="fail if a test's peak is more than its last one by this: 2%%, 64MiB (kept in pytest's cache)")


def pytest_configure(config: pytest.Config) -> None:
    """The plugin has one name, that of its module: pytest takes a second one (-p, pytest_plugins) beside the wheel's for another plugin."""
    config.addinivalue_line("markers", _MARK)
    reports = os.environ.pop(_CHILD, None)  # a pytest that a test starts is none of ours
    if reports:
        config.pluginmanager.register(_Reporter(config, reports), "gpumemtrace-reporter")
    else:
        config.pluginmanager.register(_Runner(config), "gpumemtrace-runner")


class _Reporter:
    """In the recorded process: hands every report to the one that started it."""

    def __init__(self, config: pytest.Config, path: str) -> None:
        self._config = config
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(data) + "\n")


class _Runner:
    """In the session: gives marked tests to processes of their own, and judges what these recorded."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.results: List[Result] = []
        self._names: Counter[str] = Counter()  # of files, how many tests have each

    def _bounds(self, item: pytest.Item) -> Optional[Dict[str, Any]]:
        """Those of the test's marks, the nearest first; None if it is not to be recorded. ValueError: a mark means nothing."""
        bounds: Dict[str, Any] = {}
        marks = list(item.iter_markers("gpu_memory"))
        for mark in reversed(marks):
            given = {**dict(zip(["peak"], mark.args)), **mark.kwargs}
            if set(given) - set(_WORDS) or len(mark.args) + len(mark.kwargs) != len(given):
                raise ValueError("gpu_memory takes a peak, and peak=, growth=, reserved= and classes= by name")
            bounds.update((_WORDS[name], size) for name, size in given.items() if size is not None)
        if not isinstance(bounds.get("max_class", {}), Mapping):
            raise ValueError("gpu_memory takes classes as a dictionary: classes={'activations': '1 GiB'}")
        _check_sizes(bounds)
        return bounds if marks or self._config.getoption("--gpu-memory") else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Optional[bool]:
        bounds, wrong = None, ""
        try:
            bounds = self._bounds(item)
        except ValueError as error:
            wrong = str(error)
        if bounds is None and not wrong:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        with tempfile.TemporaryDirectory(prefix="gpumemtrace-") as folder:
            for report in [_failure(item, wrong)] if bounds is None else self._run(item, bounds, folder):
                item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _run(self, item: pytest.Item, bounds: Mapping[str, Any], folder: str) -> List[pytest.TestReport]:
        recording, reports = self._recording(item, folder), os.path.join(folder, "reports")
        open(reports, "w").close()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST")}
        done = subprocess.run(self._command(item, recording), env={**environment, _CHILD: reports}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, cwd=self._config.invocation_params.dir, check=False, text=True,
                              errors="replace")
        found = [self._config.hook.pytest_report_from_serializable(config=self._config, data=data) for data in _whole_lines(reports)]
        for report in found:
            report.nodeid, report.location = item.nodeid, item.location
            if isinstance(report.longrepr, list):  # of a skip a tuple, which JSON has not
                report.longrepr = tuple(report.longrepr)
        call = next((r for r in found if r.when == "call"), None)
        if not any(r.when == "teardown" for r in found):
            return [*found, _failure(item, f"the recorded process ended with code {done.returncode} before the test did",
                                      done.stdout.replace("gpumemtrace run: --sim:", "--gpu-memory-sim:"))]
        if call is not None and call.passed:
            self._judge(call, item, bounds, recording)
        return found

    def _recording(self, item: pytest.Item, folder: str) -> str:
        keep = self._config.getoption("--gpu-memory-keep")
        if not keep:
            return os.path.join(folder, "test.gmt")
        os.makedirs(keep, exist_ok=True)
        if not self._names:
            self._names = Counter(_file_name(i.nodeid).casefold() for i in item.session.items)
        name = _file_name(item.nodeid)
        if self._names[name.casefold()] > 1 or len(name.encode()) > 200:  # of several tests, or too long for a file
            name = f"{name[:50]}-{hashlib.sha256(item.nodeid.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
        return os.path.abspath(os.path.join(keep, name + ".gmt"))

    def _command(self, item: pytest.Item, recording: str) -> List[str]:
        card = self._config.getoption("--gpu-memory-sim") or ("" if has_card() else "h100-80g")
        test = str(item.path) + item.nodeid[item.nodeid.index("::"):] if "::" in item.nodeid else str(item.path)
        alone = ["-n0"] if self._config.pluginmanager.hasplugin("xdist") else []
        return [tool(), "run", *(["--sim", card] if card else []), "-o", recording, "--", sys.executable, "-m", "pytest",
                "-p", "gpumemtrace.pytest_plugin", *_passed_on(self._config), *alone, test]

    def _judge(self, call: pytest.TestReport, item: pytest.Item, bounds: Mapping[str, Any], recording: str) -> None:
        """A test that used no device has no recording, and keeps within every bound."""
        if not os.path.exists(recording):
            self.results.append(Result(item.nodeid, 0, "used no device", None))
            return
        try:
            r = Recording(recording)
            peak = r.highest()
            lines = [f"{_human(line.bytes):>10}  {line.class_.replace('_', ' ')}  {_place(line)}" for line in peak.lines[:5]]
            self.results.append(Result(item.nodeid, peak.bytes, "; ".join(dict.fromkeys(filter(None, [peak.text, _place(peak.lines[0]) if lines else ""]))),
                                       recording if self._config.getoption("--gpu-memory-keep") else None))
            broken = [b.text for b in r.check(**bounds).recordings[0].bounds if not b.ok] if bounds else []
            broken += self._increase(item, peak.bytes)
        except Error as error:
            broken, lines = ["gpu_memory: " + error.sentence.replace("--max-", "")], []
        if broken:
            call.outcome = "failed"
            call.longrepr = "\n".join(broken)
            call.sections += [("gpumemtrace: the lines that hold the peak", "\n".join(lines))] if lines else []

    def _increase(self, item: pytest.Item, peak: int) -> List[str]:
        """Against the peak of the last run that was not above its own."""
        limit, cache = self._config.getoption("--gpu-memory-fail-above"), getattr(self._config, "cache", None)
        if limit is None or cache is None:
            return []
        key = f"gpumemtrace/{item.nodeid}"
        last = cache.get(key, None)
        if last is not None and peak - last > _amount(limit, last):
            return [f"peak {_human(peak)}: it was {_human(last)} in the last run, {limit} more is allowed"]
        cache.set(key, peak)
        return []

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._config.getoption("--gpu-memory-report"):
            return
        terminalreporter.section("device memory")
        for result in sorted(self.results, key=lambda r: -r.peak):
            terminalreporter.write_line(f"{_human(result.peak):>10}  {result.name}  {result.words}")
            if result.file:
                terminalreporter.write_line(f"{'':>10}  gpumemtrace report {result.file}")
        if not self.results:
            terminalreporter.write_line("no test was recorded: mark tests with gpu_memory, or give --gpu-memory")

    # With pytest-xdist the workers judge, and the session prints.

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        self.results += [Result(*row) for row in getattr(node, "workeroutput", {}).get("gpumemtrace", [])]

    def pytest_sessionfinish(self) -> None:
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["gpumemtrace"] = [list(r) for r in self.results]


def _passed_on(config: pytest.Config) -> Generator[str, None, None]:
    """The words of the session's command line but for tests and what is not for one test."""
    skip, before = 0, ""
    # Without tests on the command line these are folders of the settings.
    tests = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
    for word in map(str, config.invocation_params.args):
        name, equals, _ = word.partition("=")
        if skip:
            skip -= 1
        elif name in _LEFT_OUT:
            skip = 0 if equals else _LEFT_OUT[name]
        elif before in _FOLDERS or (word not in tests and not (word.startswith("-n") and word[2:].isdigit())):
            yield word
        before = word


def _whole_lines(path: str) -> List[Any]:
    """Of a file of JSON lines; a process that dies may leave a part of its last one."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def _file_name(nodeid: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in nodeid.replace("::", "."))


def _check_sizes(bounds: Mapping[str, Any]) -> None:
    """ValueError for what is no size, whatever the test does. The tool looks at sizes before it opens a file; this one is none."""
    try:
        run("check", os.devnull, *words_of(**bounds))
    except Error as error:
        if bounds and error.exit_code == 2:
            raise ValueError("gpu_memory: " + error.sentence.replace("--max-", "")) from None


def _failure(item: pytest.Item, text: str, printed: str = "") -> pytest.TestReport:
    sections = [("output of the recorded process", printed)] if printed else []
    return pytest.TestReport(item.nodeid, item.location, dict.fromkeys(item.keywords, 1), "failed", text, "call", sections)


def _place(line: Any) -> str:
    file = f"{os.path.basename(line.file)}:{line.line}" if line.file else ""
    return " ".join(filter(None, [line.function, file]))


def _human(size: float) -> str:
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def _amount(limit: str, base: int) -> float:
    number = limit.strip().rstrip("%BKMGTibkmgt ")
    unit = limit.strip()[len(number):].strip().lower()
    factors = {"": 1, "b": 1, "%": base / 100, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
    try:
        return float(number) * factors[unit]
    except (KeyError, ValueError):
        raise pytest.UsageError(f"--gpu-memory-fail-above needs a share (2%) or a size (64MiB), not \"{limit}\"") from None

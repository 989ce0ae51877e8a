# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin, driven by pytester: tests with bounds pass and fail as they should, on the simulated device; what other
tests, fixtures, output and reports see is as without it."""
import re
import sys

import pytest
from conftest import PACKAGE, ROOT, WHEEL, with_more
from gpumemtrace import open as open_recording  # here: what a test imports, pytester takes out of sys.modules again

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.installed
# From the wheel under several versions of pytest, each in an environment of its own (scripts/test-installed.sh), where pytest
# finds the plugin by itself; in a checkout it has to be named.
PYTHONS = [str(p) for p in sorted(PACKAGE.parents[3].glob("pytest-*/bin/python"))] if WHEEL else [sys.executable]
NAMED = [] if WHEEL else ["-p", "gpumemtrace.pytest_plugin"]

# Memory by the driver alone: a process without torch is quick.
DEVICE = """
import ctypes
import pytest

def take(size):
    cuda, p, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_void_p()
    assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(size)) == 0
    return cuda, p
"""


@pytest.fixture(params=with_more(PYTHONS, PYTHONS[1:-1]), ids=lambda path: path.split("/")[-3])
def run(request, pytester, monkeypatch):
    if not WHEEL:
        monkeypatch.setenv("PYTHONPATH", str(PACKAGE))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    pytester.makepyfile(device=DEVICE)

    def run(*args, named=NAMED):
        return pytester.run(request.param, "-m", "pytest", *named, *args, timeout=600)

    return run


MARKED = """
import pytest
from device import take

@pytest.mark.gpu_memory(peak="2 MiB")
@pytest.mark.parametrize("n", [1, 4])
def test_peak(n):
    take(n << 20)
"""


def test_the_option_is_named_in_its_message(pytester, run):
    pytester.makepyfile(test_it=MARKED)
    said = run("--gpu-memory-sim", "rtx4091").stdout.str()
    assert '--gpu-memory-sim: unknown card "rtx4091"; did you mean rtx4090-24g?' in said and "--sim:" not in said.replace("--gpu-memory-sim:", "")


@pytest.mark.parametrize("ways", ["option", "twice", "conftest", "both", "variable", "alone"])
def test_named_beside_the_wheel(pytester, run, monkeypatch, ways):
    """However it is named, once or more often, it is one plugin."""
    pytester.makepyfile(test_it=MARKED)
    name = "gpumemtrace.pytest_plugin"
    named = {"option": ["-p", name], "twice": ["-p", name, "-p", name], "both": ["-p", name], "alone": ["-p", name]}.get(ways, [])
    if ways in ("conftest", "both"):
        pytester.makeconftest(f"pytest_plugins = ['{name}']")
    if ways == "variable":
        monkeypatch.setenv("PYTEST_PLUGINS", name)
    if ways == "alone":
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    done = run(named=named)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["peak 4.0 MiB: 2.0 MiB more than the 2.0 MiB that are allowed*"])


@pytest.mark.skipif(not WHEEL, reason="a checkout has no entry point")
def test_left_out(pytester, run):
    pytester.makepyfile(test_it="def test_it(request):\n    assert not request.config.pluginmanager.hasplugin('gpumemtrace-runner')\n")
    run("-p", "no:gpumemtrace.pytest_plugin").assert_outcomes(passed=1)


def test_reports_that_are_cut_or_of_others(pytester, run):
    """A process that dies while it writes its report; a test that runs pytest itself."""
    pytester.makepyfile(test_it="""
        import os, subprocess, sys
        import pytest
        from device import take

        @pytest.fixture
        def reports(request):
            return request.config.pluginmanager.getplugin("gpumemtrace-reporter")._path

        @pytest.mark.gpu_memory(peak="2 MiB")
        def test_cut(reports):
            take(1 << 20)
            with open(reports, "a") as file:
                file.write('{"nodeid": "test_it.py::te')
            os._exit(0)

        @pytest.mark.gpu_memory(peak="2 MiB")
        def test_empty(reports):
            take(1 << 20)
            os.truncate(reports, 0)
            os._exit(0)

        @pytest.mark.gpu_memory(peak="2 MiB")
        def test_inner(tmp_path):
            take(1 << 20)
            (tmp_path / "test_other.py").write_text("def test_other(): assert 0")
            assert subprocess.run([sys.executable, "-m", "pytest", "--rootdir", str(tmp_path), str(tmp_path)]).returncode == 1
    """)
    done = run()
    done.assert_outcomes(passed=1, failed=2)
    assert sum(line == "the recorded process ended with code 0 before the test did" for line in done.outlines) == 2
    done.stdout.fnmatch_lines(["*output of the recorded process*", "*collected 1 item*"])


def test_bounds(pytester, run):
    pytester.makeconftest("""
        import pytest
        def pytest_addoption(parser):
            parser.addoption("--size", default="0")
        @pytest.fixture(scope="session")
        def size(request):
            return int(request.config.getoption("--size"))
    """)
    pytester.makepyfile(test_it="""
        import os
        import pytest
        from device import take

        def test_plain():
            assert "GPUMEMTRACE_OUTPUT" not in os.environ and "libgpumemtrace" not in open("/proc/self/maps").read()

        @pytest.mark.gpu_memory(peak="3 MiB")
        @pytest.mark.parametrize("n", [2, 4])
        def test_peak(n, size):
            print("takes", n)
            take(n * size)

        @pytest.mark.gpu_memory(peak="1 MiB")
        class TestMany:
            @pytest.mark.gpu_memory(peak="8 MiB")
            def test_own_bound(self, size):
                take(5 * size)

            def test_of_the_class(self, size):
                cuda, p = take(2 * size)
                cuda.cuMemFree_v2(p)

        @pytest.mark.gpu_memory(peak="1 MiB")
        def test_no_device(tmp_path):
            assert tmp_path.exists()

        @pytest.mark.gpu_memory(peak=0)
        def test_fails_by_itself(size):
            take(size)
            assert 1 == 2

        @pytest.mark.gpu_memory(peak=0)
        def test_dies(size):
            take(size)
            os.abort()

        @pytest.mark.gpu_memory(peak=0)
        @pytest.mark.skip(reason="today")
        def test_skipped():
            pass

        @pytest.mark.gpu_memory(peak=0)
        @pytest.mark.xfail(strict=True)
        def test_expected(size):
            raise ValueError

        @pytest.mark.gpu_memory(growth="1 MiB")
        def test_growth(size):
            take(size)
    """)
    done = run("--size", str(1 << 20), "--gpu-memory-report", "--gpu-memory-keep", "kept", "-rA", "--junitxml=x.xml")
    done.assert_outcomes(passed=4, failed=5, skipped=1, xfailed=1)
    text = done.stdout.str()
    outcome = {name: word for word, name in re.findall(r"^(PASSED|FAILED) (?:.*::)(\w+(?:\[\d\])?)", text, re.M)}
    assert outcome == {"test_plain": "PASSED", "test_peak[2]": "PASSED", "test_peak[4]": "FAILED", "test_own_bound": "PASSED",
                       "test_of_the_class": "FAILED", "test_no_device": "PASSED", "test_fails_by_itself": "FAILED",
                       "test_dies": "FAILED", "test_growth": "FAILED"}
    done.stdout.fnmatch_lines([
        "peak 4.0 MiB: 1.0 MiB more than the 3.0 MiB that are allowed*",
        "*the lines that hold the peak*", "*4.0 MiB  unknown  take device.py:*",
        "peak 2.0 MiB: 1.0 MiB more than the 1.0 MiB that are allowed*",
        "*assert 1 == 2*", "the recorded process ended with code*before the test did",
        "growth is not known: 0 steps were found, three complete ones are needed",
        "*= device memory =*",
        "   5.0 MiB  test_it.py::TestMany::test_own_bound*take device.py:*",
        "*gpumemtrace report *kept/test_it.py.TestMany.test_own_bound.gmt",
    ])
    assert text.count("takes 4") == 1 and "takes 2" in text  # what the test printed is a section of its report
    assert (pytester.path / "x.xml").read_text().count("<testcase ") == 11
    assert len(list((pytester.path / "kept").glob("*.gmt"))) == 7


def test_all_tests_and_what_they_were_before(pytester, run):
    pytester.makepyfile(test_it="""
        from device import take

        def test_it():
            take(int(open("size").read()))
    """)
    size = pytester.path / "size"
    for bytes, limit, code in (10_000_000, "5%", 0), (11_000_000, "5%", 1), (11_000_000, "1 MB", 0):
        size.write_text(str(bytes))
        workers = ["-n", "2"] if limit == "1 MB" else []
        done = run("--gpu-memory", "--gpu-memory-report", "--gpu-memory-fail-above", limit, *workers)
        assert done.ret == code, done.stdout.str()
        done.stdout.fnmatch_lines(["*MiB  test_it.py::test_it  take device.py:*"])
    assert "no test was recorded" in run("--gpu-memory-report", "--collect-only").stdout.str()


def test_a_training_that_leaks(pytester, run):
    pytester.makepyfile(test_it="""
        import pytest

        @pytest.mark.gpu_memory(peak="1 GiB", growth="0 B")
        @pytest.mark.parametrize("keep", [False, True])
        def test_training(keep):
            import torch
            model = torch.nn.Linear(512, 512).cuda()
            optimizer, kept = torch.optim.SGD(model.parameters(), lr=0.1), []
            for _ in range(6):
                loss = model(torch.ones(2048, 512, device="cuda")).square().sum()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                if keep:
                    kept.append(loss)
    """)
    done = run()
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*test_training?True?*", "growth 512 B a step: 512 B more than the 0 B that are allowed; most of it test_training test_it.py:10"])


@pytest.mark.parametrize("body", ["pass", "take(1 << 20)", "pytest.skip('not here')", "assert 0", "import os; os._exit(0)"])
def test_a_size_that_means_nothing(pytester, run, body):
    """Whatever the test does, with a device or without: it fails, and is told what a size is."""
    marks = ["peak='nonsense'", "'lots'", "growth='-1 MiB'", "reserved='5 %'", "classes={'activations': 'few'}", "classes='1 MiB'", "classes={'nothing': '1 MiB'}",
             "peak=True"]
    pytester.makepyfile(test_it="import pytest\nfrom device import take\n" + "".join(
        f"\n@pytest.mark.gpu_memory({arguments})\ndef test_{i}():\n    {body}\n" for i, arguments in enumerate(marks)))
    done = run()
    done.assert_outcomes(failed=len(marks))
    assert done.stdout.str().count("gpu_memory") >= len(marks) and "INTERNALERROR" not in done.stdout.str()


def test_every_test_keeps_a_recording_of_its_own(pytester, run):
    """Names that differ in characters which no file name has, in case, or in folders; and one that is too long."""
    ids = ["a/b", "a_b", "a b", "a:b", "X", "x", "y" * 300]
    text = f"import pytest\nfrom device import take\n@pytest.mark.parametrize('n', range({len(ids)}), ids={ids})\ndef test_it(n):\n    take((n + 1) << 20)\n"
    (pytester.mkpydir("a") / "test_x.py").write_text(text)
    pytester.path.joinpath("a_test_x.py").write_text("from device import take\ndef test_other():\n    take(64 << 20)\n")
    done = run("--gpu-memory", "--gpu-memory-keep", "kept", "--gpu-memory-report", "a/test_x.py", "a_test_x.py")
    done.assert_outcomes(passed=len(ids) + 1)
    kept = sorted((pytester.path / "kept").glob("*.gmt"))
    peaks = sorted(open_recording(file).peak >> 20 for file in kept)
    assert peaks == [*range(1, len(ids) + 1), 64] and len({p.name.casefold() for p in kept}) == len(kept)
    shown = re.findall(r"gpumemtrace report (\S+)", done.stdout.str())
    assert sorted(shown) == [str(k) for k in kept]


def test_marks_that_mean_nothing(pytester, run):
    """Each fails its own test; the others run."""
    marks = {"twice": "'2 GiB', peak='1 GiB'", "unknown": "top='1'", "size": "'24 parsecs'", "kind": "classes={'activation': '1 MiB'}",
             "good": "'8 MiB'"}
    pytester.makepyfile(test_it="import pytest\nfrom device import take\n" + "".join(
        f"\n@pytest.mark.gpu_memory({arguments})\ndef test_{name}():\n    take(1 << 20)\n" for name, arguments in marks.items()))
    done = run()
    done.assert_outcomes(passed=1, failed=4)
    text = done.stdout.str()
    assert text.count("gpu_memory takes a peak, and peak=") >= 2 and 'gpu_memory: peak needs a size such as 40GiB, not "24 parsecs"' in text
    assert 'gpu_memory: class "activation=1 MiB": activation is not one of' in text and "lines that hold" not in text

# SPDX-License-Identifier: Apache-2.0
"""The wheel of this machine as people get it: installed, used, taken away. `make test-wheel` runs this."""

import calendar
import glob
import json
import os
import platform
import re
import subprocess
import sys
import venv
import zipfile

import pytest

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = """
import torch
x = torch.ones(1 << 20, device="cuda")
y = x * 2
del x
print(torch.cuda.max_memory_allocated())
"""


def wheel(arch=platform.machine()):
    found = glob.glob(f"{REPO}/dist/*{arch}.whl")
    assert len(found) == 1, f"make wheel first: {found}"
    return found[0]


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    assert not done.returncode, (command, done.stdout, done.stderr)
    return done.stdout


def installed(folder):
    venv.create(folder, with_pip=True)
    run(f"{folder}/bin/python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel())
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return installed(str(tmp_path_factory.mktemp("with space") / "venv"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Without a space in its path, which no preload can have."""
    return installed(str(tmp_path_factory.mktemp("plain") / "venv"))


def elf_files(path, folder):
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    for name in glob.glob(f"{folder}/**/*", recursive=True):
        if os.path.isfile(name):
            with open(name, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield name


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_no_symbol_is_newer_than_glibc_2_28(arch, tmp_path):
    names = list(elf_files(wheel(arch), str(tmp_path)))
    assert len(names) >= 6
    for name in names:
        text = run("readelf", "-V", "-W", name)
        newest = max((tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+)", text)), default=(0, 0))
        assert newest <= (2, 28), (name, newest)
        # A function that glibc 2.28 has not is linked without a version, and lacks when it is called.
        symbols = [line.split() for line in run("readelf", "--dyn-syms", "-W", name).splitlines()]
        lacking = {s[7] for s in symbols if len(s) > 7 and s[6] == "UND" and s[4] == "GLOBAL" and "@" not in s[7]}
        assert not lacking, (name, lacking)
        needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", "-W", name)))
        assert needed <= {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libsimgpu.so",
                          "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, (name, needed)


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_it_is_built_the_same_again(arch):
    path = wheel(arch)
    with open(path, "rb") as file:
        before = file.read()
    libraries = run(f"{REPO}/packaging/libraries.sh", arch).strip()
    with zipfile.ZipFile(path) as archive:
        made = str(calendar.timegm(archive.infolist()[0].date_time))
    run(f"{REPO}/.venv-wheel/bin/python", "packaging/wheel.py", arch, f"build/wheel-{arch}", libraries, cwd=REPO,
        env={**os.environ, "SOURCE_DATE_EPOCH": made})
    with open(path, "rb") as file:
        assert file.read() == before


def test_pip_is_content_and_the_version_is_one(place):
    run(f"{place}/bin/python", "-m", "pip", "check")
    version = run(f"{place}/bin/gpumemtrace", "--version").split()[1]
    assert run(f"{place}/bin/python", "-m", "gpumemtrace", "--version").split()[1] == version
    assert run(f"{place}/bin/python", "-c", "import gpumemtrace; print(gpumemtrace.__version__)").strip() == version


def test_manual_and_completions_are_there(place):
    for name in ("man/man1/gpumemtrace.1", "bash-completion/completions/gpumemtrace", "zsh/site-functions/_gpumemtrace"):
        assert os.path.getsize(f"{place}/share/{name}") > 500


def test_a_path_with_a_space_is_said(place, tmp_path):
    done = subprocess.run([f"{place}/bin/gpumemtrace", "run", "--", "true"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 3 and "space" in done.stderr


def test_a_program_is_recorded_and_explained(plain, tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    said = run(f"{plain}/bin/gpumemtrace", "run", "--sim", "h100-80g", "-o", "x.gmt", "--", sys.executable, "train.py", cwd=tmp_path)
    report = json.loads(run(f"{plain}/bin/gpumemtrace", "report", "--json", "x.gmt", cwd=tmp_path))
    assert report["devices"][0]["peak_bytes"] == int(said) and not report["dropped"]
    stack = json.loads(run(f"{plain}/bin/gpumemtrace", "live", "--json", "x.gmt", cwd=tmp_path))["blocks"][0]["stack"]
    frames = json.loads(run(f"{plain}/bin/gpumemtrace", "stack", "--json", "x.gmt", str(stack), cwd=tmp_path))["frames"]
    assert {"python", "native"} <= {frame["kind"] for frame in frames}
    assert any("at::" in frame["function"] for frame in frames)


def test_a_python_file_is_run_by_this_python(plain, tmp_path):
    (tmp_path / "who.py").write_text("import sys; print(sys.prefix)")
    assert run(f"{plain}/bin/python", "-m", "gpumemtrace", "run", "who.py", cwd=tmp_path).strip() == plain


def test_nothing_is_written_where_it_lies(plain, tmp_path):
    """As in a read-only container."""
    run("chmod", "-R", "a-w", f"{plain}/lib")
    try:
        (tmp_path / "train.py").write_text(PROGRAM)
        run(f"{plain}/bin/gpumemtrace", "run", "--sim", "h100-80g", "-o", "y.gmt", "--", sys.executable, "train.py", cwd=tmp_path)
    finally:
        run("chmod", "-R", "u+w", f"{plain}/lib")


PACKAGE = """
import importlib.metadata, sys
import gpumemtrace
r = gpumemtrace.open(sys.argv[1])
capsules = [t.__arrow_c_stream__() for t in (r.events, r.allocations, r.steps)]
plugins = [e.load().__name__ for e in importlib.metadata.entry_points(group="pytest11") if e.name.startswith("gpumemtrace")]
print(r.peak, len(capsules), plugins)
"""


def test_the_package_reads_recordings(place):
    """Its tools and its library, and the plugin that pytest finds."""
    stub = "import sys, types; sys.modules['pytest'] = types.SimpleNamespace(hookimpl=lambda *a, **k: (a or [lambda f: f])[0])\n"
    said = run(f"{place}/bin/python", "-c", stub + PACKAGE, f"{REPO}/tests/data/example/new.gmt")
    assert said == "23444927488 3 ['gpumemtrace.pytest_plugin']\n"

# SPDX-License-Identifier: Apache-2.0
"""What lies beside the wheels in dist/ after `make release`, judged by others' tools."""

import glob
import hashlib
import json
import os
import platform
import subprocess
import sys
import venv

import pytest

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = f"{REPO}/.venv-wheel/bin"
PROGRAM = """
import torch
x = torch.ones(1 << 20, device="cuda")
print(torch.cuda.max_memory_allocated())
"""
released = pytest.mark.skipif(not glob.glob(f"{REPO}/dist/*.deb"), reason="run `make release` first")


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    assert not done.returncode, (command, done.stdout, done.stderr)
    return done.stdout


def package(arch):
    found = glob.glob(f"{REPO}/dist/*_{arch}.deb")
    assert len(found) == 1, found
    return found[0]


@released
def test_every_file_has_its_sum():
    with open(f"{REPO}/dist/SHA256SUMS") as file:
        sums = dict(reversed(line.split()) for line in file)
    assert sorted(sums) == sorted(set(os.listdir(f"{REPO}/dist")) - {"SHA256SUMS"})
    for name, expected in sums.items():
        with open(f"{REPO}/dist/{name}", "rb") as file:
            assert hashlib.sha256(file.read()).hexdigest() == expected


@released
@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_dpkg_reads_the_package(arch):
    assert run("dpkg-deb", "--field", package(arch), "Architecture").strip() == arch
    rows = [line.split(None, 5) for line in run("dpkg-deb", "--contents", package(arch)).splitlines()]
    assert {row[1] for row in rows} == {"root/root"}
    assert {row[0] for row in rows} <= {"drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--"}
    names = {row[5] for row in rows}
    for name in ("bin/gpumemtrace", "lib/gpumemtrace/libgpumemtrace.so", "lib/gpumemtrace/libunwind.so.8",
                 "share/man/man1/gpumemtrace.1.gz", "share/doc/gpumemtrace/copyright"):
        assert f"./usr/{name}" in names, name


@released
def test_an_unpacked_package_records(tmp_path):
    arch = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    run("dpkg-deb", "-x", package(arch), str(tmp_path / "root"))
    (tmp_path / "train.py").write_text(PROGRAM)
    tool = str(tmp_path / "root/usr/bin/gpumemtrace")
    said = run(tool, "run", "--sim", "h100-80g", "-o", "x.gmt", "--", sys.executable, "train.py", cwd=tmp_path)
    report = json.loads(run(tool, "report", "--json", "x.gmt", cwd=tmp_path))
    assert report["devices"][0]["peak_bytes"] == int(said)
    page = run("man", "--local-file", str(tmp_path / "root/usr/share/man/man1/gpumemtrace.1.gz")) if os.path.exists("/usr/bin/man") else ""
    assert not page or "gpumemtrace" in page


@released
def test_the_list_of_parts_is_valid_cyclonedx():
    (path,) = glob.glob(f"{REPO}/dist/*.cdx.json")
    check = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(str(error) if error else 0)
"""
    run(f"{TOOLS}/python", "-c", check, path)
    with open(path) as file:
        parts = {part["name"] for part in json.load(file)["components"]}
    with open(f"{REPO}/packaging/sources.txt") as file:
        assert parts == {line.split()[0] for line in file if line.strip() and not line.startswith("#")}


@released
def test_pip_builds_the_source_archive(tmp_path):
    """With this machine's compiler and libraries, and the headers of CUDA that pip fetches."""
    (path,) = glob.glob(f"{REPO}/dist/*.tar.gz")
    venv.create(tmp_path / "venv", with_pip=True)
    run(f"{tmp_path}/venv/bin/pip", "install", "--quiet", "--no-deps", path, cwd=tmp_path)
    run(f"{tmp_path}/venv/bin/pip", "check")
    program = "import gpumemtrace, sys; r = gpumemtrace.open(sys.argv[1]); print(r.peak > 0)"
    assert run(f"{tmp_path}/venv/bin/python", "-c", program, f"{REPO}/tests/data/example/new.gmt").strip() == "True"
    run(f"{tmp_path}/venv/bin/gpumemtrace", "run", "--sim", "h100-80g", "-o", f"{tmp_path}/x.gmt", "--", sys.executable, f"{REPO}/tests/wheel/program.py")


@pytest.mark.parametrize("kind, files", [
    ("github-workflows", ".github/workflows/*.yml"),
    ("github-actions", "action.yml"),
    ("github-issue-forms", ".github/ISSUE_TEMPLATE/bug.yml"),
    ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
])
def test_files_of_the_forge_follow_its_schemas(kind, files):
    run(f"{TOOLS}/check-jsonschema", "--builtin-schema", f"vendor.{kind}", *glob.glob(f"{REPO}/{files}"))

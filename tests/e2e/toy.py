# SPDX-License-Identifier: Apache-2.0
"""What the tests of small programs share: a toy CUDA runtime, and the recordings of a directory."""
import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHIM = os.environ.get("GPUMEMTRACE_TEST_SHIM", os.path.join(ROOT, "build/libgpumemtrace.so"))
TOOL = os.environ.get("GPUMEMTRACE_TEST_TOOL", os.path.join(ROOT, "build/gpumemtrace"))


def build_cudart(folder):
    """The toy runtime under its usual name; the path of the library."""
    lib = os.path.join(str(folder), "libcudart.so.12")
    subprocess.run(["gcc", "-shared", "-fPIC", "-fexceptions", "-Wl,-soname,libcudart.so.12", "-o", lib,
                    os.path.join(ROOT, "tests/e2e/toy_cudart.c")], check=True)
    return lib


def tool(*args):
    """Output of the command; it must succeed."""
    done = subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def dump(path):
    return [json.loads(line) for line in tool("dump", "--json", path).splitlines()]


def definitions(path):
    return [json.loads(line) for line in tool("dump", "--defs", "--json", path).splitlines()]


def facts(path):
    """Keys and values about the process."""
    return {d["key"]: d["value"] for d in definitions(path) if d["def"] == "meta"}


def recordings(folder):
    """{process id: [path, ...]} of all recordings there, finished or not."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".gmt"):
            path = os.path.join(str(folder), name)
            found.setdefault(int(facts(path)["pid"]), []).append(path)
    return found

# SPDX-License-Identifier: Apache-2.0
"""The tables of the math libraries against what is installed: every name that PyTorch needs of them is
exported, and what is written by hand takes as many arguments as the libraries' headers say."""
import re
import subprocess
import sysconfig
from functools import lru_cache
from pathlib import Path

import pytest

from conftest import BUILD, ROOT

pytestmark = pytest.mark.skipif(not (BUILD / "libsimgpu.so").exists(), reason="built without CUDA headers")

PACKAGES = Path(sysconfig.get_paths()["purelib"])
OURS = re.compile(r"(cublas|cudnn|cusparse|cusolver|cufft|curand|p?nccl|cuFile)[A-Z]|nvshmemx?_")


def names(*args):
    out = subprocess.run(["nm", "-D", *map(str, args)], capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines() if line.strip()}


@lru_cache
def exported():
    return names("--defined-only", BUILD / "libsimgpu.so")


@pytest.mark.matrix
def test_what_pytorch_needs_is_exported():
    libraries = [f for d in ("torch", "torchvision") for f in (PACKAGES / d).rglob("*.so*")]
    needed = {n for f in libraries for n in names("-u", f) if OURS.match(n)}
    assert len(needed) > 400
    assert sorted(needed - exported()) == []


def rows():
    made = ROOT / "simgpu/api/simgpu_rows.def"  # of the functions that have no row by hand
    for table in [*sorted((ROOT / "simgpu/libraries").glob("lib_*.def")), made]:
        for kind, name in re.findall(r"\b(STUB|DENY|IMPL|TWIN|WORK)\((\w+)", table.read_text()):
            yield table.name, kind, name


def test_every_row_is_exported_once():
    listed = [name for _, _, name in rows()]
    assert len(listed) == len(set(listed)) > 2000
    assert [name for name in listed if name not in exported()] == []


# ---- numbers of arguments ----

def count(arguments):
    """Of a parameter list; () and (void) have none."""
    depth, commas = 0, 0
    for c in arguments:
        depth += (c in "([{") - (c in ")]}")
        commas += c == "," and depth == 0
    return 0 if arguments.strip() in ("", "void") else commas + 1


def prototypes(text):
    """name -> numbers of arguments it is declared with"""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    found = {}
    for match in re.finditer(r"\b((?:cublas|cudnn|cusparse|cusolver|cufft|curand|nccl)[A-Z]\w*)\s*\(", text):
        depth, at = 1, match.end()
        while depth and at < len(text):
            depth += (text[at] == "(") - (text[at] == ")")
            at += 1
        if re.match(r"\s*(;|\{|CUDNN_DEPRECATED|__attribute__)", text[at:at + 40]):
            found.setdefault(match[1], set()).add(count(text[match.end():at - 1]))
    return found


def headers():
    found = {}
    for folder in (PACKAGES / "nvidia").glob("*/include"):
        for header in folder.glob("*.h"):
            if re.match(r"cu(blas|dnn|sparse|solver|fft|rand)|nccl", header.name):
                for name, numbers in prototypes(header.read_text(errors="replace")).items():
                    found.setdefault(name, set()).update(numbers)
    return found


def written_by_hand():
    """Our own definitions, as the preprocessor sees them."""
    found = {}
    for source in sorted((ROOT / "simgpu/libraries").glob("lib_*.c")):
        text = subprocess.run(["cc", "-E", "-P", "-D_GNU_SOURCE", str(source)], capture_output=True, text=True, check=True,
                              cwd=ROOT / "simgpu/libraries").stdout
        found.update(prototypes(text))
    return found


def test_arguments_are_those_of_the_headers():
    real, ours = headers(), written_by_hand()
    if not real:
        pytest.skip("no headers")
    both = set(real) & set(ours)
    assert len(both) > 300
    wrong = {name: (sorted(ours[name]), sorted(real[name])) for name in both if not ours[name] <= real[name]}
    assert wrong == {}


@pytest.mark.skipif(not (PACKAGES / "nvidia/cu13/include/cublas_v2.h").exists(), reason="no headers of CUDA 13")
def test_rows_made_from_headers_are_those_of_the_pinned_ones():
    made = subprocess.run([ROOT / "scripts/simgpu_rows.sh", f"cc -isystem {PACKAGES}/nvidia/cu13/include"], capture_output=True, text=True, check=True).stdout
    assert made == (ROOT / "simgpu/api/simgpu_rows.def").read_text(), "make simgpu-rows"

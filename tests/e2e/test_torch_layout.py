# SPDX-License-Identifier: Apache-2.0
"""The C++ layouts in shim/torch/: PyTorch's own headers are the judge. For a new release: run this file with
its Python, then add its row to shim/torch/torch_versions.def."""
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from conftest import ROOT

HERE = Path(__file__).parent


def said_by_headers(torch):
    include = Path(torch.__file__).parent / "include"
    for standard in ("c++17", "c++20"):
        done = subprocess.run(["g++", "-fno-access-control", "-I", sysconfig.get_path("include"), "-w", f"-std={standard}", "-S", "-o", "-", "-I", include, "-I",
                               include / "torch/csrc/api/include", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
                               HERE / "torch_layout.cpp"], capture_output=True, text=True)
        if done.returncode == 0:
            return {k: int(v) for k, v in re.findall(r"#OFF (\w+)=(-?\d+)", done.stdout)}
    raise AssertionError(done.stderr[-3000:])


def constants(file):
    text = (ROOT / "shim/torch" / file).read_text()
    return {k: int(v) for k, v in re.findall(r"^(?:#define\s+|\t)(\w+)(?:\s+|\s*=\s*)(\d+)u?\b", text, re.M)}


def row_of(torch):
    table = (ROOT / "shim/torch/torch_versions.def").read_text()
    layouts = {name: [int(n) for n in numbers.split(",")]
               for name, numbers in re.findall(r"^LAYOUT\((\w+), ([\d, ]+)\)", table, re.M)}
    major, minor = torch.__version__.split(".")[:2]
    layout = re.search(rf"^TORCH\({major}, {minor}, (\w+)\)", table, re.M)
    assert layout, f"torch {torch.__version__} has no row in shim/torch/torch_versions.def"
    return layouts[layout[1]]


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="no g++")
def test_table_against_headers():
    torch = pytest.importorskip("torch")
    truth = said_by_headers(torch)
    head, *row = row_of(torch)
    assert row == [truth["offset"], truth["dtype"], truth["variable"]]
    if "function_stride" in truth:
        text = (ROOT / "shim/torch/torch_versions.def").read_text()
        major, minor = torch.__version__.split(".")[:2]
        row = re.search(rf"^FUNCTION\({major}, {minor}, (\d+), (\d+), (\d+)\)", text, re.M)
        assert row and [int(n) for n in row.groups()] == [truth[f"function_{k}"] for k in ("object", "saved", "stride")]
    if "python_tensor" in truth:
        shape = truth["offset"] - 88
        assert [truth[k] for k in ("shape", "shape_bytes", "object", "python_tensor")] == [shape, 88, shape - 8, 16]
        assert [truth[k] for k in ("shape_count", "shape_inline", "shape_others")] == [0, 8, 8]
    ours = constants("torch_tensor.c")
    for name in ("IMPL_STORAGE", "IMPL_AUTOGRAD", "STORAGE_DATA", "STORAGE_DEVICE", "STORAGE_BYTES"):
        assert head + ours[name] == truth[name], name
    assert (ours["META_NAME"], ours["CUDA"]) == (truth["META_NAME"], truth["CUDA"])
    string = ours["STRING_NEW" if torch.compiled_with_cxx11_abi() else "STRING_OLD"]
    assert truth["grad"] == ours["META_NAME"] + string
    assert truth["saved"] == 0 and truth["type_bytes"] == 2
    ranges = constants("torch_ranges.c")
    assert (truth["SCOPES"], truth["USER_SCOPE"]) == (ranges["SCOPES"], ranges["USER_SCOPE"])
    assert [truth[k] for k in ("callback_end", "callback_probability", "callback_scopes", "callback_inputs", "callback_bytes",
                               "callback_in_registers")] == [8, 16, 24, 34, 40, 0]


@pytest.mark.matrix
def test_bytes_of_an_element():
    torch = pytest.importorskip("torch")
    text = (ROOT / "shim/torch/torch_tensor.c").read_text()
    table = [int(n) for n in re.search(r"element_bytes\[\] = \{([^}]*)\}", text)[1].replace(",", " ").split()]
    header = (Path(torch.__file__).parent / "include")
    names = next(h.read_text() for h in (header / "torch/headeronly/core/ScalarType.h", header / "c10/core/ScalarType.h")
                 if h.exists() and "AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS" in h.read_text())
    rows = re.findall(r"_\([^,()]+, (\w+)\) /\* (\d+) \*/", names)
    assert len(rows) > 20
    checked = 0
    for name, number in rows:
        python = {"Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "ComplexHalf": "complex32",
                  "ComplexFloat": "complex64", "ComplexDouble": "complex128"}.get(name, name.lower())
        kind = getattr(torch, python, None)
        if isinstance(kind, torch.dtype):
            assert table[int(number)] == kind.itemsize, name
            checked += 1
    assert checked > 20


@pytest.mark.matrix
def test_unverified_release(programs, tool):
    """A release that is not in the table: no tags, no ranges, and all else as ever."""
    torch = pytest.importorskip("torch")
    real, copy = Path(torch.__file__).parent, programs.folder / "torch"
    (copy / "lib").mkdir(parents=True)
    for folder in (real, real / "lib"):
        for f in folder.iterdir():
            if f.name not in ("lib", "version.py", "__pycache__"):
                (copy / f.relative_to(real)).symlink_to(f)
    (copy / "version.py").write_text(re.sub(r"'\d+\.\d+\.", "'9.9.", (real / "version.py").read_text(), count=1))
    for f in real.parent.iterdir():
        if f.name.startswith(("nvidia", "cusparselt")):
            (programs.folder / f.name).symlink_to(f)
    code = """
import time, torch
x = torch.ones(100, device="cuda", requires_grad=True)
with torch.profiler.record_function("range"):
    (x * x).sum().backward()
print(torch.__version__, torch.__file__, x.grad.shape)
time.sleep(0.1)  # autograd's thread takes the GIL once more (docs/reliability.md)
"""
    done = programs("-c", code, PYTHONPATH=programs.folder, GPUMEMTRACE_OUTPUT="run.gmt")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout.startswith("9.9.") and str(copy) in done.stdout
    events = tool.events(programs.folder / "run.gmt")
    kinds = {e.get("kind") for e in events}
    assert "block_alloc" in kinds and not {k for k in kinds if k and k.startswith(("tag_", "range_"))}
    assert "not in the table of verified versions" in tool("info", programs.folder / "run.gmt")

# SPDX-License-Identifier: Apache-2.0
"""Line tables as format/ reads them, against what each Python on this machine says itself."""

import ctypes
import glob
import json
import os
import random
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHONS = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.9.*/bin/python")))
PYTHONS += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1?.*/bin/python")))
PYTHONS = PYTHONS or [os.path.join(ROOT, ".venv/bin/python")]

# For each code object of some modules: first line, table, and [offset, line] for each instruction.
DUMP = r"""
import json, sys, types
def lines(code):
    if hasattr(code, "co_lines"):
        return [[at, line or 0] for a, b, line in code.co_lines() for at in range(a, b, 2)]
    import dis
    starts, out, line = dict(dis.findlinestarts(code)), [], code.co_firstlineno
    for at in range(0, len(code.co_code), 2):
        line = starts.get(at, line)
        out.append([at, line])
    return out
def walk(code):
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from walk(c)
out = []
for name in ("argparse", "typing", "dataclasses", "asyncio.base_events"):
    module = __import__(name, fromlist=["x"])
    for code in walk(compile(open(module.__file__).read(), name, "exec")):
        table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
        out.append([code.co_firstlineno, table.hex(), lines(code)])
long_jump = "def f():\n    return (1 +" + "\n" * 3000 + "  g())\n" + "x = 1; " * 400
for code in walk(compile(long_jump, "j", "exec")):
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    out.append([code.co_firstlineno, table.hex(), lines(code)])
json.dump({"version": sys.version_info[0] << 8 | sys.version_info[1], "codes": out}, sys.stdout)
"""


@pytest.fixture(scope="module")
def pylines(tmp_path_factory):
    so = tmp_path_factory.mktemp("pylines") / "pylines.so"
    source = os.path.join(ROOT, "format/pylines.c")
    subprocess.run(["gcc", "-std=gnu11", "-shared", "-fPIC", "-o", so, source], check=True)
    f = ctypes.CDLL(str(so)).gmt_pylines_line
    f.argtypes = [ctypes.c_uint, ctypes.c_uint, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_long]
    f.restype = ctypes.c_uint
    return f


@pytest.mark.parametrize("python", PYTHONS, ids=lambda p: p.split("/")[-3])
def test_every_instruction_has_its_line(pylines, python):
    run = subprocess.run([python, "-c", DUMP], capture_output=True, timeout=600)
    assert run.returncode == 0, run.stderr.decode()
    said = json.loads(run.stdout)
    checked = 0
    for first, table, lines in said["codes"]:
        table = bytes.fromhex(table)
        for at, line in lines:
            assert pylines(said["version"], first, table, len(table), at) == line
            checked += 1
    assert checked > 10000


def test_code_that_has_not_begun_is_at_its_first_line(pylines):
    assert pylines(0x30B, 17, b"", 0, -2) == 17
    assert pylines(0x309, 17, b"", 0, 40) == 17


def test_broken_tables_end(pylines):
    chance = random.Random(1)
    for _ in range(20000):
        table = bytes(chance.randrange(256) for _ in range(chance.randrange(12)))
        pylines(chance.choice([0x309, 0x30A, 0x30B, 0x30E]), 1, table, len(table), 1 << 20)

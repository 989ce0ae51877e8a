# SPDX-License-Identifier: Apache-2.0
"""What commands write: nothing half done stays behind a signal, a full disk is said, nobody's file is lost."""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from test_cli import COMMANDS, ROOT, TOOL, run

OLD = os.path.join(ROOT, "tests/data/example/old.gmt")


@pytest.fixture(scope="session")
def long_recording(tmp_path_factory):
    """Long enough to be interrupted in the middle: a step a thousand times over."""
    subprocess.run(["make", "-s", "build/data/make_long"], cwd=ROOT, check=True)
    rows = json.loads(subprocess.run([TOOL, "steps", "--json", OLD], capture_output=True, check=True, text=True).stdout)["rows"]
    step = next(r for r in rows if r["step"] == 5 and r["phase"] == "step")
    file = tmp_path_factory.mktemp("long") / "long.gmt"
    subprocess.run([os.path.join(ROOT, "build/data/make_long"), OLD, file, str(step["begin_ns"]), str(step["end_ns"]), "1000"], check=True)
    return file


WRITERS = {
    "html": ["html", "LONG", "-o", "x.html"], "diff": ["diff", "LONG", "LONG", "-o", "x.html"], "flame": ["flame", "LONG", "-o", "x.svg"],
    "csv": ["export", "LONG", "--to", "csv", "-o", "x.csv"], "torch": ["export", "LONG", "--to", "torch", "-o", "x.pickle"],
    "recover": ["recover", "LONG", "-o", "x.gmt"], "curve": ["replay", "LONG", "--curve", "x.csv"],
    "junit": ["check", "LONG", "--max-peak", "1GiB", "--junit", "x.xml"], "collect": ["collect", "LONG", "-o", "lake", "--tables", "allocations"],
    "ranks": ["export", "folder", "--to", "csv", "-o", "out/"], "sql": ["sql", "select count(*) from allocations", "LONG"]}


def unfinished(folder):
    """Whatever is there but recordings, whole outputs, and the lake's lock."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*")
                  if p.is_file() and (".new" in p.parts and p.name != "lock" or p.suffix == ".part" or "tmp" in p.relative_to(folder).parts))


def interrupt(folder, words, ending):
    """False: it was too fast."""
    command = subprocess.Popen([TOOL, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
                               env={**os.environ, "TMPDIR": str(folder / "tmp")})
    while not unfinished(folder) and command.poll() is None:
        pass
    if command.poll() is not None:
        assert command.returncode in (0, 1), command.stderr.read()
        return False
    if ending == signal.SIGTERM:
        command.send_signal(ending)  # to it alone
    else:
        os.killpg(command.pid, ending)  # as a terminal does
    return command.wait(60) == -ending


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("writer", WRITERS)
def test_a_signal_leaves_nothing_behind(tmp_path, long_recording, writer, ending):
    (tmp_path / "folder").mkdir()
    (tmp_path / "tmp").mkdir()
    for name in "a", "b":
        os.link(long_recording, tmp_path / "folder" / (name + ".gmt"))
    words = [str(long_recording) if w == "LONG" else w for w in WRITERS[writer]]
    assert any(interrupt(tmp_path, words, ending) for _ in range(20))
    for _ in range(100):  # workers that it started end behind it
        if not unfinished(tmp_path):
            break
        time.sleep(0.05)
    assert not unfinished(tmp_path) and not list((tmp_path / "tmp").iterdir())

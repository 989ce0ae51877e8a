# SPDX-License-Identifier: Apache-2.0
"""The Python package says what the tool says, in objects and in tables that pandas, Polars, pyarrow and DuckDB take as they
are; what a recorded program says through it is held against PyTorch's own list of blocks."""
import html
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import gpumemtrace
import pytest
from conftest import BUILD, PACKAGE as PYTHON, ROOT, Tool
from gpumemtrace import _core, _documents, _program, _rows

pytestmark = pytest.mark.installed
TOOLS = ROOT / ".venv-tools/bin/python"
OLD, NEW = (ROOT / "tests/data/example" / name for name in ("old.gmt", "new.gmt"))
clients = pytest.mark.skipif(not TOOLS.exists(), reason="no .venv-tools: scripts/setup.sh tools")


@pytest.fixture
def new():
    return gpumemtrace.open(NEW)


def plain(value):
    """Back to what JSON has."""
    if isinstance(value, _rows.Row):
        return {name.rstrip("_"): plain(getattr(value, name)) for name, (kind, _) in value._kinds.items()
                if getattr(value, name) is not None or kind.endswith("_OR_NULL")}
    if isinstance(value, (_rows.Table, tuple)):
        return [plain(v) for v in value]
    return value


def sorted_members(value):
    return json.loads(json.dumps(value), object_pairs_hook=lambda pairs: dict(sorted(pairs)))


QUESTIONS = {
    "report": (), "report --steps": (), "info": (), "live": (), "live --at end": (), "live --at oom": (OLD,), "live --at 1.5s": (), "peak": (), "leaks": (),
    "oom": (OLD,), "advise": (), "account": (), "modules": (), "timeline": (), "timeline --points 7": (), "steps": (), "replay": (), "flame": (), "stack 5": (),
    "stack --all": (), "dump": (), "dump --defs": (), "verify": (), "check --max-peak 1GiB": ()}


@pytest.mark.parametrize("run", [OLD, NEW])
def test_documents_are_the_same_to_the_byte(tool, run):
    """In whatever order they are asked for, and again."""
    said = {}
    for question, not_of in QUESTIONS.items():
        if run not in not_of:
            command, *words = question.split()
            said[question] = subprocess.run([tool.path, command, run, *words, "--json"], capture_output=True, check=False)
    r = gpumemtrace.open(run)
    for questions in said, list(said), reversed(said):
        for question in questions:
            command, *words = question.split()
            assert r._json(command, *words, fine=1) == said[question].stdout and said[question].returncode < 2, question
    other = gpumemtrace.open(NEW if run is OLD else OLD)
    for old, new in (r, other), (r, r), (other, r), (r, gpumemtrace.open(run)):
        assert old._json("diff", others=[new]) == tool("diff", old.path, new.path, "--json").encode()
    assert plain(gpumemtrace.diff(run, other)) == plain(r.diff(other.path)) == plain(gpumemtrace.diff(r, other))


@pytest.mark.parametrize("file", sorted((ROOT / "tests/data").glob("*/*.gmt")), ids=lambda f: f"{f.parent.name}-{f.stem}")
def test_any_file_is_read_as_by_the_tool(tool, file):
    """Recordings of all versions and broken ones: the same answer or the same sentence."""
    done = subprocess.run([tool.path, "report", file, "--json"], capture_output=True, check=False)
    try:
        assert (gpumemtrace.open(file)._json("report"), 0) == (done.stdout, done.returncode)
    except gpumemtrace.Error as error:
        assert (error.exit_code, f"gpumemtrace report: {error}\n") == (done.returncode, done.stderr.decode())


@pytest.mark.parametrize("command, ask", [
    ("advise", lambda r: r.advise()), ("report", lambda r: r.report()), ("info", lambda r: r.info()), ("live", lambda r: r.live()),
    ("leaks", lambda r: r.leaks()), ("oom", lambda r: r.oom()), ("peak", lambda r: r.highest()),
    ("modules", lambda r: r.modules()), ("timeline", lambda r: r.timeline())])
def test_documents_are_those_of_the_tool(tool, new, command, ask):
    assert sorted_members(plain(ask(new))) == sorted_members(tool.json(command, NEW))


def test_documents_with_maps_and_two_recordings(tool, new):
    shape = tool.json("account", NEW)["shape"]
    assert {name: (f.value, f.source) for name, f in new.account().shape.items()} == {n: (f["value"], f["source"]) for n, f in shape.items()}
    old = gpumemtrace.open(OLD)
    assert sorted_members(plain(old.diff(new))) == sorted_members(tool.json("diff", OLD, NEW)) == sorted_members(plain(old.diff(NEW)))
    assert plain(new.steps) == tool.json("steps", NEW)["rows"]


def test_names_of_the_package_stay_what_they_are(tmp_path):
    """Also behind the import of each module, in a wheel, which has a module _version: its name was that of a function."""
    shutil.copytree(PYTHON / "gpumemtrace", tmp_path / "gpumemtrace", ignore=shutil.ignore_patterns("__pycache__", "_version.py"))
    (tmp_path / "gpumemtrace/_version.py").write_text('__version__ = "1.2.3"\n')
    code = ("import importlib, pkgutil, gpumemtrace as g\n"
            "for _ in range(2): assert g.__version__ == '1.2.3'\n"
            "before = {n: getattr(g, n) for n in g.__all__}\n"
            "for m in pkgutil.iter_modules(g.__path__):\n"
            "    try: m.name == '__main__' or importlib.import_module('gpumemtrace' + '.' + m.name)\n"
            "    except ImportError: pass\n"
            "assert all(getattr(g, n) is v for n, v in before.items())\n")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=True)


def test_short_answers(tool, new):
    assert new.peak == tool.json("peak", NEW)["bytes"]
    assert new.classes() == tool.json("peak", NEW)["categories"]
    assert list(new.classes()) == sorted(new.classes(), key=new.classes().get, reverse=True)
    assert sum(new.classes("end").values()) == new.live("end").bytes == tool.json("report", NEW)["devices"][0]["end_bytes"]
    block = new.live("oom").blocks[0]
    why = new.why(block.addr, "oom")
    assert (why.category, why.size, why.stack) == (block.category, block.size, block.stack)
    assert plain(new.stack(block.stack)) == tool.json("stack", NEW, block.stack)["frames"]
    assert gpumemtrace.open(OLD).oom() is None
    assert repr(new.allocations).startswith(f"<StreamTable allocations of {NEW}: for pandas")
    assert [m.text for m in new.report().summary] == [m["text"] for m in tool.json("report", NEW)["summary"]]
    assert gpumemtrace.__version__ == tool("--version").split()[-1]


def test_a_cell_of_its_own_says_what_it_does_not_see(tmp_path, capsys, monkeypatch):
    """It runs in a process without the notebook's variables. A recording of before stays if the cell records nothing."""
    from gpumemtrace import notebook

    class Shell:
        user_ns = {"model": 1, "batch": 2, "torch": 3, "f": 4, "print": print, "late": 5, "_": 6, "other": 7, "x": 8}

    shutil.copy(NEW, tmp_path / "x.gmt")
    monkeypatch.chdir(tmp_path)
    cell = "import os as torch\ndef f(batch):\n    global late\n    late = 1\n    return batch, model\nprint([x for x in range(2)], f(1), late, other, _)\n"
    said = []
    for text in (cell, "print(model)", "print(1)", "def ("):
        notebook.cell_magic(Shell, "--sim h100-80g -o x.gmt --no-page", text)
        said.append(capsys.readouterr().out)
    assert said[0].startswith("%%gpumemtrace: the cell runs in a process of its own, which does not have the notebook's model, other: define them in the cell, ")
    assert said[1].startswith("%%gpumemtrace: ") and " the notebook's model: define it in the cell, or start the kernel with gpumemtrace run\n" in said[1]
    assert all("process of its own" not in text for text in said[2:])
    assert all(text.endswith("nothing was recorded: the cell used no device\n") for text in said)
    assert (tmp_path / "x.gmt").read_bytes() == NEW.read_bytes() and "recording" not in Shell.user_ns


def test_a_notebook_shows_what_matters_first(tool, tmp_path):
    (matter,), run = tool.json("report", NEW)["summary"], tmp_path / "a<b>.gmt"
    run.symlink_to(NEW)
    first, then = gpumemtrace.open(run)._repr_html_().split("</ol>")
    shown = html.unescape(first)
    assert first.startswith("<ol><li>") and shown.index(matter["text"]) < shown.index(matter["action"]) and "<module>" not in first
    assert html.unescape(then) == f"<code>{gpumemtrace.open(run)!r}</code>" and "<b>" not in then
    assert "gpumemtrace advise" in gpumemtrace.open(OLD)._repr_html_()
    assert gpumemtrace.open(NEW.parent)._repr_html_() is None


def test_ranks_of_a_folder(tool):
    run = gpumemtrace.open(NEW.parent)
    said = tool.json("peak", NEW.parent)["ranks"]
    assert [(r.file, r.bytes, r.categories) for r in run.ranks] == [(r["file"], r["bytes"], r["categories"]) for r in said] and len(said) == 2
    assert [r.bytes for r in gpumemtrace.open(NEW).ranks] == [gpumemtrace.open(NEW).peak]
    for ask in (run.leaks, run.live, run.report, lambda: run.diff(NEW), lambda: run.events.__arrow_c_stream__()):
        with pytest.raises(gpumemtrace.Error) as caught:
            ask()
        assert caught.value.exit_code == 2


@pytest.mark.parametrize("ask, code, words", [
    (lambda: gpumemtrace.open("/no/such.gmt"), 3, "/no/such.gmt: there is no file"),
    (lambda: gpumemtrace.open(ROOT / "README.md"), 3, "not a gpumemtrace recording"),
    (lambda: gpumemtrace.open(NEW).live("noon"), 2, '--at "noon" is not one of peak'),
    (lambda: gpumemtrace.open("/dev/null"), 3, "/dev/null: a pipe or a device"),
    (lambda: gpumemtrace.open(NEW)._json("run"), 2, 'no question "run"'), (lambda: gpumemtrace.open(NEW)._json("report", "--rank", "1"), 2, "command line"),
    (lambda: gpumemtrace.open(NEW)._json("advise", "--", "true"), 2, "give --try alone"), (lambda: gpumemtrace.open(NEW)._json("diff"), 2, "of 1 recordings"),
    (lambda: gpumemtrace.open(NEW).allocations.select("sise").__arrow_c_stream__(), 2, '--columns "sise" is not one of device'),
    (lambda: gpumemtrace.open(NEW).events.select("sise").__arrow_c_stream__(), 2, '--columns "sise" is not one of seq'),
    (lambda: gpumemtrace.open(NEW, device=7).leaks(), 2, "device 7"),
])
def test_errors_are_the_tools_sentence(ask, code, words):
    with pytest.raises(gpumemtrace.Error) as caught:
        ask()
    assert caught.value.exit_code == code and words in caught.value.sentence == str(caught.value)
    assert not caught.value.sentence.startswith("gpumemtrace")


EACH = {"peak": lambda r: r.peak, "report": lambda r: r.report(), "steps": lambda r: r.steps, "classes": lambda r: r.classes(), "live": lambda r: r.live(),
        "highest": lambda r: r.highest(), "leaks": lambda r: r.leaks(), "oom": lambda r: r.oom(), "account": lambda r: r.account(),
        "modules": lambda r: r.modules(), "timeline": lambda r: r.timeline(), "diff": lambda r: r.diff(r), "check": lambda r: r.check(max_peak=1),
        "why": lambda r: r.why(0), "allocations": lambda r: r.allocations, "events": lambda r: r.events}


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Devices 0 to 2 with other figures each; memory runs out on 0, on 2, on 0."""
    lines, file = ["thread 1 1 main", "meta torch.version 2.11.0"], tmp_path_factory.mktemp("several") / "r.gmt"
    for device, mib in enumerate((8, 4, 2)):
        size = mib << 20
        lines += [f"event block_alloc time_ns={device + 1} device={device} addr={device + 1}0000000 size={size} arg0={size} arg1={size} thread=1"]
    lines += [f"event block_oom time_ns={10 + i} device={device} size={(i + 10) * 20 << 20} arg0={1 << 20} arg1={1 << 20} thread=1" for i, device in enumerate((0, 2, 0))]
    subprocess.run(["make", "-s", "build/data/make_recording"], cwd=ROOT, check=True)
    subprocess.run([ROOT / "build/data/make_recording", file], input="\n".join([*lines, "event end time_ns=99", ""]), text=True, check=True)
    return file


def test_a_device_is_that_device(several):
    for device, mib, asked in (0, 8, 240), (1, 4, None), (2, 2, 220), (None, 8, 240):
        r = gpumemtrace.open(several, device=device)
        assert r.peak == r.highest().bytes == r.live().bytes == sum(r.classes().values()) == mib << 20
        assert {r.highest().device, r.live().device, r.leaks().device, r.timeline().device, r.account().device} == {device or 0}
        assert r.check(max_peak=1).recordings[0].bounds[0].measured_bytes == mib << 20
        assert r.diff(r).peak_new == mib << 20
        assert (None if r.oom() is None else r.oom().asked_bytes >> 20) == asked and len(r.report().devices) == 3


@pytest.mark.parametrize("device", [3, 99, -1, 300])
@pytest.mark.parametrize("what", EACH)
def test_a_device_that_is_not_there(several, what, device):
    with pytest.raises(gpumemtrace.Error) as caught:
        EACH[what](gpumemtrace.open(several, device=device))
    assert caught.value.exit_code == 2 and ("device" in caught.value.sentence)


CLIENTS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import duckdb, pandas, polars, pyarrow
import gpumemtrace
r = gpumemtrace.open(sys.argv[2])
events, allocations, steps, owners = r.events, r.allocations, r.steps, r.leaks().owners
said = {}
for name, t in ("events", events), ("allocations", allocations), ("steps", steps), ("owners", owners):
    table = pyarrow.table(t)
    table.validate(full=True)
    said[name] = {
        "rows": table.to_pylist(),
        "schema": pyarrow.schema(t).equals(table.schema, check_metadata=True),
        "polars": polars.DataFrame(t).equals(polars.from_arrow(table)),
        "pandas": pandas.DataFrame.from_arrow(t).equals(table.to_pandas(types_mapper={pyarrow.string(): pandas.StringDtype(na_value=float("nan"))}.get)),
        "duckdb": duckdb.sql("select * from t").fetchall() == [tuple(row.values()) for row in table.to_pylist()],
    }
few = pyarrow.table(events.select("size", "kind"))
said["select"] = few.column_names == ["size", "kind"] and few.column("size").equals(pyarrow.table(events).column("size"))
report = r.report().devices
said["flat"] = pyarrow.table(report).to_pylist()
said["empty"] = pyarrow.table(owners[:0]).num_rows, pyarrow.table(owners[:0]).schema.equals(pyarrow.schema(owners))
reader = pyarrow.RecordBatchReader.from_stream(events)
reader.read_next_batch()
del reader, report  # a stream that is not read to its end
assert polars.DataFrame(events).height == len(said["events"]["rows"])
capsule = events.__arrow_c_stream__()
del capsule  # and one that is not read at all
print(json.dumps(said))
"""


@clients
def test_clients_take_tables_as_they_are(tool, new):
    done = subprocess.run([TOOLS, "-c", CLIENTS, PYTHON, NEW], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout)
    for name in "events", "allocations", "steps", "owners":
        assert {k: v for k, v in said[name].items() if k != "rows"} == dict.fromkeys(("schema", "polars", "pandas", "duckdb"), True), name
    assert said["select"] and said["empty"] == [0, True]
    lines = tool("export", NEW, "--to", "jsonl", "-o", "-").splitlines()
    assert said["allocations"]["rows"] == [json.loads(line) for line in lines]
    assert said["steps"]["rows"] == tool.json("steps", NEW)["rows"]
    assert [(o["function"], o["latest_addr"]) for o in said["owners"]["rows"]] == [(o.function, o.latest.addr) for o in new.leaks().owners]
    assert said["flat"][0]["categories_at_peak_activations"] == new.report().devices[0].categories_at_peak["activations"]
    check_events(tool, said["events"]["rows"])


def check_events(tool, rows):
    """Row by row what `dump` has; its 0 of a stack and empty name, and -1 of a device, are null."""
    definitions = [json.loads(line) for line in tool("dump", NEW, "--defs", "--json").splitlines()]
    tids = {d["id"]: d["tid"] for d in definitions if d["def"] == "thread"}
    dumped = tool.events(NEW)
    assert len(dumped) == len(rows) == gpumemtrace.open(NEW).report().events
    for e, row in zip(dumped, rows):
        e["thread"], e["address"] = tids.get(e["thread"]), e.pop("addr", None)
        nothing = {"stack": 0, "name": "", "device": -1}
        assert row == {k: None if k in nothing and e.get(k) == nothing[k] else e.get(k) for k in row}


def test_many_threads_read_at_once(new):
    failed = []

    def read():
        try:
            for _ in range(3):
                new.events.__arrow_c_stream__()
                new.steps.__arrow_c_stream__()
                new.events.__arrow_c_schema__()
        except Exception as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=read) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


SMALL = """
import ctypes, resource, sys
sys.path.insert(0, sys.argv[1])
import gpumemtrace
r = gpumemtrace.open(sys.argv[2])
malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_void_p
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used, resource.RLIM_INFINITY))
while malloc(100 << 10):  # what was freed before
    pass
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    print(len(r._json(sys.argv[4])))
except gpumemtrace.Error as error:
    for ask in (lambda: r._json("peak"), r.report, lambda: gpumemtrace.diff(r, r)):
        try:
            ask()
        except gpumemtrace.Error as again:
            assert str(again).endswith("out of memory")  # some begin with the file's path
    print(error.exit_code, error)
except MemoryError:
    print("no room for a copy of the answer")
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(gpumemtrace.open(sys.argv[2]).peak > 0)
"""


@pytest.mark.parametrize("question", ["report", "dump", "timeline", "advise"])
def test_a_lack_of_memory_does_not_end_the_program(question):
    answers = set()
    for kib in (0, 64, 300, 1000, 3000, 100000):
        done = subprocess.run([sys.executable, "-c", SMALL, PYTHON, NEW, str(kib << 10), question], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0 and done.stdout.endswith("True\n"), done.stderr[-2000:]
        answers.add(done.stdout.splitlines()[0])
    errors = [answer for answer in answers if answer.startswith("3 ")]  # of reading a file: they begin with its path
    assert errors and all(answer.endswith("out of memory") for answer in errors)
    assert any(answer.isdigit() for answer in answers)


def test_answers_of_many_threads(new):
    """Questions about one recording and about several, tables between them, all at once."""
    recordings, failed = [new, gpumemtrace.open(OLD)], []
    said = {(r.path, what): r._json(what) for r in recordings for what in ("report", "peak", "steps", "live")}
    both = gpumemtrace.diff(*recordings)

    def ask(turn):
        try:
            for i in range(6):
                r = recordings[(i + turn) % 2]
                assert all(r._json(what) == text for (path, what), text in said.items() if path == r.path)
                assert gpumemtrace.diff(*recordings) == both and r.allocations.__arrow_c_stream__()
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


@pytest.mark.real
def test_a_recorded_program(tool, programs, tmp_path):
    done = programs("says.py", PYTHON, tmp_path / "mine.gmt", GPUMEMTRACE_OUTPUT="run.gmt")
    assert done.returncode == 0 and "gpumemtrace:" not in done.stderr, done.stderr
    truth, run = json.loads(done.stdout), tmp_path / "run.gmt"
    assert truth["before"] is None and truth["recording"] == str(run)
    r = gpumemtrace.open(run)
    for at, place in ("first#2", "first"), ("paused", "paused"), ("end", "end"):
        assert [[b.addr, b.size] for b in r.live(f"mark:{at}").blocks] == truth[place], at
    assert truth["snapshots"] == [str(tmp_path / "run.snapshot1.gmt"), str(tmp_path / "mine.gmt")]
    for path in truth["snapshots"]:
        assert [[b.addr, b.size] for b in gpumemtrace.open(path).live("end").blocks] == truth["first"]
        assert tool.json("verify", path)["ok"] and "recovered" in gpumemtrace.open(path).info().meta
    blocks = r.live("mark:first#2").blocks
    assert [b.stack > 0 for b in sorted(blocks, key=lambda b: b.born_ns)] == [True, True, True, False, False, False, True]
    marks = [e for e in tool.events(run) if e.get("kind") == "mark"]
    assert [(m["name"], m["arg1"]) for m in marks] == [(n, 3) for n in ("before the device", "first", "paused", "first", "end")]


def test_a_program_that_is_not_recorded():
    assert _program._library is None
    gpumemtrace.mark("nothing")
    with gpumemtrace.paused():
        pass
    assert gpumemtrace.snapshot() is None and gpumemtrace.recording() is None
    script = "import sys; sys.path.insert(0, sys.argv[1]); import gpumemtrace; gpumemtrace.mark('x'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-S", "-c", script, PYTHON], capture_output=True, text=True, check=True).stdout.split()
    assert not {"json", "subprocess", "gpumemtrace._recording", "gpumemtrace._core"} & set(loaded)


@clients
def test_types():
    """The package, and a program that uses it, under mypy --strict."""
    use = ROOT / "build/uses_gpumemtrace.py"
    use.write_text("import gpumemtrace\nr = gpumemtrace.open('x.gmt')\npeak: int = r.peak\n"
                   "name: str = r.leaks().owners[0].function\nreveal_type(r.oom())\nreveal_type(r.steps[0].growth_bytes)\n")
    done = subprocess.run([TOOLS, "-m", "mypy", "--strict", "--cache-dir", BUILD / "mypy", use, PYTHON / "gpumemtrace"],
                          capture_output=True, text=True, cwd=ROOT, env={**os.environ, "MYPYPATH": str(PYTHON)})
    assert done.returncode == 0 and "no issues found" in done.stdout, done.stdout
    assert '"gpumemtrace._documents.Oom | None"' in done.stdout and '"int"' in done.stdout


def test_the_classes_are_made_from_the_description():
    made = subprocess.run([sys.executable, ROOT / "scripts/python_documents.py"], capture_output=True, text=True, check=True).stdout
    assert made == Path(_documents.__file__).read_text()

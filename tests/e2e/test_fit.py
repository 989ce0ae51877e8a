# SPDX-License-Identifier: Apache-2.0
"""`gpumemtrace fit`: verdicts against really setting that memory, what is run and what is worked out, the largest values,
a search that goes on, bad usage, programs that fail."""
import json
import os
import re
import signal
import subprocess
import sys

import json_page
import pytest
import toy
from conftest import QUICK, TABLES, WORKLOADS, all_ran, until, with_more
from test_worlds import OF_LARGE_WORLDS

MIB = 1 << 20
TAKES = os.path.join(toy.ROOT, "build/programs/takes")
SEEN = set()


@pytest.fixture(scope="session", autouse=True)
def program():
    subprocess.run(["make", "-s", "build/programs/takes"], cwd=toy.ROOT, check=True)


@pytest.fixture
def start(tmp_path):
    def begin(*args, **env):
        full = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "BASE"))}
        full.update(STARTS=str(tmp_path / "starts"), OMP_NUM_THREADS="1", PYTHONPATH=f"{WORKLOADS}:{QUICK}", **env)
        return subprocess.Popen([toy.TOOL, "fit", *map(str, args)], env=full, cwd=tmp_path, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return begin


@pytest.fixture
def fit(start):
    def wait(*args, code=0, **env):
        p = start(*args, **env)
        out, err = p.communicate(timeout=900)
        assert p.returncode == code or code is None, (out, err)
        return out if out or not p.returncode else err
    return wait


@pytest.fixture
def fit_json(fit):
    def ask(*args, code=0, **env):
        document = json.loads(fit("--json", *args, code=code, **env))
        assert json_page.check(TABLES, "fit", document, SEEN) == []
        return document
    return ask


@pytest.fixture
def starts(tmp_path):
    def lines():
        path = tmp_path / "starts"
        found = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return sorted(found)
    return lines


def really(size, *args, **env):
    """Exit code of the program on a card of so many bytes."""
    full = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{WORKLOADS}:{QUICK}", **env}
    return subprocess.run([toy.TOOL, "run", "-q", "--sim", f"card={size}", "-o", f"{args[1]}.gmt", "--", *map(str, args)], env=full,
                          capture_output=True, timeout=300).returncode


def by_card(document):
    return {c["card"]: c for c in document["cards"]}


def test_a_verdict_is_what_that_memory_does(fit_json, tmp_path):
    """Driver memory alone: what is needed is exact to the page."""
    for blocks, mib in ((3, 100), (40, 5), (1, 1)):
        program = (TAKES, "--blocks", blocks, "--mib", mib, "--base", 300)
        big = by_card(fit_json("--cards", "big=8GiB", "--", *program))["big=8GiB"]
        need = big["device_bytes"]  # with the context of that card
        assert big["fits"] and big["measured"] and big["margin_bytes"] == (8 << 30) - need
        for size in (need + MIB, need - MIB):
            runs = subprocess.run([toy.TOOL, "run", "-q", "--sim", f"big={size}", "-o", tmp_path / "x.gmt", "--", *map(str, program)],
                                  env={**os.environ, "SIMGPU_CONTEXT": "520MiB"}).returncode == 0
            assert runs == (size > need)
            card = by_card(fit_json("--cards", f"big={size}", "--", *program, code=0 if runs else 1,
                                    SIMGPU_CONTEXT="520MiB"))[f"big={size}"]
            assert card["fits"] == runs and card["measured"] and card["capacity_bytes"] == size


def test_what_is_run_and_what_is_worked_out(fit_json, starts):
    cards = "h100-80g,h200-141g,l4-24g,rtx4090-24g,a=2GiB,b=1GiB"
    answer = by_card(fit_json("--cards", cards, "--", TAKES, "--base", 1500))
    assert [(c, x["measured"], x["run_on"], x["fits"]) for c, x in answer.items()] == [
        ("h100-80g", False, "h200-141g", True), ("h200-141g", True, "h200-141g", True), ("l4-24g", False, "rtx4090-24g", True),
        ("rtx4090-24g", True, "rtx4090-24g", True), ("a=2GiB", False, "h200-141g", True), ("b=1GiB", True, "b=1GiB", False)]
    assert len(starts()) == 3
    assert answer["h100-80g"]["device_bytes"] == answer["h200-141g"]["device_bytes"] == (1500 + 2 + 520) * MIB
    # Who asks what is free is run everywhere.
    asked = by_card(fit_json("--cards", cards, "--", TAKES, "--ask", "yes", "--blocks", "50"))
    assert all(c["measured"] and c["fits"] for c in asked.values()) and len(starts()) == 6
    assert asked["h200-141g"]["peak_bytes"] > 1.5 * asked["h100-80g"]["peak_bytes"]
    # What the largest card refuses, no smaller one has.
    refused = fit_json("--cards", "a=2GiB,b=1GiB", "--", TAKES, "--base", 4000, code=1)["cards"]
    assert [(c["measured"], c["fits"], c["run_on"]) for c in refused] == [(True, False, "a=2GiB"), (False, False, "a=2GiB")]
    assert starts() == ["--base 4000 a=1TiB", "--base 4000 a=2GiB"] and all(c["cause"] and c["text"] for c in refused)


def test_what_a_card_lacks(fit_json, fit, tmp_path):
    """Also where the program died: from the run on a larger card of the search, or on one that has room. With what is lacking it fits."""
    def needs(cards, code=0):
        return [(c["available_bytes"], c.get("needed_bytes"), c.get("lacking_bytes"), c.get("needed_on"))
                for c in fit_json("--cards", cards, "--", TAKES, "--base", 1500, code=code)["cards"]]
    (available, needed, lacking, needed_on), _ = needs("a=4GiB,b=1GiB")
    assert (available, lacking, needed_on) == (4096 * MIB, 0, "a=4GiB") and needed > 1502 * MIB
    (room, needed, lacking, needed_on), = [n for n in needs("a=4GiB,b=1GiB") if n[0] == 1024 * MIB]
    assert needed == room + lacking and needed_on == "a=4GiB" and needs("b=1GiB", code=1) == [(room, needed, lacking, "b=1TiB")]
    said = " ".join(fit("--cards", "b=1GiB", "--", TAKES, "--base", 1500, code=1).split())
    assert re.search(r"free lacks .* b=1GiB does not fit: the program took [\d.]+ GiB of b=1TiB, this card has 1.0 GiB and lacks [\d.]+ [MG]iB. Cause: ", said)
    # A program that asks what is free might take more of a larger card.
    asked, = fit_json("--cards", "b=1GiB", "--", TAKES, "--ask", "yes", "--base", 1500, code=1)["cards"]
    assert "lacking_bytes" not in asked and asked["available_bytes"] == room


def test_a_range_where_cudnn_was_not_measured(fit, fit_json, tmp_path):
    (tmp_path / "net.py").write_text("""if True:
        import torch
        model = torch.nn.Conv2d(64, 64, 3).cuda()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            model(torch.zeros(8, 64, 64, 64, device="cuda")).sum().backward()
            optimizer.step()
    """)
    args = ("-o", tmp_path / "search", "--cards", "a100-40g,h100-80g", "--", sys.executable, "net.py")
    a100, h100 = fit_json(*args)["cards"]
    assert 0 < a100["cudnn_bytes"] <= a100["cudnn_most_bytes"] and "cudnn_bytes" not in h100
    said = " ".join(fit(*args).split())
    assert "cuDNN's workspaces were not measured on cards like a100-40g. The largest is taken as" in said
    assert re.search(r"Of \d+ published figures of \d+ programs like this one \(convolutions\), half came out at first try", said)


def test_a_pipe_is_told_what_runs(start, tmp_path):
    """Of a search that takes long: a line for each run that ends, and from time to time; nothing of a short one."""
    for silent, lines in (("0", True), ("1000", False)):
        p = start("--json", "--jobs", "1", "--cards", "a=2GiB", "--vary", "base=1,2", "--", TAKES, GPUMEMTRACE_TEST_SILENT=silent)
        out, err = p.communicate(timeout=600)
        assert p.returncode == 0 and json.loads(out)["runs"] == 2
        ended = [line for line in err.splitlines() if re.fullmatch(r"gpumemtrace fit: run [12] of 2, a=2GiB with base [12]: fits", line)]
        assert len(ended) == 2 * lines and err.startswith("gpumemtrace fit: run") == lines, err


def test_progress_is_not_cut_within_a_word(terminal, tmp_path):
    """A terminal of 40 columns shows whole words of it."""
    (tmp_path / "wait.py").write_text(f"import subprocess, time\nsubprocess.run([{TAKES!r}, '--base', '5'])\ntime.sleep(4)\n")
    t = terminal(toy.TOOL, "fit", "--cards", "a=2GiB", "--", sys.executable, tmp_path / "wait.py", columns=40)
    assert t.ended() == 0
    shown = [line for line in re.findall(r"\r\x1b\[K([^\r\n]+)", t.text) if line.startswith("runs ")]
    assert shown and all(len(line) < 40 and re.search(r"\w\.\.\.$", line) for line in shown), shown
    whole = "runs 0 of 1, 1 running; a=2GiB, "
    assert all(whole.startswith(line[:-3]) or re.match(re.escape(whole) + r"\d+\b", line) for line in shown), shown


def test_a_search_that_records_nothing_leaves_the_recording_before(fit, tmp_path):
    (tmp_path / "train.py").write_text(f"import subprocess, sys\nsubprocess.run([{TAKES!r}, '--base', '5'], check=True)\n")
    command = "-o", "out", "--cards", "a=2GiB", "--", sys.executable, "train.py"
    fit(*command)
    before = (tmp_path / "out/a-2GiB.gmt").read_bytes()
    (tmp_path / "train.py").write_text("import no_such_module\n")
    assert "No module named 'no_such_module'" in fit(*command, code=3)
    assert (tmp_path / "out/a-2GiB.gmt").read_bytes() == before
    (tmp_path / "train.py").write_text(f"import subprocess, sys\nsubprocess.run([{TAKES!r}, '--base', '6'], check=True)\n")
    fit(*command)
    assert (tmp_path / "out/a-2GiB.gmt").read_bytes() != before and [p.name for p in (tmp_path / "out").glob("*.gmt*")] == ["a-2GiB.gmt"]


def test_the_largest_value_that_fits(fit_json, starts, tmp_path):
    """Against every value tried by hand; the search itself needs few runs."""
    program = (TAKES, "--mib", "16", "--blocks=7")
    answer = fit_json("-o", tmp_path / "search", "--cards", "a=1GiB,b=2GiB,c=8GiB", "--vary", "blocks=1,4,256", "--vary", "env:BASE=2,300", "--", *program)
    assert len(answer["cards"]) == 18 and [c["vary"] for c in answer["cards"][:4:3]] == [{"blocks": 1, "BASE": 2}, {"blocks": 1, "BASE": 300}]
    ran = starts()
    assert len(ran) == answer["runs"] <= 6 + 4 + 4 * 4 and all("--blocks=7" not in r and "--mib 16 --blocks=" in r for r in ran)
    for one in answer["largest"]:
        gib = int(one["card"][2])
        room = gib * 1024 - min(gib * 128, 520) - one["vary"]["BASE"]
        assert one["vary"]["blocks"] == min(room // 16, 256) and one["bounded"] == (gib < 8), one
    assert len(answer["largest"]) == 6
    line = next(x for x in answer["lines"] if x["card"] == "c=8GiB")
    assert abs(line["bytes_each"] - 16 * MIB) < 1 and line["error"] < 1e-6 and line["points"] >= 3
    # All is there: nothing is run again; one value more is one run for each base, as the largest card has room for it.
    again = fit_json("-o", tmp_path / "search", "--cards", "a=1GiB,b=2GiB,c=8GiB", "--vary", "blocks=1,4,256", "--vary", "env:BASE=2,300", "--", *program)
    assert again["cards"] == answer["cards"] and again["largest"] == answer["largest"] and (again["runs"], starts()) == (0, [])
    assert again["runs_kept"] == answer["runs"]
    more = fit_json("-o", tmp_path / "search", "--cards", "c=8GiB", "--vary", "blocks=1,2,4,256", "--vary", "env:BASE=2,300", "--", *program)
    assert more["runs"] == 2 == len(starts())
    result = sorted((tmp_path / "search").glob("c*.json"))[0]
    result.unlink()
    os.mkfifo(result)  # not waited for
    more = fit_json("-o", tmp_path / "search", "--cards", "c=8GiB", "--vary", "blocks=1,2,4,256", "--vary", "env:BASE=2,300", "--", *program)
    assert more["runs"] == 1 and result.is_file()



def test_values_that_the_program_does_not_take(fit_json, starts):
    """Then only multiples of what divides those that were given."""
    for odd, largest in ((1, 597), (128, 512)):  # of 1790 MiB that are free in three blocks
        answer = fit_json("--cards", "a=2GiB", "--vary", "mib=128,1024", "--", TAKES, "--blocks", "3", "--odd", odd)
        assert [x["vary"]["mib"] // 2 * 2 for x in answer["largest"]] == [largest // 2 * 2]
        assert len(starts()) < 10


@pytest.mark.parametrize("command, option, expected", [
    (["--batch_size", "3"], "batch-size=1", "--batch_size 1"),
    (["--batch-size=3"], "--batch_size=1", "--batch-size=1"),
    (["train.batch=3"], "train.batch=1", "train.batch=1"),
    (["--x=1"], "lr=2", "--x=1 --lr=2"),
    (["--x", "1"], "lr=2", "--x 1 --lr 2"),
    (["-b", "1"], "b=2", "-b 2"),
    ([], "dtype=bf16", "--dtype bf16"),
])
def test_how_options_are_replaced(fit_json, starts, command, option, expected):
    answer = fit_json("--cards", "h100-80g", "--vary", option, "--", TAKES, *command)
    assert starts() == [expected + " h100-80g"]
    assert list(answer["cards"][0]["vary"].values()) == [1 if option.endswith("1") else 2 if option.endswith("2") else "bf16"]


def test_an_interrupted_search_goes_on(start, fit_json, starts, tmp_path):
    (tmp_path / "once.sh").write_text(f'[ -e once ] || {{ : >once; exec {TAKES} "$@"; }}; [ -e go ] || {{ : >begun; exec sleep 1000; }}; exec {TAKES} "$@"\n')
    args = ("-o", tmp_path / "search", "-j", "1", "--cards", "h100-80g", "--vary", "blocks=1,2,3,4", "--", "sh", tmp_path / "once.sh")
    first = start(*args)
    until((tmp_path / "begun").exists)  # the second run, which does not end by itself
    first.send_signal(signal.SIGINT)
    assert "interrupted; the same command goes on with the runs in " in first.communicate(timeout=600)[1] and first.returncode == 130
    done = len(list((tmp_path / "search").glob("*.json")))
    assert done == 1
    (tmp_path / "go").touch()
    starts()
    answer = fit_json(*args)
    assert (answer["runs"], answer["runs_kept"]) == (4 - done, done) and len(starts()) == 4 - done
    assert not [p for p in os.popen("ps -eo args").read().splitlines() if str(tmp_path) in p and TAKES in p]


@pytest.mark.parametrize("args, said", [
    (["--cards", "h1000", "--", TAKES], '--cards: unknown card "h1000"; did you mean h100-80g? Known are '),
    (["--cards", "h100-80g,zzz", "--", TAKES], '--cards: unknown card "zzz"; known are '),
    (["--cards", "mine=3", "--", TAKES], '--cards: "3" is no size of a card'),
    (["--cards", "h100-80g,h100-80g", "--", TAKES], "h100-80g is named twice"),
    (["--vary", "batch", "--", TAKES], "--vary batch: give a name and its values, such as batch=1,2,4"),
    (["--vary", "batch=1,,2", "--", TAKES], "a value is empty"),
    (["--vary", "batch=1,1", "--", TAKES], "1 is named twice"),
    (["--vary", "b=1", "--vary", "b=2", "--", TAKES], "--vary b was given twice"),
    (["--steps", "0", "--", TAKES], "--steps takes 1 to 100000"),
    (["--ranks", "4:1,4", "--", TAKES], "the ranks of 4 are 0 to 3"),
    (["--ranks", "0", "--", TAKES], "--ranks takes a number"),
    (["--ranks", "512", "--", "torchrun", TAKES], "give the program without its launcher (torchrun)"),
    (["--", "/no/such/program"], "/no/such/program cannot be started: No such file or directory"),
    (["--", "no-such-program"], "no-such-program cannot be started: No such file or directory"),
    (["--cards", "h100-80g"], "the command to run (after --) is missing"),
])
def test_wrong_usage(fit, args, said):
    error = fit(*args, code=2)
    assert said in error and error.startswith("gpumemtrace fit: ") and error.count("\n") == 1


def test_a_program_that_fails(fit, fit_json, tmp_path):
    error = fit("--cards", "h100-80g", "--", TAKES, "--fail", "5", code=3)
    assert error == ("gpumemtrace fit: the program failed on h100-80g, and memory was not the reason: "
                     "exit code 5: takes: as it was wanted\n")
    answer = fit_json("--cards", "h100-80g", "--vary", "fail=0,5", "-o", tmp_path / "x", "--", TAKES)
    assert [(c["fits"], c.get("error", "")[:12]) for c in answer["cards"]] == [(True, ""), (False, "exit code 5:")]


def test_a_program_without_a_device(fit, tmp_path):
    error = fit("--cards", "h100-80g", "--vary", "batch=2", "--", "sh", "-c", "echo all done", code=3)
    assert error == ("gpumemtrace fit: the program took no memory of a device on h100-80g, batch 2: it ended with exit code 0; "
                     "does it use the CPU alone? It printed last: all done\n")
    (tmp_path / "file").write_text("")
    assert fit("-o", "file", "--", TAKES, code=3) == "gpumemtrace fit: file is no folder\n"


def test_nothing_is_left_behind(start, tmp_path):
    """Of an interrupted search: a process in a session of its own, as launchers start their ranks."""
    (tmp_path / "launch.sh").write_text("setsid sleep 1000 & echo $! >pid; wait\n")
    for sign in (signal.SIGINT, signal.SIGHUP):
        (tmp_path / "pid").unlink(missing_ok=True)
        search = start("-o", tmp_path / "search", "--cards", "h100-80g", "--", "sh", tmp_path / "launch.sh")
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        search.send_signal(sign)
        search.communicate(timeout=600)
        assert search.returncode == 130 and not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text().strip()}")


def test_a_point_that_failed_is_run_again(fit, fit_json, tmp_path):
    program = tmp_path / "reads.sh"
    program.write_text(f'cat "$2" || exit 3\nexec {TAKES}\n')
    args = ("-o", tmp_path / "search", "--cards", "h100-80g", "--vary", "data=here.txt", "--", "sh", program)
    assert "exit code 3: cat: here.txt: No such file" in fit(*args, code=3)
    (tmp_path / "here.txt").write_text("")
    assert fit_json(*args)["cards"][0]["fits"]


def test_an_option_without_effect(fit, fit_json):
    args = ("--cards", "h100-80g", "--vary", "colour=1,2", "--vary", "blocks=1,2", "--vary", "env:UNUSED=1,2", "--", TAKES)
    said = " ".join(fit(*args).split())
    words = "With all values of {} the peak is the same to the byte: does the program use it?"
    assert words.format("colour") in said and words.format("UNUSED") in said and "values of blocks" not in said
    assert fit_json(*args)["unused"] == [{"name": name, "text": words.format(name)} for name in ("colour", "UNUSED")]


def test_a_program_that_does_nothing_any_more(fit_json, start):
    """One that hangs does not fit; one that sleeps, waits for requests, works without taking more, or prepares something for longer than
    all that was before it, is taken for what it is. Of the ways 6 s are long, of the one alone what is long for users."""
    alone = start("--steps", "2", "--cards", "h100-80g", "--", TAKES, "--then", "lock")
    ways = ("lock", "naps", "sleep", "listen", "work", "prepare")
    cards = fit_json("-j", len(ways), "--steps", "2", "--cards", "h100-80g", "--vary", "then=" + ",".join(ways), "--", TAKES, "--base", "64", "--mib", "512", GPUMEMTRACE_TEST_QUIET="6")["cards"]
    by = {c["vary"]["then"]: c for c in cards}
    assert {w: by[w]["fits"] for w in ways} == {"lock": False, "naps": False, "sleep": True, "listen": True, "work": True, "prepare": True}
    assert [by["lock"]["error"].split(" waits for ")[1], by["naps"]["error"].split(" waits for ")[1]] == [
        "a lock, or another thread.", "the end of short sleeps, one after another."]
    assert re.match("it hangs: for ([6-9]|1.) s ", by["lock"]["error"]) and "idle" not in by["work"] and "idle" not in by["prepare"]
    assert by["sleep"]["idle"].startswith("It sleeps") and by["listen"]["idle"].startswith("It listens at a port")
    assert {w: by[w]["peak_bytes"] // MIB for w in ways} == {**dict.fromkeys(ways, 64), "prepare": 64 + 512}
    out, err = alone.communicate(timeout=600)
    assert alone.returncode == 3 and "the program failed on h100-80g, and memory was not the reason: it hangs: for 2" in err, (out, err)


TRAINS = """
import argparse, torch
p = argparse.ArgumentParser()
p.add_argument("--batch", type=int, default=8)
batch = p.parse_args().batch
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(6)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(100000):
    model(torch.randn(batch * 1024, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), flush=True)
"""


def test_time_that_is_up(fit, fit_json, tmp_path):
    """Before the peak is stable: there is no answer, and with more time it is run again."""
    args = ("-o", tmp_path / "x", "--cards", "h100-80g")
    error = fit(*args, "--max-time", "2", "--", TAKES, "--then", "grow", code=3)
    assert re.fullmatch(r"gpumemtrace fit: no answer on h100-80g: after 2 s \(--max-time\) its peak was not stable: no training step, and [0-2] "
                        r"seconds? of work on the device; give it more time, or less work in a step.\n", error), error
    answer = fit_json(*args, "--max-time", "3", "--vary", "then=no,grow", "--", TAKES)
    assert [(c["fits"], c.get("error", "")[:9]) for c in answer["cards"]] == [(True, ""), (False, "after 3 s")]
    (tmp_path / "train.py").write_text(TRAINS.replace("100000", "3") + "import time\nwhile True:\n    torch.ones(4, device='cuda').add_(1)\n    time.sleep(0.02)\n")
    for seconds in (12, 90):
        command = (*args, "--steps", "50", "--max-time", seconds, "--", sys.executable, "train.py")
        if "gpumemtrace fit: no answer" not in fit(*command, code=None):
            break
    card, = fit_json(*command, code=1)["cards"]  # as it is in the folder
    assert card["verdict"] == "not stable" and not card["fits"] and not card["to_end"] and card["steps"] >= 3 and re.fullmatch(
        rf"After {seconds} s \(--max-time\) it was ended before its peak was stable: 3 training steps, and the peak last rose in step [1-3]\. "
        r"The figures are a lower bound\.", card["late"]), card
    fit("--max-time", "-1", "--", TAKES, code=2)


def test_a_program_that_fails_later(fit_json, fit, tmp_path):
    """However late it fails, it has failed: also where some cards are too small."""
    (tmp_path / "late.py").write_text(TRAINS.replace("100000", "30") + "import os\nprint('no such file', flush=True)\nos._exit(5)\n")
    error = fit("--cards", "h100-80g", "--", sys.executable, "late.py", code=3)
    assert error.endswith("memory was not the reason: exit code 5: no such file\n")
    cards = by_card(fit_json("--cards", "h100-80g,l4-24g,a=200MiB", "--", sys.executable, "late.py", code=3))
    assert {c: x["verdict"] for c, x in cards.items()} == {"h100-80g": "failed", "l4-24g": "failed", "a=200MiB": "does not fit"}
    assert cards["l4-24g"]["error"] == "exit code 5: no such file" and not any(c["fits"] for c in cards.values())


LEAKS = TRAINS.replace("optimizer.step()", "optimizer.step()\n    kept.append(torch.ones(1 << 20, device='cuda'))").replace("model =", "kept = []\nmodel =")


def test_a_peak_that_rises(fit, fit_json, tmp_path):
    """A leak that has room is not stable, on each card with its own end; one that has none does not fit; one that is too slow to matter is said."""
    (tmp_path / "leaks.py").write_text(LEAKS)
    program = ("--", sys.executable, "leaks.py", "--batch", "1")
    cards = by_card(fit_json("-o", "out", "--steps", "2", "--cards", "h100-80g,h200-141g,a=400MiB", *program, code=1))
    assert {c: x["verdict"] for c, x in cards.items()} == {"h100-80g": "not stable", "h200-141g": "not stable", "a=400MiB": "does not fit"}
    for name, room in (("h100-80g", 79), ("h200-141g", 139)):
        card = cards[name]
        assert abs(card["rising_bytes"] - 4 * MIB) < MIB // 2 and 0.9 < card["rising_ends"] / (room * 1024 / 4) < 1.1 and not card["to_end"]
        assert card["rising"].startswith("+4.0 MiB a step, out of memory after about ") and card["ended"].endswith(" steps; the run was ended then.")
    assert not cards["h100-80g"]["measured"] and cards["a=400MiB"]["cause"] == "growing" and cards["a=400MiB"]["to_end"]
    said = " ".join(fit("-o", "out", "--steps", "2", "--cards", "h200-141g", *program, code=1).split())
    assert "h200-141g is not stable: +4.0 MiB a step, out of memory after about " in said and "Measured over " in said
    (tmp_path / "slowly.py").write_text(LEAKS.replace("1 << 20", "100"))
    card, = fit_json("--steps", "2", "--cards", "h100-80g", "--", sys.executable, "slowly.py")["cards"]
    assert card["fits"] and card["rising_bytes"] <= 1024 and card["rising_ends"] > 1000000
    (tmp_path / "ends.py").write_text(LEAKS.replace("100000", "40"))
    card, = fit_json("--cards", "h100-80g", "--", sys.executable, "ends.py")["cards"]
    assert card["fits"] and card["to_end"] and card["steps"] == 40 and abs(card["rising_bytes"] - 4 * MIB) < MIB // 2 and "ended" not in card


def test_what_matters_about_the_run(fit, fit_json, tmp_path):
    """As `report` says it of the recording of the first row that fits; a recording that is gone is named as such."""
    (tmp_path / "ends.py").write_text(LEAKS.replace("100000", "40"))
    program = ("--cards", "a=80MiB,h100-80g", "--", sys.executable, "ends.py")
    document = fit_json("-o", "out", *program)
    kept = [c["recording"] for c in document["cards"] if c["fits"]]
    report = subprocess.run([toy.TOOL, "report", "--json", f"out/{kept[0]}"], cwd=tmp_path, capture_output=True, check=True).stdout
    at, said = next((i, m) for i, m in enumerate(document["summary"], 1) if m["kind"] == "growth")
    assert [{**m, "action": ""} for m in document["summary"]] == [{**m, "action": ""} for m in json.loads(report)["summary"]]
    assert said["action"].split()[:2] == ["gpumemtrace", "leaks"] and (tmp_path / said["action"].split()[2]).exists()
    text = " ".join(fit("--cards", "h100-80g", *program[2:]).split())
    assert "What matters about the run on h100-80g (fit -o FOLDER keeps its recording): 1. " in text and f" {at}. Memory grows by 4.0 MiB with each step" in text
    assert "Next: gpumemtrace leaks RECORDING" in text


REFUSED = {
    "goes-on": "    except RuntimeError:\n        batch //= 2\n        continue\n",  # and trains
    "gives-up": "    except RuntimeError:\n        break\n",  # with exit code 0
    "is-slow": "    except RuntimeError:\n        import time\n        time.sleep(13)\n        raise\n",
}


@pytest.mark.parametrize("how", REFUSED)
def test_memory_that_is_refused(how, fit_json, tmp_path):
    """It is no yes, unless the program goes on after it, whatever it says at its end, and however long (6 s are, here) it is silent."""
    body = TRAINS.replace("100000", "400").replace("    model(torch", "    try: model(torch").replace(".backward()", ".backward()\n" + REFUSED[how].rstrip("\n"))
    (tmp_path / "train.py").write_text(body)
    card, = fit_json("--steps", "2", "--cards", "a=1GiB", "--", sys.executable, "train.py", "--batch", "64", code=how != "goes-on", GPUMEMTRACE_TEST_QUIET="6")["cards"]
    assert card["refusals"] >= 1 and card["verdict"] == ("fits" if how == "goes-on" else "does not fit"), card


LATER = """
import time, torch
torch.zeros(1, device="cuda")
model = torch.nn.Linear(1024, 1024).cuda()
{optimizer}
end = time.time() + 10
with torch.no_grad():
    while time.time() < end:
        {meanwhile}
        time.sleep(0.02)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(100000):
    model(torch.randn(1 << 16, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
MEANWHILE = {
    "it prepares": ("", "sum(i * i for i in range(200000)); torch.zeros(1, device='cuda').item() if time.time() % 3 < 0.1 else None"),
    "it validates": ("optimizer = torch.optim.SGD(model.parameters())", "model(torch.randn(64, 1024, device='cuda')).sum().item()"),
    "it compiles": ("import subprocess, sys", "subprocess.run([sys.executable, '-c', 'sum(i for i in range(30000000))']); "
                    "[torch.zeros(1, device='cuda') for _ in range(60)]"),
}


@pytest.mark.parametrize("what", with_more(MEANWHILE, {"it compiles", "it prepares"}))
def test_before_it_trains(what, fit_json, tmp_path):
    """A long time (twice what is long here) that is no part of what is to come, though the device has work now and then."""
    optimizer, meanwhile = MEANWHILE[what]
    (tmp_path / "train.py").write_text(LATER.format(optimizer=optimizer, meanwhile=meanwhile))
    card, = fit_json("--steps", "2", "--cards", "h100-80g", "--", sys.executable, "train.py", GPUMEMTRACE_TEST_QUIET="4")["cards"]
    assert card["fits"] and card["peak_bytes"] > 500 * MIB and card["steps"] >= 4


def test_to_its_end(fit_json, tmp_path):
    """Where much is to come the run is ended, and says so; with --to-end it is not."""
    (tmp_path / "train.py").write_text(TRAINS.replace("100000", "1500") + "torch.ones(1 << 28, device='cuda')\n")
    command = ("--cards", "h100-80g", "--", sys.executable, "train.py", "--batch", "1")
    part, = fit_json("--steps", "2", *command)["cards"]
    whole, = fit_json("--to-end", *command)["cards"]
    assert not part["to_end"] and part["peak_bytes"] < 1 << 30 and part["ended"] == f"Measured over {part['steps']} steps; the run was ended then."
    assert whole["to_end"] and whole["peak_bytes"] > 1 << 30 and whole["steps"] == 1500 and "ended" not in whole


def test_a_run_that_was_ended_is_whole(fit_json, tmp_path):
    (tmp_path / "train.py").write_text(TRAINS)
    fit_json("-o", "out", "--steps", "2", "--cards", "h100-80g", "--", sys.executable, "train.py")
    assert not list((tmp_path / "out").glob("*.live")) and not list((tmp_path / "out").glob("*.whole"))
    said = subprocess.run([toy.TOOL, "report", tmp_path / "out/h100-80g.gmt"], capture_output=True, text=True, check=True)
    said = " ".join((said.stdout + said.stderr).split())
    assert "killed or crashed" not in said and "gpumemtrace ended the run, which it had started (fit, bisect, advise): figures are up to then." in said
    document = json.loads(subprocess.run([toy.TOOL, "report", "--json", tmp_path / "out/h100-80g.gmt"], capture_output=True, check=True).stdout)
    assert document["truncated"] is False and document["events"] > 100


def test_half_of_one(fit_json, tmp_path):
    """A batch of one has no half."""
    (tmp_path / "train.py").write_text(TRAINS)
    for card in fit_json("--steps", "2", "--cards", "a=200MiB", "--vary", "batch=1,2", "--", sys.executable, "train.py", code=1)["cards"]:
        assert any("half the batch" in r["what"].lower().replace("halve", "half") for r in card["remedies"]) == (card["vary"]["batch"] == 2), card["remedies"]


def test_training_is_ended_when_the_peak_is_stable(fit_json, fit, tmp_path):
    """Against PyTorch's own counters, printed after each step."""
    (tmp_path / "train.py").write_text(TRAINS)
    answer = fit_json("-o", "out", "--steps", "2", "--cards", "h100-80g,h200-141g,m=1GiB", "--vary", "batch=4,16", "--", sys.executable, "train.py", "--batch", "1")
    cards = {(c["card"], c["vary"]["batch"]): c for c in answer["cards"]}
    for batch in (4, 16):
        card = cards["h200-141g", batch]
        step, allocated, reserved = map(int, (tmp_path / f"out/h200-141g.batch-{batch}.log").read_text().splitlines()[-2].split()[:3])
        assert (card["peak_bytes"], card["peak_reserved_bytes"]) == (allocated, reserved) and 2 <= step < 5000 and card["steps"] >= 3
        assert card["device_bytes"] >= reserved + 520 * MIB and not cards["h100-80g", batch]["measured"]
        assert "activations" == card["peak_class"] and "train.py" in card["peak_line"] and card["peak_text"].startswith("step ")
    small = cards["m=1GiB", 16]
    assert not small["fits"] and small["measured"] and small["cause"] == "batch_too_large" and small["remedies"][0]["saves_bytes"]
    assert [(x["card"], x["vary"]["batch"], x["bounded"]) for x in answer["largest"]][:2] == [("h100-80g", 16, False), ("h200-141g", 16, False)]
    m = answer["largest"][2]["vary"]["batch"]
    fits = [really("1GiB", sys.executable, tmp_path / "short.py", "--batch", b) == 0 for b in (m, m + 1)] if (
        (tmp_path / "short.py").write_text(TRAINS.replace("100000", "3"))) else None
    assert fits == [True, False]
    for name in ("h200-141g.batch-4.html", "m-1GiB.batch-16.html", "index.html", "m-1GiB.batch-16.gmt"):
        assert (tmp_path / "out" / name).stat().st_size > 1000, name


ACCUMULATES = """
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(10000):
    for _ in range(8):
        model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, torch.cuda.max_memory_allocated(), flush=True)
"""


def test_gradients_of_many_passes(fit_json, tmp_path):
    """Backward passes before the optimizer's first step are no steps: its state is still to come."""
    (tmp_path / "train.py").write_text(ACCUMULATES)
    card = fit_json("-o", "out", "--steps", "2", "--cards", "h100-80g", "--", sys.executable, "train.py")["cards"][0]
    step, peak = map(int, (tmp_path / "out/h100-80g.log").read_text().splitlines()[-2].split()[:2])
    assert card["peak_bytes"] == peak and card["steps"] >= 3 and step >= 2


def test_the_page_of_a_search(fit, tmp_path):
    """Its document is that of --json; a row leads to the page of the run that it rests on."""
    args = ("-o", "out", "--cards", "h100-80g,h200-141g,b=1GiB", "--vary", "blocks=1,200", "--", TAKES, "--mib", "8")
    fit(*args)
    text = (tmp_path / "out/index.html").read_text()
    first = json.loads(text.split('<script type="application/json" id="first">')[1].split("</script>")[0])
    assert first["fit"]["cards"] == json.loads(fit("--json", *args))["cards"] and first["names"] == ["blocks"]
    assert first["pages"][:3] == ["h200-141g.blocks-1.html"] * 2 + ["h200-141g.blocks-1.html"] and "b-1GiB.blocks-200.html" in first["pages"]
    assert all((tmp_path / "out" / p).exists() for p in first["pages"]) and "http" not in text.split("<script>")[1].replace("http://www.w3.org", "")
    (tmp_path / "out/index.html").write_text("mine")
    assert "exists and is not a page of this tool" in fit(*args, code=2)


def test_a_kernel_that_the_card_cannot_run(tmp_path):
    """Triton's own limit: tiles of 192 KiB run on an H100, and on a consumer card as little as on the device here."""
    done = subprocess.run([toy.TOOL, "fit", "--cards", "rtx4090-24g", "-o", tmp_path, "--", sys.executable, os.path.join(toy.ROOT, "tests/workloads/triton_shared.py")],
                          capture_output=True, text=True, timeout=600)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 3 and re.search(r"out of resource: shared memory, Required: \d+, Hardware limit: 101376", said), said
    assert "(as on the card: that is what a block of rtx4090-24g has)" in said
    subprocess.run([toy.TOOL, "run", "-q", "--sim", "h100-80g", "-o", tmp_path / "x.gmt", "--", sys.executable, os.path.join(toy.ROOT, "tests/workloads/triton_shared.py")],
                   check=True, timeout=600)


# As an engine says it: what it has room for, and that a request does not fit, from a process whose last words are another library's.
ENGINE = """
import sys, torch
torch.cuda.mem_get_info()
kept = torch.zeros(300 << 20, dtype=torch.uint8, device="cuda")
length = int(sys.argv[sys.argv.index("--max-model-len") + 1])
tokens = (torch.cuda.mem_get_info()[0] - (200 << 20)) // (1 << 16)
if length > tokens:
    print("(EngineCore pid=7) ERROR 11-27 [core.py:12] Traceback (most recent call last):\\n(EngineCore pid=7) ERROR 11-27 [core.py:12]   File \\"c.py\\", line 1"
          f"\\n(EngineCore pid=7) ERROR 11-27 [core.py:12] ValueError: {length} tokens are needed, larger than the available KV cache memory.\\n"
          "Traceback (most recent call last):\\n  File \\"d.py\\", line 2\\nRuntimeError: Engine core initialization failed. See root cause above.\\n"
          "[rank0]:[W1] Warning: destroy_process_group() was not called", file=sys.stderr)
    sys.exit(1)
print(f"(EngineCore pid=7) INFO [kv_cache_utils.py:21] GPU KV cache size: {tokens:,} tokens", flush=True)
print(tokens)
"""


def test_an_engine_says_what_it_has_room_for(fit, fit_json, tmp_path):
    (tmp_path / "engine.py").write_text(ENGINE)
    command = ["--cards", "card=2GiB", "--vary", "max-model-len=4096,40960", "--", sys.executable, "engine.py", "--max-model-len", "1"]
    document = fit_json("-o", "found", *command)
    fits, refused = document["cards"]
    log, = (tmp_path / "found").glob("*max-model-len-4096.log")
    truth = int(re.search(r"^\d+$", log.read_text(), re.M)[0])
    assert (fits["verdict"], fits["kv_cache_tokens"]) == ("fits", truth) and 4096 < truth < 40960
    assert (refused["verdict"], refused["cause"]) == ("does not fit", "kv_cache")
    assert refused["text"] == "ValueError: 40960 tokens are needed, larger than the available KV cache memory."
    assert document["largest"] == [{"card": "card=2GiB", "vary": {"max-model-len": truth}, "bounded": True}]
    assert not document["unused"] and not document["lines"] and document["runs"] <= 4  # its capacity is tried first
    assert re.search(rf"KV tokens.*\n.* {truth:,} ", fit("-o", "found", *command))


def test_all_members_were_seen(request):
    """Of the documents above, where they all ran in this process."""
    never = {(table, m.name) for table in TABLES if table.startswith("fit") for m in TABLES[table][1]} - SEEN - OF_LARGE_WORLDS - {("fit_vary", "value")}
    never -= {(table, name) for table, name in never if table == "fit_set" or name == "sets"}  # test_make_it_fit.py
    if not SEEN or not all_ran(request):
        pytest.skip("the other tests ran elsewhere")
    assert not never, sorted(never)

# SPDX-License-Identifier: Apache-2.0
"""lake.py LAKE OUT RUNS: a lake of so many runs, made of the rows of the lake LAKE under other projects, users, hosts, processes, times,
commits and labels (tests/e2e/test_lake.py compares the rows with those of `collect`). As a module: what questions about 1,000 and 50,000 runs
and about 10 million blocks cost: "name value unit" lines."""
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL, TOOLS, BROWSER = ROOT / "build/gpumemtrace", ROOT / ".venv-tools/bin/python", ROOT / ".venv-browser/bin/python"
QUESTIONS = ("runs", "peak_by_commit", "stray_ranks", "largest_growth", "fragmentation", "unused_memory", "out_of_memory")
SIZES, BLOCKS = (1000, 50000), 10_000_000
BY_CLASS = "select class, count(*) as blocks, sum(size) as bytes from allocations group by class"
BY_BRANCH = "select git_branch, class, sum(size) as bytes from allocations join ranks using (process) group by all"

# Copy i of a recording: a new commit every 50 runs, every fifth of a branch; a year of days.
COPY = """
create macro day_of(i, copies) as cast(date '2026-01-01' + cast(i * 364 // copies as integer) as date);
create macro run_of(run, i, copies) as strftime(day_of(i, copies), '%Y%m%d') || substr(run, 9) || '-' || i;
create macro start_of(i, copies) as cast(epoch_ns(day_of(i, copies)) as bigint) + 1000000000 * (i % 80000);
create macro pid_of(process, i) as cast(1000 + hash(process, i) % 4000000 as bigint);
"""
PLACE = {"project": "project || '-' || (i % 10)", "day": "day_of(i, {copies})", "run": "run_of(run, i, {copies})", "rank": "rank",
         "process": "'node' || (i % 97) || '-' || pid_of(process, i) || printf('-%x-', start_of(i, {copies}) + hash(process) % 1000000) || rank"}
RANKS = {"user": "'user' || (i % 40)", "host": "'node' || (i % 97)", "pid": "pid_of(process, i)", "started": "make_timestamp(start_of(i, {copies}) // 1000)",
         "git_commit": "sha1(cast(i // 50 as varchar))", "git_branch": "case when (i // 50) % 5 = 4 then 'topic-' || (i // 2500) else 'main' end",
         "recording": "'/runs/' || i || '/' || pid || '.gmt'", "job": "cast(700000 + i as varchar)", "batch": "cast(8 << (i % 3) as varchar)",
         "labels": "'batch=' || (8 << (i % 3))", "peak_bytes": "peak_bytes + (hash(i // 50) % 64) * 1048576"}


def make(base, lake, runs):
    """In a Python with DuckDB."""
    import duckdb
    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false")
    connection.execute(COPY)
    read = "read_parquet('{}/{}/month=2*/*.parquet', union_by_name=true, hive_partitioning=false)"
    recordings = connection.execute(f"select count(distinct run) from {read.format(base, 'ranks')}").fetchone()[0]
    copies = -(-runs // recordings)
    for table in sorted(p.name for p in Path(base).iterdir() if p.is_dir() and p.name != ".new"):
        cells = {**PLACE, **(RANKS if table == "ranks" else {})}
        described = connection.execute(f"describe select * from {read.format(base, table)}").fetchall()
        kinds = {d[0]: d[1] for d in described}
        for name, kind in kinds.items():
            if kind == "BIGINT" and re.search("bytes|_ns", name) and name not in cells:  # each copy has figures of its own
                cells[name] = f"{name} + hash(i, {name}) % 65536"
        replaced = ", ".join(f"cast({value.format(copies=copies)} as {kinds[name]}) as {name}" for name, value in cells.items())
        rows = f"select b.* replace ({replaced}) from {read.format(base, table)} b, range({copies}) r(i)"
        schema = next(Path(base, table).glob("month=0000-00/*.parquet"))
        for month in sorted({f"2026-{m:02}" for m in range(1, 13)}):
            folder = Path(lake, table, f"month={month}")
            folder.mkdir(parents=True)
            chosen = f"from ({rows}) where strftime(day, '%Y-%m') = '{month}'"
            connection.execute(f"copy (select * {chosen} order by project, run, rank) to '{folder}/00000001-00000001-0000-1.parquet' "
                               "(format parquet, compression zstd)")
        Path(lake, table, "month=0000-00").mkdir()
        Path(lake, table, "month=0000-00/schema.parquet").write_bytes(schema.read_bytes())


def timed(*arguments):
    """Seconds, and MB of the largest of its processes."""
    before = time.perf_counter()
    process = subprocess.Popen([TOOL, *map(str, arguments)], stdout=subprocess.DEVNULL, env={**os.environ, "GPUMEMTRACE_PYTHON": str(TOOLS)})
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, arguments
    return time.perf_counter() - before, used.ru_maxrss / 1e3


def opened(page):
    """In the environment of the browser: ms until all of it is drawn."""
    import shutil

    from playwright.sync_api import sync_playwright
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(Path(page).resolve().as_uri(), wait_until="commit")
        tab.wait_for_selector("html[data-ready]", state="attached", timeout=60000)
        print(tab.evaluate("performance.now()"))
        browser.close()


def measure(folder, recordings):
    env = {**os.environ, "GPUMEMTRACE_PYTHON": str(TOOLS)}
    subprocess.run([TOOL, "collect", *recordings, "-o", folder / "lake"], check=True, env=env, stdout=subprocess.DEVNULL)
    for runs in SIZES:
        lake = folder / f"lake-{runs}"
        subprocess.run([TOOLS, __file__, folder / "lake", lake, str(runs)], check=True)
        size = sum(p.stat().st_size for p in lake.rglob("*.parquet"))
        yield f"lake.{runs}.size", f"{size / runs / 1e3:.2f}", "kB a run"
        for name in QUESTIONS:
            seconds, most = timed("sql", f"from {name}", lake, "--json")
            yield f"lake.{runs}.{name}", f"{seconds:.2f}", "s"
            yield f"lake.{runs}.{name}.memory", f"{most:.0f}", "MB"
        yield f"lake.{runs}.dashboard", f"{timed('dashboard', lake, '-o', folder / 'lake.html')[0]:.2f}", "s"
        if BROWSER.exists():
            said = subprocess.run([BROWSER, __file__, folder / "lake.html"], capture_output=True, text=True, check=True).stdout
            yield f"lake.{runs}.page-ready", f"{float(said):.0f}", "ms"
        yield f"lake.{runs}.collect-one-more", f"{timed('collect', recordings[0], '-o', lake)[0]:.2f}", "s"
        yield f"lake.{runs}.compact", f"{timed('compact', lake)[0]:.2f}", "s"
    subprocess.run([TOOL, "collect", *recordings, "-o", folder / "few", "--tables", "allocations"], check=True, env=env, stdout=subprocess.DEVNULL)
    asked = subprocess.run([TOOL, "sql", "select count(*) from allocations", folder / "few", "--csv"], check=True, env=env, stdout=subprocess.PIPE, text=True)
    subprocess.run([TOOLS, __file__, folder / "few", folder / "blocks", str(BLOCKS * len(recordings) // int(asked.stdout.split()[-1]))], check=True)
    for name, question in (("by-class", BY_CLASS), ("by-branch", BY_BRANCH)):
        yield f"lake.blocks.{name}", f"{timed('sql', question, folder / 'blocks', '--json')[0]:.2f}", "s"


if __name__ == "__main__":
    if len(sys.argv) == 2:
        opened(sys.argv[1])
    elif len(sys.argv) == 4:
        make(*sys.argv[1:3], int(sys.argv[3]))

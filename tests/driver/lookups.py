# SPDX-License-Identifier: Apache-2.0
"""What a driver library gives for every hooked name with and without the preload, side by side (lookups.c asks).
The rule: the same codes and statuses; our hook exactly where the driver gave the function that it exports under the
symbol of that hook; everywhere else what the driver gave."""
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHIM = os.environ.get("GPUMEMTRACE_TEST_SHIM", os.path.join(ROOT, "build/libgpumemtrace.so"))


def build(folder):
    out = os.path.join(str(folder), "lookups")
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-o", out, os.path.join(ROOT, "tests/driver/lookups.c"), "-ldl"], check=True)
    return out


def hooked_symbols(kind="DRIVER"):
    with open(os.path.join(ROOT, "shim/hooks.def")) as f:
        return set(re.findall(r"^%s\((\w+)" % kind, f.read(), re.M))


def ask(program, libraries, folder, *more, traced):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_")) and k != "LD_PRELOAD"}
    env.update(LD_LIBRARY_PATH=str(libraries), GPUMEMTRACE_OUTPUT=os.path.join(str(folder), "lookups.gmt"))
    if traced:
        env["LD_PRELOAD"] = SHIM
    done = subprocess.run([program, *more], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def expected(where, symbols):
    """Of what the driver gave alone: our hook of the same function, or the driver's own."""
    return "libgpumemtrace.so:" + symbols[where] if where in symbols else where


def compare(plain, ours):
    """(lookups, of them hooked, what was wrong)."""
    hooked = hooked_symbols()
    symbols = {w: name for what, name, w in (p for p in plain if p[0] == "symbol") if w != "none" and name in hooked}
    assert len(plain) == len(ours)
    wrong, mine = [], 0
    for alone, with_us in zip(plain, ours):
        want = alone[:-1] + [expected(alone[-1], symbols)]
        mine += with_us[-1].startswith("libgpumemtrace.so")
        if with_us != want:
            wrong.append("%s: wanted %s, got %s" % (" ".join(alone), want[-1], " ".join(with_us)))
    return len(plain), mine, wrong

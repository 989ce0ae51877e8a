# SPDX-License-Identifier: Apache-2.0
"""together.py PROGRAM.py A,B... [A,B...]...: a program once for each list of arguments, each in a process of its own that is forked after
the imports, which take most of the time of a short program. Each has its folder and its line in `ended`."""
import importlib.util
import json
import os
import sys
import time
import traceback
from pathlib import Path


def run(module, place, arguments):
    place.mkdir()
    os.chdir(place)
    with open("said", "w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    try:
        module.main(*arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main(program, lists):
    here = Path.cwd()
    found = importlib.util.spec_from_file_location("program", program)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    for i, arguments in enumerate(lists):
        begin, pid = time.monotonic(), os.fork()
        if not pid:
            run(module, here / f"row-{i}", arguments.split(","))
        _, status, used = os.wait4(pid, 0)
        with open(here / "ended", "a") as ended:
            print(json.dumps([i, os.waitstatus_to_exitcode(status), round(time.monotonic() - begin), used.ru_maxrss << 10]), file=ended, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

# SPDX-License-Identifier: Apache-2.0
"""apply_remedy.py FINDING.json PROGRAM [ARGUMENT...]: runs a program with a remedy applied to it from outside, as `advise` or `oom` names it:
no line of the program is edited. FINDING.done then has how often the remedy took effect; without the file it could not be applied."""
import json
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    path = Path(sys.argv[1])
    finding = json.loads(path.read_text())
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    sys.path.insert(1, str(HERE))
    import remedy_hooks
    sys.path.remove(str(HERE))
    remedy_hooks.apply(finding, lambda n: path.with_suffix(".done").write_text(str(n)))
    runpy.run_path(sys.argv[0], run_name="__main__")


main()

# SPDX-License-Identifier: Apache-2.0
"""changed.py DEVICE FOLDER PART=CHANGE...: runs a part of changeable.py with a change (PART= alone: without), each in a child of this process,
which has torch. Prints a line of JSON for each: losses, weights, peak, how often the change took effect."""
import json
import os
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python/gpumemtrace"))

import torch._dynamo  # noqa: E402, F401, as the first optimizer does
import changeable  # noqa: E402
from changes.changes_effect import read_effects  # noqa: E402
from changes.changes_start import start  # noqa: E402

device, folder, *cases = sys.argv[1:]
for number, case in enumerate(cases):
    part, _, change = case.partition("=")
    of_case = Path(folder) / str(number)
    of_case.mkdir()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = 1
        try:
            if change:
                os.environ["GPUMEMTRACE_WITH"] = change
                start(of_case)
            losses, weights, peak = changeable.run(part, device)
            times = read_effects(of_case, 1)[1][0][0] if change else 0
            print(json.dumps({"losses": losses, "weights": weights, "peak": peak, "times": times}), flush=True)
            code = 0
        except Exception:
            traceback.print_exc()
        os._exit(code)
    if os.waitpid(child, 0)[1]:
        print(json.dumps({"losses": [], "weights": 0, "peak": -1, "times": 0}), flush=True)

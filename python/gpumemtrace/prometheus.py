# SPDX-License-Identifier: Apache-2.0
"""What a recorded program holds now, as a file for Prometheus (node_exporter's textfile collector):

    python -m gpumemtrace.prometheus PID|FILE -o gpu_memory.prom [--every SECONDS]

Inside the program: ``gpumemtrace.prometheus.write("gpu_memory.prom")``. The file is replaced as a whole each time."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Dict, List, Tuple

from ._documents import Top
from ._error import Error
from ._program import recording
from ._tool import ask

_FIGURES = (("peak_bytes", "gauge", "Most bytes in use at once so far"),
            ("reserved_bytes", "gauge", "Bytes reserved by the framework now"),
            ("total_bytes", "gauge", "Memory of the device, 0 if it is not known"),
            ("step", "gauge", "The latest training step, 0 before the first"),
            ("events_total", "counter", "Events recorded so far"))


def _labels(labels: Dict[str, object]) -> str:
    def escaped(value: object) -> str:
        return str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"


def text(process: str) -> str:
    """The figures of a process id or a recording in Prometheus' text format."""
    now = Top._of(ask("top", process))
    labels: Dict[str, object] = {"pid": now.pid, "device": now.device}
    values = {"events_total": now.events, **{name: getattr(now, name) for name, *_ in _FIGURES if hasattr(now, name)}}
    rows: List[Tuple[str, str, str, List[str]]] = [
        ("gpumemtrace_bytes", "gauge", "Bytes in use now, by what they are for",
         [f"gpumemtrace_bytes{_labels({**labels, 'class': name})} {size}" for name, size in now.categories.items()])]
    for name, kind, meaning in _FIGURES:
        rows.append((f"gpumemtrace_{name}", kind, meaning, [f"gpumemtrace_{name}{_labels(labels)} {values[name]}"]))
    return "".join(f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n" + "".join(line + "\n" for line in lines)
                   for name, kind, meaning, lines in rows)


def write(path: str, process: str = "") -> bool:
    """Writes the file; without a process of this program itself. False if that is not recorded."""
    process = process or recording() or ""
    if not process:
        return False
    found = text(process)
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        file.write(found)
    os.replace(file.name, path)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gpumemtrace.prometheus", description="Live totals by class for Prometheus.")
    parser.add_argument("process", metavar="PID|FILE")
    parser.add_argument("-o", "--output", required=True, metavar="X.prom")
    parser.add_argument("--every", type=float, metavar="SECONDS", help="write again and again, until the process ends")
    options = parser.parse_args()
    try:
        while write(options.output, options.process) and options.every:
            if Top._of(ask("top", options.process)).ended:
                break
            time.sleep(options.every)
    except Error as error:
        print(f"gpumemtrace: {error.sentence}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())

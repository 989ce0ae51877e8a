# SPDX-License-Identifier: Apache-2.0
"""What a recorded program holds now, as a file for Prometheus (node_exporter's textfile collector):

    python -m gpumemtrace.prometheus PID|FILE -o gpu_memory.prom [--every SECONDS]

Inside the program: ``gpumemtrace.prometheus.write("gpu_memory.prom")``. The file is replaced as a whole each time. Labels say whose run it
is, as the columns of a lake do."""

from __future__ import annotations

import argparse
import os
import re
import stat
import sys
import time
from typing import Any, Callable, Dict, List, Mapping, Tuple

from ._documents import Top
from ._error import Error
from ._program import recording
from ._tool import ask

MOST, LONGEST = 16, 128  # names taken from GPUMEMTRACE_LABELS, and characters of a value
OURS = ("pid", "device", "class")
OPTIONS: Dict[str, Dict[str, Any]] = {"--every": {"type": float, "metavar": "SECONDS", "help": "again and again, until the process ends"},
                                      "--output": {"required": True, "metavar": "X.prom"}}

HEAD = b"# HELP gpumemtrace_"  # its files begin so

Sample = Tuple[Dict[str, str], int]  # labels of its own, and a figure
FIGURES = (("bytes", "gauge", "By", "Bytes in use now, by what they are for"),
           ("peak_bytes", "gauge", "By", "Most bytes in use at once so far"),
           ("reserved_bytes", "gauge", "By", "Bytes reserved by the framework now"),
           ("total_bytes", "gauge", "By", "Memory of the device, 0 if it is not known"),
           ("step", "gauge", "{step}", "The latest training step, 0 before the first"),
           ("events_total", "counter", "{event}", "Events recorded so far"))


def identity(run: Mapping[str, str]) -> Dict[str, str]:
    """Whose run it is: columns of a lake, and the names of GPUMEMTRACE_LABELS that are no columns."""
    found = {name: value for name, value in run.items() if name != "labels"}
    for part in run.get("labels", "").split(",")[:MOST]:
        name, _, value = part.strip().partition("=")
        name = re.sub("[^a-zA-Z0-9_]", "_", name)
        if value and name[:1].isalpha() and name not in OURS:
            found.setdefault(name, value)
    return {name: value[:LONGEST] for name, value in found.items()}


def samples(now: Top) -> Dict[str, List[Sample]]:
    """Of each figure."""
    device = {"device": str(now.device)}
    values = {name: getattr(now, "events" if name == "events_total" else name) for name, *_ in FIGURES}
    return {**{name: [(device, value)] for name, value in values.items()},
            "bytes": [({**device, "class": name}, size) for name, size in now.categories.items()]}


def _labels(labels: Mapping[str, object]) -> str:
    def escaped(value: object) -> str:
        return str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"


def text(process: str) -> str:
    """The figures of a process id or a recording in Prometheus' text format."""
    now = Top._of(ask("top", process))
    whose, found = identity(now.run), samples(now)
    return "".join(f"# HELP gpumemtrace_{name} {meaning}\n# TYPE gpumemtrace_{name} {kind}\n" + "".join(
        f"gpumemtrace_{name}{_labels({'pid': now.pid, **labels, **whose})} {value}\n" for labels, value in found[name]) for name, kind, _, meaning in FIGURES)


def refuse_other(path: str) -> None:
    """A file that exists is replaced only if it is empty or was written here, as every output of the tool."""
    if not os.path.lexists(path):
        return
    try:
        with open(path, "rb") as file:
            fits = not stat.S_ISREG(os.fstat(file.fileno()).st_mode) or file.read(len(HEAD)) not in (b"", HEAD)
    except OSError as error:
        raise Error(f"{path}: {error.strerror}", 3) from None
    if fits:
        raise Error(f"{path} exists and is not a file of gpumemtrace.prometheus; remove it or choose another name", 2)


def write(path: str, process: str = "") -> bool:
    """Writes the file; without a process of this program itself. False if that is not recorded."""
    process = process or recording() or ""
    if not process:
        return False
    found = text(process)
    refuse_other(path)
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        file.write(found)
    os.replace(file.name, path)
    return True


def command(name: str, does: str, send: Callable[[argparse.Namespace], Any], *names: str) -> int:
    """A module as a command: sends once, or again and again until the process ends; the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m gpumemtrace.{name}", description=f"Live totals by class for {does}.")
    parser.add_argument("process", metavar="PID|FILE")
    for option in names:
        parser.add_argument(option[1:3], option, **OPTIONS[option])
    options = parser.parse_args()
    try:
        while send(options) and options.every and not Top._of(ask("top", options.process)).ended:
            time.sleep(options.every)
    except Error as error:
        print(f"gpumemtrace: {error.sentence}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(command("prometheus", "Prometheus", lambda o: write(o.output, o.process), "--output", "--every"))

# SPDX-License-Identifier: Apache-2.0
"""Many programs for one import of PyTorch: each is a process forked from one that has imported it. What is about the start of a program,
its end or its outermost frames is tested with programs that are started.

`python forks.py` reads a program from each line, and answers with its process and exit code; Forks is its other side."""
import atexit
import ctypes
import importlib
import json
import os
import re
import runpy
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

OUTPUT = "%p.gmt"
OWN = "GPUMEMTRACE_", "LD_", "PYTHONPATH", "SIMGPU_"  # settings that are read at a program's start; others when a device is first used
LATE = "SIMGPU_CARD", "SIMGPU_COUNT"
MOST = 4  # of these processes at a time
LARGE = {"transformers": "transformers.generation.utils"}  # what takes longer to import than PyTorch: the package, and what its models have in common
OF_RANKS = "torch._dynamo.trace_rules"  # the compiler: init_process_group imports it
ROOM = "-" * 4000  # for the command lines of programs, in that of the process that they are forked from


def is_own(name):
    return name.startswith(OWN) and name not in LATE


def large_imports(script):
    """Of a program, as it begins."""
    text = Path(script).read_text(errors="replace") if str(script).endswith(".py") else str(script)
    return LARGE.keys() & set(re.findall(r"^(?:from|import) (\w+)", text, re.M))


class Forks:
    """Programs that are started by one command (with OUTPUT for the name of a recording) with the same settings of ours, and import the same."""
    started = {}

    @classmethod
    def of(cls, command, environment=os.environ, script="", ranks=0):
        imports = ["torch", *(LARGE[name] for name in sorted(large_imports(script))), *[OF_RANKS] * bool(ranks)]
        key = (*map(str, command), *imports, *sorted((k, v) for k, v in environment.items() if is_own(k) and k != "GPUMEMTRACE_OUTPUT"))
        found = cls.started.pop(key, None) or cls(command, environment, imports)
        cls.started[key] = found  # the last one used
        while len(cls.started) > MOST:
            cls.started.pop(next(iter(cls.started))).close()
        return found

    def __init__(self, command, environment, imports):
        self.folder = Path(tempfile.mkdtemp(prefix="forks"))
        output = str(self.folder / OUTPUT)
        self.begun, self.given = time.time(), list(environment)
        self.server = subprocess.Popen([output if word == OUTPUT else str(word) for word in (*command, __file__, ",".join(imports), ROOM)], env={**environment, "GPUMEMTRACE_OUTPUT": output},
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        atexit.register(self.close)

    def run(self, words, folder, environment, timeout=1200, ranks=0):
        """As subprocess.run, and the recordings: of the one process, or of each rank; None where there is none."""
        out, err = self.folder / "out", self.folder / "err"
        for script in map(str, words):  # of a file that is newer than its process the recorder keeps no text
            if script.endswith(".py") and os.path.exists(script) and os.stat(script).st_mtime > self.begun - 1:
                os.utime(script, (self.begun - 1, self.begun - 1))
        request = {"words": list(map(str, words)), "folder": str(folder), "out": str(out), "err": str(err), "ranks": ranks, "given": self.given,
                   "environment": {k: v for k, v in environment.items() if not is_own(k)}}
        print(json.dumps(request), file=self.server.stdin, flush=True)
        if not select.select([self.server.stdout], [], [], timeout)[0]:
            Forks.started = {k: v for k, v in Forks.started.items() if v is not self}
            self.close(0)
            raise subprocess.TimeoutExpired(words, timeout)
        processes, code = json.loads(self.server.stdout.readline())
        done = subprocess.CompletedProcess(words, code, out.read_text(errors="replace"), err.read_text(errors="replace"))
        recordings = [self.folder / f"{process}.gmt" for process in processes]
        return done, [r if r.exists() else None for r in recordings]

    def record(self, path, words, folder, environment=os.environ):
        """The program's recording goes to that path; the program must succeed."""
        done, recordings = self.run(words, folder, environment)
        done.check_returncode()
        shutil.move(recordings[0], path)

    def close(self, patience=10):
        atexit.unregister(self.close)
        self.server.stdin.close()
        try:
            self.server.wait(patience)
        except subprocess.TimeoutExpired:  # a program hangs
            os.killpg(self.server.pid, signal.SIGKILL)
            self.server.wait()
        shutil.rmtree(self.folder)


def be_called(words):
    """The command line that others see of this process: the recorder reads from it which script is the program."""
    start, end = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[45:47])
    text = b"\0".join(os.fsencode(word) for word in (sys.orig_argv[0], *words)) + b"\0"
    assert len(text) < end - start
    ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


def end_at_once(imported):
    """A process that goes through all objects of PyTorch to give them back has to copy each page first. What the program made itself ends as ever."""
    libc = ctypes.CDLL(None)
    libc.on_exit(libc.quick_exit, None)  # in place of all destructors; a recording is finished there, too
    left = [sys.modules.pop(name) for name in imported if name in sys.modules]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(left))


def begin(request):
    """In the new process."""
    for name, fd in (("out", 1), ("err", 2)):
        file = os.open(request[name], os.O_WRONLY | os.O_APPEND)
        os.dup2(file, fd)
        os.close(file)
    for name in [n for n in request["given"] if not is_own(n) and n not in request["environment"]]:
        os.environ.pop(name, None)
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    be_called(request["words"])
    sys.argv = request["words"]
    if sys.argv[0] != "-c":
        sys.path[:0] = [os.path.dirname(sys.argv[0])]
        return runpy.run_path(sys.argv[0], run_name="__main__")
    sys.path[:0] = [""]
    program = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(sys.argv.pop(1), "<string>", "exec"), vars(program))


def wait_for(processes):
    """How they ended: 0, or the code of the first that failed, which ends the others."""
    left, code = set(processes), 0
    while left:
        process, status = os.wait()
        left.discard(process)
        if status and not code:
            code = os.waitstatus_to_exitcode(status)
            for other in left:
                os.kill(other, signal.SIGTERM)
    return code


def be_rank(request, rank, port):
    places = {"RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0, "WORLD_SIZE": request["ranks"], "LOCAL_WORLD_SIZE": request["ranks"], "GROUP_WORLD_SIZE": 1,
              "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_USE_AGENT_STORE": True, "TORCHELASTIC_RUN_ID": os.getppid()}
    begin({**request, "environment": {**request["environment"], **{k: str(v) for k, v in places.items()}}})


def launch(request, answers):
    """As PyTorch's launcher does: ranks of one node, and a store in a process that uses no device. The store has a thread, so it is made behind the forks."""
    ranks = []
    for rank in range(request["ranks"]):
        there, here = os.pipe()
        process = os.fork()
        if not process:
            answers.close()
            os.close(here)
            return be_rank(request, rank, os.read(there, 100).decode())
        ranks.append((process, here))
    from torch.distributed import TCPStore
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    for _, here in ranks:
        os.write(here, str(store.port).encode())
    processes = [process for process, _ in ranks]
    print(json.dumps([processes, 1 if wait_for(processes) else 0]), file=answers, flush=True)
    os._exit(0)


def serve(imports):
    before, imported = set(sys.modules), set()
    atexit.register(end_at_once, imported)  # the last thing that a program does
    for name in imports:
        importlib.import_module(name)
    imported.update(set(sys.modules) - before)
    sys.path.pop(0)  # the folder of this file
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        for name in ("out", "err"):
            open(request[name], "w").close()
        process = os.fork()
        if not process and request["ranks"]:
            return launch(request, answers)
        if not process:
            answers.close()
            return begin(request)
        code = wait_for([process])
        if not request["ranks"]:
            print(json.dumps([[process], code]), file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1].split(","))

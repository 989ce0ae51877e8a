# SPDX-License-Identifier: Apache-2.0
"""A world of ranks that may be larger than the machine. Some of its ranks run, and a process of ours, the stand-in, answers the
rendezvous in place of all others. Their messages are simulated by the device (SIMGPU_RANKS=alone)."""
from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Sequence, Set

from .._answer import USAGE, Sentence
from .search_process import become, fork

MOST = 1 << 20
MOST_RUN = 8  # ranks of a larger world
HERE = 16  # a world up to that size runs whole
PATIENCE = 1  # seconds in which the stand-in removes its files
NODE, MOST_NODE = 8, 16  # devices of a node, if LOCAL_WORLD_SIZE does not say
FORM = "--ranks takes a number, or one with the ranks to run: 512, 512:0,64,511"
# Launchers, which start ranks themselves.
LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate", "deepspeed", "mpirun", "mpiexec", "srun", "horovodrun")


@dataclass
class World:
    size: int = 0  # 0: the command's own number of ranks
    ranks: List[int] = field(default_factory=list)  # those that run, ascending; empty: all
    node: int = 0  # ranks per node

    def runs(self) -> int:
        """Number of ranks that run on this machine."""
        return len(self.ranks) or self.size

    def devices(self) -> int:
        """Those visible to each process: all of the node's, or one per rank."""
        return 1 if not self.size else self.node if self.ranks else self.size

    def environment(self, i: int, port: int, messages: str) -> Dict[str, str]:
        """As torchrun would set it for rank self.ranks[i], and the file through which the simulated devices of the running ranks pass
        messages. The store belongs to the launcher, so that rank 0 is a client of it as all others are."""
        rank = self.ranks[i]
        return {
            **rank_environment(rank, self.size, self.node, port), "ROLE_RANK": str(rank), "ROLE_WORLD_SIZE": str(self.size),
            "GROUP_RANK": str(rank // self.node), "GROUP_WORLD_SIZE": str(-(-self.size // self.node)), "ROLE_NAME": "default",
            "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
            "TORCHELASTIC_RUN_ID": "none", "TORCH_GLOO_LAZY_INIT": "1",  # a group of gloo connects when it is used
            "GLOO_SOCKET_IFNAME": "lo", "SIMGPU_RANKS": "alone", "SIMGPU_WORLD": ",".join(map(str, self.ranks)) + ":" + messages}


def rank_environment(rank: int, size: int, node: int, port: int) -> Dict[str, str]:
    return {"RANK": str(rank), "LOCAL_RANK": str(rank % node), "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(node),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def launcher_of(command: Sequence[str]) -> Optional[str]:
    return next((name for name in map(os.path.basename, command[:4]) if name in LAUNCHERS), None)


def parse(text: Optional[str], environment: Mapping[str, str]) -> World:
    """Of "8", "512", "512:0,64,511". Without a list a small world runs whole; of a larger one the first, the middle and the last rank run."""
    if text is None:
        return World()
    found = re.fullmatch(r"([0-9]{1,9})(:.*)?", text, re.S)
    size = int(found[1]) if found else 0
    if not found or not 1 <= size <= MOST:
        raise Sentence(f"{FORM}; at most {MOST}", USAGE)
    local = environment.get("LOCAL_WORLD_SIZE")
    number = re.match(r"\s*([+-]?\d+)", local or "")
    node = NODE if local is None else int(number[1]) if number else 0
    if not 1 <= node <= MOST_NODE:
        raise Sentence(f"LOCAL_WORLD_SIZE is {local}: a node has 1 to {MOST_NODE} devices", USAGE)
    ranks: Set[int] = set()
    for word in found[2][1:].split(",") if found[2] else ():
        if len(ranks) == MOST_RUN:
            raise Sentence(f"--ranks runs at most {MOST_RUN} ranks of a world", USAGE)
        if not re.fullmatch("[0-9]{1,9}", word) or int(word) >= size:
            raise Sentence(f"{FORM}; the ranks of {size} are 0 to {size - 1}", USAGE)
        ranks.add(int(word))
    if not found[2] and size > HERE:
        ranks = {0, size // 2, size - 1}
    return World(size, sorted(ranks), min(node, size))


class StandIn:
    """The process that simulates the ranks that do not run (python/gpumemtrace/_world.py). It ends with this one, or by end()."""

    def __init__(self, program: str, world: World, log: int) -> None:
        self.ports: List[int] = []  # of the rendezvous, one for each rank that runs
        reads, writes = os.pipe()
        with tempfile.TemporaryFile() as text:
            text.write(program.encode())
            text.seek(0)
            argv = [sys.executable, "-I", "-S", "-", str(world.size), str(len(world.ranks))]
            self.pid = fork(lambda: become(argv, dict(os.environ), (text.fileno(), writes, log)), signal.SIGKILL)
        os.close(writes)
        with os.fdopen(reads) as answer:
            line = answer.readline()
        with contextlib.suppress(ValueError):
            self.ports = [int(word) for word in line.split()]
        self.works = len(self.ports) == len(world.ranks)

    def end(self) -> None:
        if self.pid:
            with contextlib.suppress(ChildProcessError):
                os.kill(self.pid, signal.SIGTERM)
                until = time.monotonic() + PATIENCE
                while not os.waitpid(self.pid, os.WNOHANG)[0]:
                    if time.monotonic() > until:
                        os.kill(self.pid, signal.SIGKILL)
                    time.sleep(0.01)
        self.pid = 0

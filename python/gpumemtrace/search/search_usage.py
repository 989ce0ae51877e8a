# SPDX-License-Identifier: Apache-2.0
"""What the simulated device counts itself, in the file that SIMGPU_USAGE names (simgpu/core/usage.c)."""
from __future__ import annotations

import struct
from typing import NamedTuple, Tuple

MAGIC = 0x3145474153554D53
DEVICES = 16
LAYOUT = struct.Struct(f"=5Q{DEVICES}Q3QQ3QQ")


class Usage(NamedTuple):
    context: int = 0  # of the peak, the context and libraries' memory without a recorded call
    refused: int = 0
    asked: int = 0  # how often the program queried free memory
    peak: int = 0  # of the device with the highest
    nccl: Tuple[int, int, int] = (0, 0, 0)  # NCCL's part of it: expected, least, most
    work: int = 0
    convolution: Tuple[int, int, int] = (0, 0, 0)  # the largest workspace of cuDNN: simulated, most, and 1 if none was measured on such a card
    modules: int = 0  # of kernels that the program compiled


def read_usage(path: str) -> Usage:
    try:
        with open(path, "rb") as f:
            n = LAYOUT.unpack(f.read(LAYOUT.size))
    except (OSError, struct.error):
        return Usage()
    if n[0] != MAGIC:
        return Usage()
    peaks, rest = n[5:5 + DEVICES], n[5 + DEVICES:]
    return Usage(n[2], n[3], n[4], max(peaks), rest[:3], rest[3], rest[4:7], rest[7])

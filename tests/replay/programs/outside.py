# SPDX-License-Identifier: Apache-2.0
"""Memory that is taken beside the allocator comes and goes while it works."""
import ctypes

import torch

runtime = ctypes.CDLL(None)
total = torch.cuda.get_device_properties(0).total_memory
for step in range(8):
    held = ctypes.c_void_p()
    work = [torch.empty(int(total * 0.03) + (i << 21), dtype=torch.uint8, device="cuda") for i in range(8)]
    del work[1::2]
    assert runtime.cudaMalloc(ctypes.byref(held), ctypes.c_size_t(int(total * 0.3))) == 0
    more = [torch.empty(int(total * 0.045), dtype=torch.uint8, device="cuda") for _ in range(5)]
    del more
    assert runtime.cudaFree(held) == 0
    del work

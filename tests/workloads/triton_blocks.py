# SPDX-License-Identifier: Apache-2.0
"""Milliseconds by the device's events of a kernel that Triton compiles: for blocks of 64 and 1,024 elements, then for four times the elements;
at last for 1,024 elements as PyTorch's own launcher does it, which loads the code from a file."""
import ctypes
import tempfile

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) + scale * tl.load(y + at, at < n), at < n)


def by_triton(n, block, *tensors):
    return add[(triton.cdiv(n, block),)](*tensors, 0.5, n, BLOCK=block)


def from_file(n, block, *tensors):
    kernel, driver, function = by_triton(n, block, *tensors), ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    with tempfile.NamedTemporaryFile() as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        assert driver.cuModuleLoad(ctypes.byref(module := ctypes.c_void_p()), file.name.encode()) == 0
    assert driver.cuModuleLoad(ctypes.byref(ctypes.c_void_p()), b"/no/such/file") == 301
    assert driver.cuModuleGetFunction(ctypes.byref(function), module, kernel.metadata.name.encode()) == 0
    values = [*(ctypes.c_uint64(t.data_ptr()) for t in tensors), ctypes.c_float(0.5), ctypes.c_int(n), ctypes.c_uint64(0), ctypes.c_uint64(0)]
    words = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    return lambda *same: driver.cuLaunchKernel(function, triton.cdiv(n, block), 1, 1, 32 * kernel.metadata.num_warps, 1, 1, kernel.metadata.shared, None, words, None)


def milliseconds(n, block, launch=by_triton):
    tensors = [torch.empty(n, device="cuda") for _ in range(3)]
    launch = launch(n, block, *tensors) if launch is from_file else launch
    launch(n, block, *tensors)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(10):
        launch(n, block, *tensors)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 10


print(milliseconds(10 << 20, 64), milliseconds(10 << 20, 1024), milliseconds(40 << 20, 1024), milliseconds(10 << 20, 1024, from_file))

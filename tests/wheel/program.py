# SPDX-License-Identifier: Apache-2.0
"""Allocates through the driver's interface and needs nothing but Python: its peak is 48 MiB."""

import ctypes

MIB = 1 << 20
cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    assert code == 0, (name, code)


def allocate(size):
    address = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    return address


context = ctypes.c_void_p()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
first, second = allocate(32 * MIB), allocate(16 * MIB)
call("cuMemFree_v2", first)
third = allocate(8 * MIB)

# SPDX-License-Identifier: Apache-2.0
"""zstd by the library that the build needs anyway: its command is not on every machine."""
import ctypes

zstd = ctypes.CDLL("libzstd.so.1")
for name in ("ZSTD_compressBound", "ZSTD_compress", "ZSTD_decompress"):
    getattr(zstd, name).restype = ctypes.c_size_t


def compressed(data, level=3):
    room = zstd.ZSTD_compressBound(ctypes.c_size_t(len(data)))
    out = ctypes.create_string_buffer(room)
    size = zstd.ZSTD_compress(out, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data)), level)
    assert not zstd.ZSTD_isError(ctypes.c_size_t(size))
    return out.raw[:size]


def decompressed(frame, size):
    out = ctypes.create_string_buffer(size)
    got = zstd.ZSTD_decompress(out, ctypes.c_size_t(size), frame, ctypes.c_size_t(len(frame)))
    assert got == size
    return out.raw

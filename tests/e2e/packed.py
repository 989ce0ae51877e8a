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


class Frame:
    """A frame that comes in parts, each ended by a flush."""

    class Buffer(ctypes.Structure):
        _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t), ("at", ctypes.c_size_t)]

    def __init__(self):
        zstd.ZSTD_createDStream.restype = ctypes.c_void_p
        self.stream = ctypes.c_void_p(zstd.ZSTD_createDStream())

    def __del__(self):
        zstd.ZSTD_freeDStream(self.stream)

    def part(self, data, size):
        room = ctypes.create_string_buffer(size)
        out = self.Buffer(ctypes.cast(room, ctypes.c_char_p), size, 0)
        source = self.Buffer(data, len(data), 0)
        done = -1
        while out.at + source.at != done:
            done = out.at + source.at
            zstd.ZSTD_decompressStream(self.stream, ctypes.byref(out), ctypes.byref(source))
        assert out.at == size and source.at == len(data)
        return room.raw

# SPDX-License-Identifier: Apache-2.0
"""The table docs/driver-lookups.md: which of the driver's functions NVIDIA's libraries look up, and what they are given."""
import re

# What may allocate, free, map or make a context, by its name.
KIND = re.compile("Alloc|Free|CtxCreate|CtxDestroy|PrimaryCtx|ArrayCreate|ArrayDestroy|Map|Unmap|MemCreate|MemRelease|MemImport|Import|"
                  "Retain|Reserve|HostRegister|HostUnregister|Trim|PoolCreate|PoolDestroy|Multicast|IpcOpen|IpcClose|"
                  "ModuleLoad|ModuleUnload|LibraryLoad|LibraryUnload|GreenCtx|CtxFrom")

# Those that are not hooked, and why not.
REASONS = [
    (r"^cuMem(AllocHost|Alloc|AllocPitch|Free)$|^cuArray(3D)?Create$|^cuCtxCreate$", "the form with 32-bit addresses of before CUDA 3.2"),
    (r"^cuGreenCtx|^cuCtxFromGreenCtx", "a green context shares the memory of its device's primary context"),
    (r"^cuGraph(AddMem|Mem)|^cuDeviceGraphMem", "memory of graphs: the driver allocates it at launch, no call does"),
    (r"^cuGraph(Retain|Release)|^cuUserObject", "counts references of a graph; no memory"),
    (r"^cuGraphics|^cuGL|^cuEGL|^cuVDPAU|^cuD3D", "memory of a graphics interface that is mapped, not allocated"),
    (r"^cu(Import|Destroy)?External", "memory that another interface has allocated"),
    (r"^cuMulticast", "addresses for memory that cuMemCreate made, which is recorded"),
    (r"^cuIpcOpenEventHandle$", "an event of another process, no memory"),
    (r"^cuMemMapArrayAsync$", "maps tiles of a sparse array to memory that cuMemCreate made"),
    (r"^cuMemPoolImport", "a pool of another process"),
    (r"^cu\w+(Get|Set)[A-Z]\w*$|^cuTensorMap|^cuLogicalEndpoint", "asks or sets; no memory comes or goes"),
]

HEAD = """# How NVIDIA's libraries reach the driver

Made by `make test-driver`; change `tests/driver/`. Each library was started on NVIDIA's driver libraries as Debian has them (without a card: they
answer which functions they have, and refuse the rest), with a tool between it and the driver that notes what is looked up. A library's own copy
of the runtime asks the driver for some 400 functions by `cuGetProcAddress` before it asks for the device. "Ours" are those for which it was
given this library's hook; the others it was given as the driver has them. What a library asks for only once it has a device (NCCL: `cuMemCreate`
and its like) is not in the table; that way is tried with every hooked name, version and flag on its own.

"""


def reason(symbol):
    return next((why for pattern, why in REASONS if re.search(pattern, symbol)), None)


class LookupTable:
    def __init__(self, drivers):
        self.drivers, self.cells = drivers, {}
        self.ours, self.passed = {}, {}

    def add(self, library, driver, found, hooked):
        mine = [p for p in found if p[4] in hooked]
        self.cells[library, driver] = "%d, %d" % (len(found), len(mine))
        for p in found:
            if p[4] in hooked:
                self.ours.setdefault(p[4], set()).add(library)
            elif KIND.search(p[1]):
                self.passed.setdefault(p[4], set()).add(library)

    def add_refusal(self, library, driver):
        self.cells[library, driver] = "does not start"

    def unexplained(self):
        return sorted(symbol for symbol in self.passed if not reason(symbol))

    def rows(self):
        libraries = list(dict.fromkeys(library for library, _ in self.cells))
        yield "| looked up, of them ours | " + " | ".join("driver " + d for d in self.drivers) + " |"
        yield "|---|" + "---|" * len(self.drivers)
        for library in libraries:
            cells = [self.cells[library, d] for d in self.drivers]
            yield "| %s | %s |" % (library, " | ".join(cells))
        yield "\n## Ours\n\n| function | looked up by |\n|---|---|"
        for symbol in sorted(self.ours):
            yield "| `%s` | %s |" % (symbol, self.who(self.ours[symbol], libraries))
        yield "\n## Left as they are, though by their names they may allocate, free or map\n\n| why | functions |\n|---|---|"
        for why in dict.fromkeys(why for _, why in REASONS):
            names = sorted(s for s in self.passed if reason(s) == why)
            if names:
                yield "| %s | %s |" % (why, ", ".join("`%s`" % n for n in names))

    @staticmethod
    def who(libraries, known):
        return "all" if set(libraries) == set(known) else ", ".join(name for name in known if name in libraries)

    def write(self, path, libraries):
        """Only after a whole run."""
        if not self.cells or {(name, driver) for name in libraries for driver in self.drivers} - set(self.cells):
            return
        with open(path, "w", encoding="utf-8") as f:
            f.write(HEAD + "\n".join(self.rows()) + "\n")

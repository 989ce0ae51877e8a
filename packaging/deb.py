# SPDX-License-Identifier: Apache-2.0
"""A Debian package from a wheel: the same files, at Debian's places; the same to the byte each time.

    packaging/deb.py WHEEL    writes dist/gpumemtrace_VERSION_ARCH.deb (needs dpkg-deb)

The Python package is not in it: `pip install` the wheel for that.
"""

import gzip
import os
import re
import subprocess
import sys
import tempfile
import zipfile

from wheel import SUMMARY, version

ARCHES = {"x86_64": "amd64", "aarch64": "arm64"}
# Where the wheel has it (a pattern), where the package has it. What matches none of them stays out.
PLACES = [
    (r"gpumemtrace/bin/(.*)", r"usr/bin/\1"),
    (r"gpumemtrace/lib/(.*)", r"usr/lib/gpumemtrace/\1"),
    (r"gpumemtrace-[^/]*\.data/data/share/man/(.*)", r"usr/share/man/\1.gz"),
    (r"gpumemtrace-[^/]*\.data/data/share/bash-completion/(.*)", r"usr/share/bash-completion/\1"),
    (r"gpumemtrace-[^/]*\.data/data/share/zsh/site-functions/(.*)", r"usr/share/zsh/vendor-completions/\1"),
    (r"gpumemtrace-[^/]*\.dist-info/licenses/LICENSE", r"usr/share/doc/gpumemtrace/copyright"),
    (r"gpumemtrace-[^/]*\.dist-info/licenses/(.*)", r"usr/share/doc/gpumemtrace/\1"),
]
MAINTAINER = "gpumemtrace maintainers <maintainers@gpumemtrace.invalid>"


def control(arch, installed):
    return f"""Package: gpumemtrace
Version: {version()}
Architecture: {arch}
Maintainer: {MAINTAINER}
Installed-Size: {(installed + 1023) // 1024}
Depends: libc6 (>= 2.28)
Section: devel
Priority: optional
Description: {SUMMARY}
 Records every allocation of a CUDA program with its Python and native
 stacks, through a preloaded library and with no change to the program.
 Says what each byte is for: parameters, activations, gradients, optimizer
 state and the rest. A simulated device runs the program without a GPU.
"""


def place(name):
    for pattern, to in PLACES:
        if re.fullmatch(pattern, name):
            return re.sub(pattern, to, name)
    return None


def unpack(wheel, root):
    """Writes the files below root; returns their bytes."""
    total = 0
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            to = place(entry.filename)
            if not to:
                continue
            content = archive.read(entry)
            if to.endswith(".gz"):
                content = gzip.compress(content, mtime=0)
            path = os.path.join(root, to)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, (entry.external_attr >> 16) & 0o777)
            total += len(content)
    return total


def make(wheel):
    arch = ARCHES[re.search(r"manylinux_[0-9_]+_(.*)\.whl$", wheel)[1]]
    path = f"dist/gpumemtrace_{version()}_{arch}.deb"
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        size = unpack(wheel, root)
        os.mkdir(f"{root}/DEBIAN")
        with open(f"{root}/DEBIAN/control", "w") as file:
            file.write(control(arch, size))
        # dpkg-deb takes the time of every file from SOURCE_DATE_EPOCH.
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path + ".new"], check=True,
                       stdout=subprocess.DEVNULL)
    os.replace(path + ".new", path)
    print(f"deb: {path}, {os.path.getsize(path) / 1e6:.1f} MB")


if __name__ == "__main__":
    make(*sys.argv[1:])

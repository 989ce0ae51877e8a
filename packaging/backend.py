# SPDX-License-Identifier: Apache-2.0
"""What pip asks (PEP 517): a wheel built on this machine with its own libraries, and the source archive.

    pip install .                 needs what `make` needs; pip fetches CUDA's headers where neither this tree nor CUDA_HOME has them
    SIMGPU=no pip install .       does without the simulated device, and without these headers
    packaging/backend.py DIST     writes DIST/gpumemtrace-VERSION.tar.gz

Wheels for other machines are made by wheels.sh.
"""

import glob
import gzip
import io
import os
import platform
import subprocess
import sys
import tarfile
import time

import wheel


def has_headers():
    """As the Makefile finds them."""
    places = [f"{link}/lib/python3*/site-packages/nvidia/cu13/include" for link in (".venv", ".cuda")]
    return any(glob.glob(f"{place}/cuda.h") for place in (*places, os.environ.get("CUDA_HOME", "") + "/include"))


def get_requires_for_build_wheel(config_settings=None):
    """The pinned headers of CUDA, unless they are there."""
    if os.environ.get("SIMGPU") == "no" or has_headers():
        return []
    return [line for line in read_lines("tests/requirements/cuda.txt") if not line.startswith("#")]


def read_lines(path):
    with open(path) as file:
        return file.read().splitlines()


def found_headers():
    """Those of the environment that pip made for this build, for make's command line."""
    if has_headers():
        return []
    for place in sys.path:
        if os.path.exists(f"{place}/nvidia/cu13/include/cuda.h"):
            return [f"CUDA_INC={place}/nvidia/cu13/include"]
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Returns the file's name; the output of make goes to standard error, as pip expects."""
    done = subprocess.run(["make", f"-j{os.cpu_count()}", *found_headers(), "all", "manual"], check=False, stdout=sys.stderr)
    if done.returncode:
        sys.exit("gpumemtrace was not built: make says why above")
    os.environ.setdefault("SOURCE_DATE_EPOCH", str(int(time.time())))
    tag = f"py3-none-linux_{platform.machine()}"
    name = f"{wheel.PACKAGE}-{wheel.version()}-{tag}.whl"
    wheel.make(os.path.join(wheel_directory, name), tag, "build", None)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """The files of the commit with PKG-INFO, the same to the byte each time."""
    name = f"{wheel.PACKAGE}-{wheel.version()}"
    files = io.BytesIO(subprocess.run(["git", "archive", "--format=tar", f"--prefix={name}/", "HEAD"],
                                      check=True, stdout=subprocess.PIPE).stdout)
    text = wheel.metadata().encode()
    with tarfile.open(fileobj=files, mode="a", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo(f"{name}/PKG-INFO")
        entry.size, entry.mtime = len(text), int(os.environ.get("SOURCE_DATE_EPOCH", 0))
        archive.addfile(entry, io.BytesIO(text))
    path = os.path.join(sdist_directory, f"{name}.tar.gz")
    with open(path + ".new", "wb") as file:
        file.write(gzip.compress(files.getvalue(), 9, mtime=0))
    os.replace(path + ".new", path)
    return os.path.basename(path)


if __name__ == "__main__":
    build_sdist(sys.argv[1])

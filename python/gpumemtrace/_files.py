# SPDX-License-Identifier: Apache-2.0
"""Where the files of this package lie: in the package itself, or in the build folder of a checkout."""

import glob
import os

_HERE = os.path.dirname(os.path.abspath(__file__))
_BUILD = os.path.join(os.path.dirname(os.path.dirname(_HERE)), "build")


def _file(folder: str, name: str) -> str:
    path, built = os.path.join(_HERE, folder, name), os.path.join(_BUILD, name)
    for there in (path, built):
        if os.path.exists(there):
            return there
    raise FileNotFoundError(f"{path} is missing: install gpumemtrace again from its wheel (pip install --force-reinstall gpumemtrace-*.whl)")


def tool() -> str:
    """The path of the command-line tool, an executable that needs no Python."""
    return _file("bin", "gpumemtrace")


def library() -> str:
    """The path of the library that records, for ``LD_PRELOAD``."""
    return _file("lib", "libgpumemtrace.so")


def core_library() -> str:
    """The path of the library that reads recordings in this process."""
    return _file("lib", "libgpumemtrace_core.so")


def has_card() -> bool:
    """Whether this machine has an NVIDIA GPU (under WSL: a GPU; a Jetson's has names of its own)."""
    return any(map(glob.glob, ("/dev/nvidia[0-9]*", "/dev/dxg", "/dev/nvhost-gpu", "/dev/nvgpu")))

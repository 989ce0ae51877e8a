# SPDX-License-Identifier: Apache-2.0
"""Where the files of this package lie."""

import os

_HERE = os.path.dirname(os.path.abspath(__file__))


def _file(*parts: str) -> str:
    path = os.path.join(_HERE, *parts)
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} is missing: install gpumemtrace again (pip install --force-reinstall gpumemtrace)")
    return path


def tool() -> str:
    """The path of the command-line tool, an executable that needs no Python."""
    return _file("bin", "gpumemtrace")


def library() -> str:
    """The path of the library that records, for ``LD_PRELOAD``."""
    return _file("lib", "libgpumemtrace.so")

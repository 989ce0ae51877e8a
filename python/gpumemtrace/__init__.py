# SPDX-License-Identifier: Apache-2.0
"""gpumemtrace: what a CUDA program's device memory is for, recorded without a change to the program.

This package carries the tool (``gpumemtrace``), the library that records (``libgpumemtrace.so``) and the
simulated device. Nothing here is imported by a recorded program.
"""

from ._files import library, tool

__all__ = ["library", "tool", "__version__"]

from ._version import __version__

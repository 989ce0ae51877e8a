# SPDX-License-Identifier: Apache-2.0
"""``gpumemtrace`` and ``python -m gpumemtrace``: both become the tool, in this process."""

import os
import sys

from ._files import tool


def main() -> None:
    # What `gpumemtrace run train.py` runs it with.
    os.environ.setdefault("GPUMEMTRACE_PYTHON", sys.executable)
    try:
        os.execv(tool(), ["gpumemtrace", *sys.argv[1:]])
    except OSError as error:
        print(f"gpumemtrace: {error}", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()

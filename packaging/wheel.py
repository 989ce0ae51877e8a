# SPDX-License-Identifier: Apache-2.0
"""A wheel from a build folder, the same to the byte each time.

    packaging/wheel.py ARCH BUILD LIBRARIES    writes dist/gpumemtrace-VERSION-py3-none-PLATFORM.whl
    packaging/wheel.py version                 prints the version (format/version.h)
"""

import base64
import glob
import hashlib
import os
import re
import subprocess
import sys
import time
import zipfile

GLIBC = "manylinux_2_28"
SUMMARY = "Records and explains the device memory of CUDA programs"
PACKAGE = "gpumemtrace"
ENTRY_POINTS = """[console_scripts]
gpumemtrace = gpumemtrace.__main__:main
gpumemtrace-mcp = gpumemtrace.mcp:main

[pytest11]
gpumemtrace.pytest_plugin = gpumemtrace.pytest_plugin
"""


def read(path, mode="r"):
    with open(path, mode) as file:
        return file.read()


def version():
    return re.search(r'GMT_TOOL_VERSION "(.*)"', read("format/version.h"))[1]


def metadata():
    return f"""Metadata-Version: 2.4
Name: gpumemtrace
Version: {version()}
Summary: {SUMMARY}
License-Expression: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.9
Provides-Extra: sql
Requires-Dist: duckdb; extra == "sql"
Provides-Extra: s3
Requires-Dist: duckdb; extra == "s3"
Requires-Dist: s3fs; extra == "s3"
Provides-Extra: spark
Requires-Dist: pyspark; extra == "spark"
Requires-Dist: pyarrow; extra == "spark"
Requires-Dist: duckdb; extra == "spark"
Provides-Extra: mcp
Requires-Dist: mcp >=2; extra == "mcp"
Classifier: Development Status :: 4 - Beta
Classifier: Environment :: Console
Classifier: Environment :: GPU :: NVIDIA CUDA
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Software Development :: Debuggers
Description-Content-Type: text/markdown

{read("README.md")}"""


def tag(arch):
    return f"py3-none-{GLIBC}_{arch}"


def wheel_file(tag):
    return f"Wheel-Version: 1.0\nGenerator: gpumemtrace packaging/wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n"


def shell_completion(shell):
    return subprocess.run(["build/gpumemtrace", "--completions", shell], check=True, stdout=subprocess.PIPE).stdout


def contents(tag, build, libraries):
    """(name in the wheel, bytes, executable); without libraries those of the machine are used."""
    info, data = f"{PACKAGE}-{version()}.dist-info", f"{PACKAGE}-{version()}.data/data/share"
    for name in sorted(os.listdir("python/gpumemtrace")):
        if name.endswith((".py", ".pyi", ".typed")):
            yield f"{PACKAGE}/{name}", read(f"python/gpumemtrace/{name}", "rb"), False
    yield f"{PACKAGE}/_version.py", f'# SPDX-License-Identifier: Apache-2.0\n__version__ = "{version()}"\n'.encode(), False
    yield f"{PACKAGE}/bin/gpumemtrace", read(f"{build}/gpumemtrace", "rb"), True
    for name in ("libgpumemtrace.so", "libgpumemtrace_core.so"):
        yield f"{PACKAGE}/lib/{name}", read(f"{build}/{name}", "rb"), True
    if libraries:
        yield f"{PACKAGE}/lib/libunwind.so.8", read(f"{libraries}/lib/libunwind.so.8", "rb"), True
    if os.path.exists(f"{build}/libsimgpu.so"):  # else SIMGPU=no
        yield f"{PACKAGE}/lib/libsimgpu.so", read(f"{build}/libsimgpu.so", "rb"), True
        for path in sorted(glob.glob(f"{build}/simgpu/**/*.so*", recursive=True)):  # links become files: a wheel has none
            yield f"{PACKAGE}/lib/{os.path.relpath(path, build)}", read(path, "rb"), True
    for page in sorted(os.listdir("build/man")):
        yield f"{data}/man/man1/{page}", read(f"build/man/{page}", "rb"), False
    yield f"{data}/bash-completion/completions/gpumemtrace", shell_completion("bash"), False
    yield f"{data}/zsh/site-functions/_gpumemtrace", shell_completion("zsh"), False
    yield f"{info}/METADATA", metadata().encode(), False
    yield f"{info}/WHEEL", wheel_file(tag).encode(), False
    yield f"{info}/entry_points.txt", ENTRY_POINTS.encode(), False
    yield f"{info}/licenses/LICENSE", read("LICENSE", "rb"), False
    for name in sorted(os.listdir(f"{libraries}/licences")) if libraries else ():
        yield f"{info}/licenses/{name}", read(f"{libraries}/licences/{name}", "rb"), False


def digest(content):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def write(archive, name, content, executable):
    entry = zipfile.ZipInfo(name, time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6])
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    entry.create_system = 3
    archive.writestr(entry, content, compresslevel=9)


def make(path, tag, build, libraries):
    record = f"{PACKAGE}-{version()}.dist-info/RECORD"
    rows = []
    with zipfile.ZipFile(path + ".new", "w") as archive:
        for name, content, executable in contents(tag, build, libraries):
            write(archive, name, content, executable)
            rows.append(f"{name},{digest(content)},{len(content)}\n")
        write(archive, record, "".join(rows) + f"{record},,\n", False)
    os.replace(path + ".new", path)
    print(f"wheels: {path}, {os.path.getsize(path) / 1e6:.1f} MB", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:] == ["version"]:
        print(version())
    else:
        arch, *folders = sys.argv[1:]
        make(f"dist/{PACKAGE}-{version()}-{tag(arch)}.whl", tag(arch), *folders)

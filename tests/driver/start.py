# SPDX-License-Identifier: Apache-2.0
"""Starts one of NVIDIA's libraries, or a Python package that uses them, far enough that it looks up the driver's functions.
On the command line: what (a key of HOW), and the library's path or the folder of the package. Prints the code it got."""
import ctypes
import sys


def call(library, name, *args):
    return getattr(ctypes.CDLL(library), name)(*args)


def out():
    return ctypes.byref(ctypes.c_void_p())


def cuda_python(_):
    from cuda.bindings import driver, runtime
    return int(driver.cuInit(0)[0]), int(runtime.cudaMalloc(1)[0])


def cupy(_):
    import cupy
    try:
        return cupy.cuda.runtime.malloc(1)
    except cupy.cuda.runtime.CUDARuntimeError as e:
        return e.status


HOW = {
    "cudart": lambda path: call(path, "cudaMalloc", out(), ctypes.c_size_t(1)),
    "cublas": lambda path: call(path, "cublasCreate_v2", out()),
    "cublasLt": lambda path: call(path, "cublasLtCreate", out()),
    "cudnn": lambda path: call(path, "cudnnCreate", out()),
    "nccl": lambda path: call(path, "ncclCommInitAll", out(), 1, None),
    "cufft": lambda path: call(path, "cufftCreate", out()) or call(path, "cufftPlan1d", out(), 64, 0x29, 1),
    "cusparse": lambda path: call(path, "cusparseCreate", out()),
    "cusolver": lambda path: call(path, "cusolverDnCreate", out()),
    "curand": lambda path: call(path, "curandCreateGenerator", out(), 100),
    "cupti": lambda path: call(path, "cuptiSubscribe", out(), ctypes.CFUNCTYPE(None)(), None),
    "cuda-python": cuda_python,
    "cupy": cupy,
}

if __name__ == "__main__":
    what, path = sys.argv[1:3]
    if what in ("cuda-python", "cupy"):
        sys.path[:0] = [path]
    print(HOW[what](path))

# SPDX-License-Identifier: Apache-2.0
"""The library carries what it needs of CUDA's binary interface itself. Here NVIDIA's headers judge it: those of CUDA
11, 12 and 13, the pinned ones and the newest that a PyTorch brings."""
import glob
import os
import re
import subprocess

import pytest
import toy

PLACES = {
    "11": [".cuda-headers/headers-cu11/nvidia/cuda_runtime/include", ".cuda-headers/headers-cu11/nvidia/cuda_nvcc/include"],
    "12": [".cuda-headers/headers-cu12/nvidia/cuda_runtime/include", ".cuda-headers/headers-cu12/nvidia/cuda_nvcc/include"],
    "13": [".venv/lib/python3*/site-packages/nvidia/cu13/include"],
    "newest": [".venv-newest/lib/python3*/site-packages/nvidia/cu13/include",
               ".venv/lib/python3*/site-packages/nvidia/cu13/include"],
}


def rows(*kinds):
    """(kind of row, its plain columns, its parameters) of hooks.def; of CUDA's functions if no kind is named."""
    kinds = kinds or ("RUNTIME", "DRIVER", "KNOWN", "USES_RUNTIME", "USES_DRIVER")
    with open(os.path.join(toy.ROOT, "shim/hooks.def")) as f:
        text = f.read()
    for kind, plain, rest in re.findall(r"^(RUNTIME|DRIVER|KNOWN|USES_RUNTIME|USES_DRIVER|CUDNN)\(([^()]*)(.*)$", text, re.M):
        proto = re.match(r"\(([^()]*)\)", rest)
        if kind in kinds:
            yield kind, [c.strip() for c in plain.split(",") if c.strip()], proto.group(1) if proto else None


def includes(version):
    found = [p for pattern in PLACES[version] for p in glob.glob(os.path.join(toy.ROOT, pattern))]
    if len(found) < len(PLACES[version]) or not os.path.exists(os.path.join(found[0], "cuda.h")):
        pytest.skip("no headers of CUDA %s; `scripts/setup.sh headers`" % version)
    return found


def text_of(version, name):
    for folder in includes(version):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path, errors="replace") as f:
                return f.read()
    pytest.skip("no %s of CUDA %s" % (name, version))


def compiles(version, source, folder):
    path = folder / "check.cpp"
    path.write_text(source)
    flags = [f for i in includes(version) for f in ("-isystem", i)]
    done = subprocess.run(["g++", "-std=c++17", "-fsyntax-only", "-I", toy.ROOT, *flags, str(path)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


FRAME = """
#define __CUDA_API_VERSION_INTERNAL
#include <stddef.h>
#include <stdint.h>
#include <type_traits>
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
namespace ours {
#include "shim/cuda/cuda_abi.h"
}
template <class A, class B> constexpr bool like()
{
	if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
		using P = std::remove_pointer_t<A>;
		using Q = std::remove_pointer_t<B>;
		if constexpr (std::is_scalar_v<P> && std::is_scalar_v<Q>)
			return sizeof(P) == sizeof(Q);
		return true;
	} else if constexpr (std::is_class_v<A> && std::is_class_v<B>) {
		return sizeof(A) == sizeof(B) && alignof(A) == alignof(B);
	} else {
		return (std::is_integral_v<A> || std::is_enum_v<A>) && (std::is_integral_v<B> || std::is_enum_v<B>) &&
			sizeof(A) == sizeof(B);
	}
}
template <class A, class B> struct same : std::false_type {};
template <class R, class... A, class S, class... B> struct same<R (*)(A...), S (*)(B...)> {
	static constexpr bool get()
	{
		if constexpr (sizeof...(A) != sizeof...(B))
			return false;
		else
			return like<R, S>() && (like<A, B>() && ...);
	}
	static constexpr bool value = get();
};
"""


def declared(text, name):
    return re.search(r"(CUDARTAPI|CUDAAPI)\s+%s\(" % name, text)


PER_THREAD = r"(_ptsz|_ptds)?"  # forms for the per-thread default stream: of calls that take a stream, and of those that do not


def pfn(base, version, per_thread):
    """A pattern for the name of the type."""
    return "PFN_%s_v%s%s" % (base, version, "_pts?[zd]s?" if per_thread == "1" else "")


def version_of(symbol, types):
    """The driver's exported names: the first form has the plain name, the second _v2 and so on. What got a second form before there were
    per-thread streams has one form for them, with that name."""
    plain, suffix = re.fullmatch(r"(\w+?)" + PER_THREAD, symbol).groups()
    base, _, form = plain.partition("_v")
    found = sorted({int(n) for n in re.findall(r"\*PFN_%s_v(\d+)%s\)" % (base, suffix or ""), types)})
    return base, found[min(int(form or 1), len(found)) - 1] if found and (suffix or len(found) >= int(form or 1)) else None


@pytest.mark.parametrize("version", PLACES)
def test_parameters(version, tmp_path):
    runtime, driver, types = (text_of(version, n) for n in ("cuda_runtime_api.h", "cuda.h", "cudaTypedefs.h"))
    out, seen = [FRAME], 0
    for kind, plain, proto in rows():
        name = plain[0]
        theirs = []
        if kind in ("RUNTIME", "USES_RUNTIME"):
            plain_name = name.removesuffix("_ptsz")
            if declared(runtime, plain_name):
                theirs = ["decltype(&::%s)" % plain_name]
            if name.startswith("cudaGetDriverEntryPoint") and version == "11":
                proto = proto.replace(", void *status", "")  # a fourth since 12: it is only handed on
        elif kind == "DRIVER":
            if re.search(r"\*%s\)" % pfn(*plain[1:4]), types):
                theirs.append(re.search(r"\*(%s)\)" % pfn(*plain[1:4]), types)[1])
                assert version_of(name, types) == (plain[1], int(plain[2]))
        elif kind == "USES_DRIVER":
            base, number = version_of(name, types)
            theirs = [pfn(base, number, "0")] if number else []
        if theirs:
            out.append("namespace ours { int %s(%s); }" % (name, proto))
        out += ["static_assert(same<decltype(&ours::%s), %s>::value, \"%s\");" % (name, t, name) for t in theirs]
        seen += len(theirs)
    assert seen > 90
    compiles(version, "\n".join(out), tmp_path)


def test_every_row_is_in_some_header():
    texts = [text_of(v, n) for v in ("12", "13") for n in ("cuda_runtime_api.h", "cuda.h", "cudaTypedefs.h")]
    for kind, plain, _ in rows():
        wanted = [r"\*%s\)" % pfn(*plain[-3:])] if kind in ("DRIVER", "KNOWN") else [
            r"API\s+%s\(" % plain[0].removesuffix("_ptsz").removesuffix("_v2")]
        assert any(re.search(w, t) for w in wanted for t in texts), plain


@pytest.mark.parametrize("version", PLACES)
def test_every_form_of_a_hooked_function_is_known(version):
    """A form (CUDA version, default stream) that the table lacks would not be recorded."""
    types = text_of(version, "cudaTypedefs.h")
    known = {tuple(p[-3:]) for k, p, _ in rows() if k in ("DRIVER", "KNOWN")}
    for base in {k[0] for k in known}:
        for number, ptsz in re.findall(r"\*PFN_%s_v(\d+)%s\)" % (base, PER_THREAD), types):
            assert (base, number, "1" if ptsz else "0") in known, (base, number, ptsz)


def test_the_newest_version_that_was_compared():
    with open(os.path.join(toy.ROOT, "shim/cuda/cuda_abi.h")) as f:
        newest = int(re.search(r"CUDA_ABI_NEWEST\s+(\d+)", f.read()).group(1))
    assert int(re.search(r"#define CUDA_VERSION (\d+)", text_of("newest", "cuda.h")).group(1)) <= newest


def member(ours, theirs, *pairs):
    return ["static_assert(offsetof(ours::%s, %s) == offsetof(%s, %s), \"\");" % (ours, a, theirs, b) for a, b in pairs]


@pytest.mark.parametrize("version", PLACES)
def test_structs_and_numbers(version, tmp_path):
    checks = member("cuda_pitched", "::cudaPitchedPtr", ("ptr", "ptr"), ("pitch", "pitch"))
    checks += member("cuda_extent", "::cudaExtent", ("width", "width"), ("height", "height"), ("depth", "depth"))
    checks += member("cuda_channels", "::cudaChannelFormatDesc", ("x", "x"), ("w", "w"), ("format", "f"))
    for theirs in ("::cudaMemPoolProps", "::CUmemPoolProps"):
        checks += member("cuda_pool_props", theirs, ("location.type", "location.type"), ("location.id", "location.id"))
    checks += member("cuda_phys_props", "::CUmemAllocationProp", ("location.type", "location.type"),
                     ("location.id", "location.id"))
    checks += member("cuda_array", "::CUDA_ARRAY_DESCRIPTOR_v2", ("width", "Width"), ("height", "Height"),
                     ("format", "Format"), ("channels", "NumChannels"))
    checks += member("cuda_array3d", "::CUDA_ARRAY3D_DESCRIPTOR_v2", ("width", "Width"), ("depth", "Depth"),
                     ("format", "Format"), ("channels", "NumChannels"), ("flags", "Flags"))
    for side in ("src", "dst"):
        ours = {"src": "source", "dst": "target"}[side]
        pairs = [("x", "XInBytes"), ("y", "Y"), ("type", "MemoryType"), ("host", "Host"), ("device", "Device"), ("array", "Array"), ("pitch", "Pitch")]
        checks += member("cuda_copy2d", "::CUDA_MEMCPY2D_v2", *((ours + "." + a, side + b) for a, b in pairs))
        for theirs in ("::CUDA_MEMCPY3D_v2", "::CUDA_MEMCPY3D_PEER"):
            checks += member("cuda_copy3d", theirs, *((ours + "." + a, side + b) for a, b in [*pairs, ("z", "Z"), ("height", "Height")]))
    checks += member("cuda_copy2d", "::CUDA_MEMCPY2D_v2", ("width", "WidthInBytes"), ("height", "Height"))
    checks += member("cuda_copy3d", "::CUDA_MEMCPY3D_v2", ("width", "WidthInBytes"), ("height", "Height"), ("depth", "Depth"))
    checks += member("cuda_set_node", "::CUDA_MEMSET_NODE_PARAMS", ("address", "dst"), ("pitch", "pitch"), ("width", "width"), ("height", "height"))
    if version != "11":  # none of these before CUDA 11.8
        checks += member("cuda_launch", "::CUlaunchConfig", ("grid", "gridDimX"), ("stream", "hStream"), ("count", "numAttrs"))
        checks += member("cuda_kernel_node", "::CUDA_KERNEL_NODE_PARAMS_v2", ("function", "func"), ("grid", "gridDimX"), ("params", "kernelParams"),
                         ("extra", "extra"), ("kernel", "kern"), ("context", "ctx"))
    checks += ["static_assert(%s == %s, \"\");" % pair for pair in {
        "sizeof(ours::cuda_extent)": "sizeof(::cudaExtent)",
        "sizeof(ours::cuda_ipc_handle)": "sizeof(::cudaIpcMemHandle_t)",
        "sizeof(ours::cuda_ipc_handle) + 0": "sizeof(::CUipcMemHandle)",
        "CUDA_NOT_INITIALIZED": "(int)::cudaErrorInitializationError",
        "CUDA_NOT_INITIALIZED + 0": "(int)::CUDA_ERROR_NOT_INITIALIZED",
        "(int)ours::CUDA_LOCATION_DEVICE": "(int)::CU_MEM_LOCATION_TYPE_DEVICE",
        "(int)ours::CUDA_LOCATION_DEVICE + 0": "(int)::cudaMemLocationTypeDevice",
        "(int)ours::CUDA_SM_COUNT": "(int)::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
        "(int)ours::CUDA_CAPABILITY_MAJOR": "(int)::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
        "(int)ours::CUDA_CAPABILITY_MINOR": "(int)::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
        "sizeof(ours::cuda_copy2d)": "sizeof(::CUDA_MEMCPY2D_v2)",
        "sizeof(ours::cuda_copy3d)": "sizeof(::CUDA_MEMCPY3D_v2)",
        "sizeof(ours::cuda_copy3d) + 0": "sizeof(::CUDA_MEMCPY3D_PEER)",
        "sizeof(ours::cuda_set_node)": "sizeof(::CUDA_MEMSET_NODE_PARAMS)",
        "CUDA_INVALID_VALUE": "(int)::CUDA_ERROR_INVALID_VALUE",
        "(int)ours::CUDA_MEMORY_HOST": "(int)::CU_MEMORYTYPE_HOST", "(int)ours::CUDA_MEMORY_ARRAY": "(int)::CU_MEMORYTYPE_ARRAY",
        "(int)ours::CUDA_NODE_KERNEL": "(int)::CU_GRAPH_NODE_TYPE_KERNEL", "(int)ours::CUDA_NODE_COPY": "(int)::CU_GRAPH_NODE_TYPE_MEMCPY",
        "(int)ours::CUDA_NODE_SET": "(int)::CU_GRAPH_NODE_TYPE_MEMSET", "(int)ours::CUDA_NODE_GRAPH": "(int)::CU_GRAPH_NODE_TYPE_GRAPH",
        "(int)ours::CUDA_CAPTURE_ACTIVE": "(int)::CU_STREAM_CAPTURE_STATUS_ACTIVE",
        "(int)ours::CUDA_CAPTURE_RELAXED": "(int)::CU_STREAM_CAPTURE_MODE_RELAXED",
        "(int)::CU_AD_FORMAT_UNSIGNED_INT8": "0x01", "(int)::CU_AD_FORMAT_SIGNED_INT8": "0x08",
        "(int)::CU_AD_FORMAT_UNSIGNED_INT16": "0x02", "(int)::CU_AD_FORMAT_SIGNED_INT16": "0x09",
        "(int)::CU_AD_FORMAT_HALF": "0x10", "(int)::CU_AD_FORMAT_UNSIGNED_INT32": "0x03",
        "(int)::CU_AD_FORMAT_SIGNED_INT32": "0x0a", "(int)::CU_AD_FORMAT_FLOAT": "0x20",
    }.items()]
    compiles(version, FRAME + "\n".join(checks), tmp_path)


# ---- cuDNN ----

def test_cudnn(tmp_path):
    theirs = glob.glob(os.path.join(toy.ROOT, ".venv/lib/python3*/site-packages/nvidia/cudnn/include"))
    if not theirs:
        pytest.skip("no headers of cuDNN")
    with open(os.path.join(toy.ROOT, "shim/torch/torch_workspace.c")) as f:
        numbers = dict(re.findall(r"^\t(\w+) = (\d+),", f.read(), re.M))
    checks = ["#include \"%s/cudnn.h\"" % theirs[0], FRAME]
    for _, (name,), proto in rows("CUDNN"):
        checks.append("namespace ours { int %s(%s); }" % (name, proto))
        checks.append("static_assert(same<decltype(&ours::%s), decltype(&::%s)>::value, \"%s\");" % (name, name, name))
    names = {"PLAN_WORKSPACE": "CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE", "PACK_WORKSPACE": "CUDNN_ATTR_VARIANT_PACK_WORKSPACE",
             "OF_PLANS": "CUDNN_ATTR_EXECUTION_PLAN_HANDLE", "TYPE_INT64": "CUDNN_TYPE_INT64", "TYPE_POINTER": "CUDNN_TYPE_VOID_PTR"}
    checks += ["static_assert(%s == (int)::%s, \"\");" % (numbers[ours], name) for ours, name in names.items()]
    assert len(checks) == 13
    compiles("13", "\n".join(checks), tmp_path)


# ---- CUPTI ----

def calls():
    with open(os.path.join(toy.ROOT, "cupti/callbacks.def")) as f:
        for line in re.findall(r"^CALL\((.*)\)$", f.read(), re.M):
            yield re.split(r",\s*(?![^(]*\))", line)


@pytest.mark.parametrize("version", ["13", "newest"])
def test_cupti(version, tmp_path):
    text_of(version, "cupti.h")
    checks = ["#include <cupti.h>", "#include <stddef.h>",
              "namespace ours {", "#include \"cupti/cupti_abi.h\"", "}"]
    checks += member("cupti_data", "::CUpti_CallbackData", ("site", "callbackSite"), ("function", "functionName"),
                     ("params", "functionParams"), ("result", "functionReturnValue"), ("context", "context"),
                     ("correlation", "correlationData"))
    checks += member("cupti_subscriber", "::CUpti_SubscriberParams", ("bytes", "structSize"), ("name", "subscriberName"),
                     ("old_name", "oldSubscriberName"), ("old_name_bytes", "oldSubscriberSize"))
    if version == "newest":
        checks += member("cupti_subscriber", "::CUpti_SubscriberParams", ("allow_others", "allowMultipleSubscribers"))
        checks.append("static_assert(sizeof(ours::cupti_subscriber) == CUpti_SubscriberParams_STRUCT_SIZE, \"\");")
    checks += ["static_assert((int)ours::%s == (int)::%s, \"\");" % pair for pair in (
        ("CUPTI_DOMAIN_DRIVER", "CUPTI_CB_DOMAIN_DRIVER_API"), ("CUPTI_DOMAIN_RUNTIME", "CUPTI_CB_DOMAIN_RUNTIME_API"),
        ("CUPTI_SITE_ENTER", "CUPTI_API_ENTER"), ("CUPTI_SITE_EXIT", "CUPTI_API_EXIT"))]
    for domain, number, name, *_ in calls():
        checks.append("static_assert((int)CUPTI_%s_TRACE_CBID_%s == %s, \"%s\");" % (domain, name, number, name))
    compiles(version, "\n".join(checks), tmp_path)


def words(version, domain, name):
    """[(type, name)] of the members of CUPTI's struct of parameters; all of them are one word or less."""
    header = "generated_cuda_runtime_api_meta.h" if domain == "RUNTIME" else "generated_cuda_meta.h"
    body = re.search(r"struct %s_params_st \{(.*?)\}" % name, text_of(version, header), re.S).group(1)
    return [re.match(r"(.*?)(\w+)$", line.strip()).groups() for line in body.split(";") if line.strip()]


@pytest.mark.parametrize("version", ["13", "newest"])
def test_cupti_parameters(version):
    """The words of callbacks.def, by the types and names that CUPTI's headers give them."""
    for domain, _, name, kind, _, address, size, stream, handle, offset in calls():
        at = words(version, domain, name)
        word = int(re.search(r"\d+", address).group())
        assert address.startswith("OUT") == (kind not in ("MAP", "MEM_FREE", "VA_RELEASE", "PHYS_RELEASE", "UNMAP")
                                             and "Register" not in name), name
        assert at[word][0].count("*") == (2 if "void" in at[word][0] else 1) if address.startswith("OUT") else True
        assert re.search("ptr|handle|pp|pHost|^p$", at[word][1], re.I), (name, at[word])
        numbers = re.findall(r"\d+", size)
        if size.startswith("ROWS"):
            assert "itch" in at[int(numbers[0])][1] and "*" in at[int(numbers[0])][0], name
            assert at[int(numbers[0]) + 1][1].lower().startswith("width") and at[int(numbers[1])][1].lower() == "height"
        elif numbers:
            assert "size_t" in at[int(numbers[0])][0] and "size" in at[int(numbers[0])][1].lower(), name
        if stream != "NONE":
            assert re.search("stream", at[int(stream)][0], re.I), name
        if handle != "NONE":
            assert at[int(handle)][1] == "handle" and at[int(offset)][1] == "offset"

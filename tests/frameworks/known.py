# SPDX-License-Identifier: Apache-2.0
"""Who holds device memory in a running program, found through the garbage collector: modules, optimizers, caches,
and what frameworks keep outside of both. Nothing here asks the tool, and no program is edited."""
import gc

import torch

import truth

COPIES = ("optimizer_state", "parameters", "buffers")  # averages of weights: model or optimizer is a matter of intent
AVERAGES = ("AveragedModel", "ModelEma", "ModelEmaV2", "ModelEmaV3", "EMAModel")
# Classes of frameworks, by name: class of memory, attributes that hold it, other names that are right as well.
KEPT = {
    "FSDPParam": [("parameters", ("all_gather_outputs", "_sharded_param_data", "_unsharded_inner_tensors", "_unsharded_param"), ()),
                  ("gradients", ("unsharded_accumulated_grad",), ())],
    "FlatParamHandle": [("parameters", ("flat_param",), ())],
    "AllGatherResult": [("communication", ("all_gather_output",), ())],
    "AllGatherState": [("communication", ("all_gather_result",), ())],
    "ReduceScatterState": [("communication", ("reduce_scatter_input",), ())],
    "DeepSpeedZeroOptimizer": [
        ("parameters", ("bit16_groups", "bit16_groups_flat", "parallel_partitioned_bit16_groups"), ()),
        ("optimizer_state", ("single_partition_of_fp32_groups",), ("parameters",)),
        ("gradients", ("averaged_gradients", "all_grad_tensors", "previous_reduced_grads"), ()),
        ("gradients", ("temp_grad_buffer_for_gpu_offload", "temp_grad_gpu_buffer"), ("communication",)),
        ("communication", ("extra_large_param_to_reduce",), ("gradients",))],
    "DeepSpeedZeroOptimizer_Stage3": [
        ("parameters", ("fp16_groups", "fp16_partitioned_groups", "fp16_partitioned_groups_flat", "persistent_parameters"), ()),
        ("optimizer_state", ("fp32_partitioned_groups_flat",), ("parameters",)),
        ("gradients", ("grad_partitions_flat_buffer", "averaged_gradients"), ())],
    "IPGBucket": [("communication", ("buffer",), ("gradients",))],
    "IPGBucketZ3": [("communication", ("buffer",), ("gradients",))],
    "EMAModel": [("optimizer_state", ("shadow_params", "temp_stored_params"), COPIES)],
    "GradScaler": [("optimizer_state", ("_scale", "_growth_tracker"), ("buffers",)),
                   ("optimizer_state", ("_per_optimizer_states",), ("optimizer_temporaries",))],
    "QuantState": [("parameters", ("absmax", "code", "offset", "state2"), ("buffers",))],
    "MatmulLtState": [("parameters", ("CB", "SCB"), ("buffers",))],
    "Intermediates": [("kv_cache", ("cached_kv",), ("activations", "forward_temporaries"))],  # x-transformers, filled while it trains too
}
KINDS = {
    "tensor": lambda kind: issubclass(kind, torch.Tensor),
    "module": lambda kind: issubclass(kind, torch.nn.Module),
    "framework": lambda kind: kind.__name__ in KEPT,
    "optimizer": lambda kind: issubclass(kind, torch.optim.Optimizer),
    "cache": lambda kind: any(base.__name__ == "Cache" and base.__module__.startswith("transformers.") for base in kind.__mro__),
}
FLAT = {"gradients": ("_saved_grad_shard", "_saved_grad", "_post_backward_hook_state")}
BESIDE = ("ds_tensor", "ds_secondary_tensor", "_local_shard", "_full_param_padded", "_mp_shard", "_full_prec_full_param_padded", "quant_state",
          "CB", "SCB")
caches_used = set()  # caches that a pass got from outside: what they hold is kept from one pass to the next


def objects():
    """Everything that is alive and may hold memory, by what it is: one walk, a type is judged once."""
    kinds, found = {}, {"module": [], "optimizer": [], "tensor": [], "cache": [], "framework": []}
    for thing in gc.get_objects():
        kind = type(thing)
        if kind not in kinds:
            kinds[kind] = next((name for name, is_one in KINDS.items() if is_one(kind)), None)
        if kinds[kind]:
            found[kinds[kind]].append(thing)
    return found


def inside_average(modules):
    """Modules that are, or belong to, an average of another."""
    found = set()
    for m in modules:
        if type(m).__name__ in AVERAGES:
            found.update(m.modules())
    return found


def of_modules(modules):
    averages = inside_average(modules)
    params, buffers, copies = [], [], []
    for m in modules:
        (copies if m in averages else params).extend(p for p in m._parameters.values() if p is not None)
        (copies if m in averages else buffers).extend(b for b in m._buffers.values() if b is not None)
    return params, buffers, copies


def gradients(params):
    found = [p.grad for p in params] + [p.main_grad for p in params if isinstance(getattr(p, "main_grad", None), torch.Tensor)]
    for p in params:  # FSDP1 keeps the shard's gradient beside the flat parameter
        found += [getattr(p, name, None) for name in FLAT["gradients"]]
    return found


def beside_weights(params):
    """What frameworks hang on a parameter: shards, full-precision and gathered forms."""
    for p in params:
        held = getattr(p, "__dict__", {})
        yield from truth.tensors_in([held.get(name) for name in BESIDE], 2)


def kept_by_frameworks(things):
    for thing in things:
        for cls, names, or_else in KEPT.get(type(thing).__name__, ()):
            for name in names:
                value = getattr(thing, "__dict__", {}).get(name, None)
                if value is None:
                    value = getattr(thing, name, None) if name in getattr(type(thing), "_fields", ()) else None
                if value is not None:
                    yield cls, type(thing).__name__ + "." + name, value, or_else


def in_caches(caches):
    """Keys and values of the transformers library's caches; whether a pass was given the cache."""
    for cache in caches:
        parts = [getattr(cache, n, None) for n in ("self_attention_cache", "cross_attention_cache")]
        for layer in [one for part in [cache, *parts] if part is not None for one in getattr(part, "layers", ())]:
            yield id(cache) in caches_used, list(truth.tensors_in(vars(layer)))


def is_leaf_with_grad(t):
    """Of a view whose base was changed in place nobody may ask."""
    try:
        return t.is_leaf and t.grad is not None
    except RuntimeError:
        return False


def declare():
    """Called at each mark, in this order; the first that names a storage says why."""
    alive = objects()
    params, buffers, copies = of_modules(alive["module"])
    params += [handle.flat_param for handle in alive["framework"] if type(handle).__name__ == "FlatParamHandle"]
    optimizers = alive["optimizer"]
    stepped = [p for o in optimizers for g in getattr(o, "param_groups", ()) for p in g["params"]]
    loose = [p for p in alive["tensor"] if is_leaf_with_grad(p)]
    own = {id(p) for p in params}
    mine = own | {id(p) for p in stepped}
    yield "parameters", "parameter", params, ()
    yield "parameters", "beside a parameter", list(beside_weights(params)), ("buffers",)
    yield "optimizer_state", "average of the weights", copies, COPIES
    for cls, why, value, or_else in kept_by_frameworks(alive["framework"]):
        yield cls, why, value, or_else
    yield "optimizer_state", "the optimizer's own copy of weights", stepped, ("parameters",)
    yield "optimizer_state", "optimizer.state", [list(o.state.values()) for o in optimizers if hasattr(o, "state")], ()
    yield "gradients", "p.grad", gradients(params), ()
    yield "gradients", "gradient of an optimizer's own copy", gradients([p for p in stepped if id(p) not in own]), ("optimizer_temporaries",)
    yield "gradients", "gradient of a leaf", [p.grad for p in loose if id(p) not in mine], ("backward_temporaries",)
    yield "buffers", "buffer", buffers, ()
    for used, tensors in in_caches(alive["cache"]):
        yield "kv_cache", "key-value cache", tensors, () if used else ("forward_temporaries",)

# SPDX-License-Identifier: Apache-2.0
# Runs in the program that `gpumemtrace attach` looks into, in a thread of its own and with names of its own: writes
# PyTorch's snapshot to FOLDER, with what the program's modules and optimizers hold. Imports nothing but the standard
# library; once FOLDER is gone nobody waits any more, and it ends. Whatever fails, the program does not notice.


def attach(folder, seconds, entries):
    import gc
    import opcode
    import os
    import pickle
    import signal
    import sys
    import threading
    import time
    import weakref

    torch = sys.modules.get("torch")
    parameter, gradient, state, buffer, cached = 1, 2, 3, 4, 5  # enum gmt_held

    def write(name, data):
        path = os.path.join(folder, name)
        with open(os.open(path + ".part", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data) if isinstance(data, bytes) else pickle.dump(data, file, 4)
        os.rename(path + ".part", path)

    def obstacle():
        if not getattr(sys, "_is_gil_enabled", lambda: True)():  # objects() could not keep the other threads waiting
            return "its Python runs without the interpreter's lock (free-threaded), which attach needs"
        if torch is None or not hasattr(torch, "cuda"):
            return "it has not imported torch"
        if not torch.cuda.is_initialized():
            return "its PyTorch has not used a CUDA device yet"
        if not hasattr(torch._C, "_cuda_isHistoryEnabled"):
            return "its PyTorch (%s) is older than 2.1" % torch.__version__
        if torch.cuda.memory.get_allocator_backend() != "native":
            return "its PyTorch uses the driver's allocator (cudaMallocAsync), which has no snapshots"
        return None

    def kind_of(type):
        if issubclass(type, (torch.nn.Module, torch.optim.Optimizer)):
            return "owner"
        if issubclass(type, torch.Tensor):
            return "tensor"
        return "cache" if "cache" in type.__name__.lower() and type.__dictoffset__ else ""

    # Keys and values of attention, by the name that holds them.
    def is_cached(name):
        words = name.lower().replace("past", "cache").split("_")
        return any(w in ("k", "v", "kv", "key", "value", "keys", "values") for w in words) and not {"cos", "sin", "mask"} & set(words)

    # Whether another thread is in the middle of `p.grad = None`: PyTorch 2.11 gives up the lock there, with a gradient that is
    # half gone, and who asks for it then frees it a second time.
    def lets_go():
        frames = [f for thread, f in sys._current_frames().items() if thread != threading.get_ident()]
        return any(opcode.opname[f.f_code.co_code[f.f_lasti]] in ("STORE_ATTR", "DELETE_ATTR") for f in frames if f.f_lasti >= 0)

    # While tensors are looked at, no other thread of the interpreter should run: what the program lets go of would live on.
    # Of two that look at once the second waits, or it would take the interval of the first for the program's.
    def alone(look):
        ours = 9.999871
        interval = sys.getswitchinterval()
        for _ in range(200):
            if abs(interval - ours) > 1e-6:
                break
            time.sleep(0.01)
            interval = sys.getswitchinterval()
        sys.setswitchinterval(ours)
        try:
            time.sleep(0.01)  # who waits from now on waits that long
            for _ in range(200):
                if not lets_go():
                    return look()
                time.sleep(0.002)
            raise RuntimeError("the program is always in the middle of letting a tensor go")
        finally:
            sys.setswitchinterval(interval)

    # Engines put all that they have made away from the collector (gc.freeze), which does not list it then. Of that, what running
    # threads, handlers of signals and the script lead to is found; long containers are queues, not models.
    def reached():
        apart, containers = (type(sys), type, type(alone), type(len)), (dict, list, tuple, set)
        new, found, seen = [vars(t) for t in threading.enumerate()] + [vars(sys.modules["__main__"])], [], set()
        new += [signal.getsignal(number) for number in signal.valid_signals()]
        while new and len(found) < 300000:
            new = {id(o): o for o in gc.get_referents(*new) if gc.is_tracked(o) and id(o) not in seen}
            seen.update(new)
            new = [o for o in new.values() if not issubclass(type(o), apart) and not (type(o) in containers and len(o) > 2000)]
            found += new
        return found

    # What is no module and no optimizer is known by a weak reference only.
    def objects():
        found, kinds = {"owner": [], "tensor": [], "cache": []}, {}
        with torch._C.DisableTorchFunctionSubclass():
            for o in gc.get_objects() + (reached() if gc.get_freeze_count() else []):
                kind = kinds.get(type(o))
                if kind is None:
                    kind = kinds[type(o)] = kind_of(type(o))
                if kind == "owner":
                    found[kind].append(o)
                elif kind == "cache" or kind and o.is_cuda and o.requires_grad and not o._is_view() and o.is_leaf:
                    try:
                        found[kind].append(weakref.ref(o))
                    except TypeError:  # a class that allows none
                        pass
        return found

    def held(found):
        rows, seen = [], set()

        def add(tensor, kind, name):
            tensor = getattr(tensor, "_local_tensor", tensor)
            if isinstance(tensor, torch.Tensor) and tensor.is_cuda:
                storage = tensor.untyped_storage()
                if storage.nbytes():
                    rows.append((tensor.device.index, storage.data_ptr(), storage.nbytes(), kind, name))

        def add_parameter(tensor, name):
            add(tensor, parameter, name)
            if isinstance(tensor, torch.Tensor) and tensor.is_leaf:
                add(tensor.grad, gradient, name + ".grad")

        def items(thing, attribute):
            return list((thing.__dict__.get(attribute) or {}).items())

        def of_module(module, path):
            if id(module) in seen:
                return
            seen.add(id(module))
            for key, tensor in items(module, "_parameters"):
                add_parameter(tensor, "%s.%s" % (path, key))
            for key, tensor in items(module, "_buffers"):
                add(tensor, buffer, "%s.%s" % (path, key))
            for key, child in items(module, "_modules"):
                if child is not None:
                    of_module(child, "%s.%s" % (path, key))

        def of_optimizer(optimizer, path):
            for group in list(optimizer.__dict__.get("param_groups") or []):
                for tensor in list(group["params"]):
                    add_parameter(tensor, path + ".params")
            for _, values in items(optimizer, "state"):
                for key, tensor in list(values.items()) if isinstance(values, dict) else []:
                    add(tensor, state, "%s.%s" % (path, key))

        # In an object named so, in lists and objects that it holds, or in a module: what keeps keys and values.
        def of_cache(thing, path, depth):
            for key, value in list(thing.__dict__.items()):
                name = "%s.%s" % (path, key)
                for one in list(value) if isinstance(value, (list, tuple)) else list(value.values()) if isinstance(value, dict) else [value]:
                    if isinstance(one, torch.Tensor):
                        if is_cached(str(key)):
                            add(one, cached, name)
                    elif depth and hasattr(one, "__dict__") and not isinstance(one, (type, torch.nn.Module)) and not callable(one):
                        of_cache(one, name, depth - 1)

        modules = [o for o in found["owner"] if isinstance(o, torch.nn.Module)]
        children = {id(child) for m in modules for _, child in items(m, "_modules")}
        with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
            for module in sorted(modules, key=lambda m: id(m) in children):  # from the outermost in
                of_module(module, type(module).__name__)
            for module in modules:
                if any("cache" in key for key in module.__dict__):
                    of_cache(module, type(module).__name__, 0)
            for optimizer in found["owner"]:
                if isinstance(optimizer, torch.optim.Optimizer):
                    of_optimizer(optimizer, type(optimizer).__name__)
            named, first = {row[:2] for row in rows}, len(rows)
            for tensor in (ref() for ref in found["tensor"]):
                add_parameter(tensor, "leaf")  # nothing, if it is gone
            rows[first:] = [row for row in rows[first:] if row[:2] not in named]
            for cache in (ref() for ref in found["cache"]):
                if cache is not None:
                    of_cache(cache, type(cache).__name__, 1)
        return rows

    # The program runs on: only what was held both before and after the snapshot was held in it.
    def take():
        try:
            found = alone(objects)
            before = set(alone(lambda: held(found)))
        except Exception:  # an object that is not as its class has it
            found, before = {"owner": [], "tensor": [], "cache": []}, set()
        snapshot = torch.cuda.memory._snapshot()
        argv = getattr(sys, "orig_argv", sys.argv)
        snapshot["process"] = {"argv": "".join(x + "\0" for x in argv), "torch.version": str(torch.__version__),
                               "held": []}
        try:
            snapshot["process"]["held"] = [row for row in alone(lambda: held(found)) if row in before]
        except Exception:
            pass
        return snapshot

    def record(memory):
        clear = not any(memory._snapshot()["device_traces"])
        memory._record_memory_history("all", context="all", stacks="python", max_entries=entries)
        try:
            write("recording", b"")
            path, end = os.path.join(folder, "recording"), time.monotonic() + seconds
            while time.monotonic() < end and os.path.exists(path):
                time.sleep(0.05)
            return take() if os.path.isdir(folder) else None
        finally:
            try:
                memory._record_memory_history(None, clear_history=clear)
            except TypeError:  # older ones keep it
                memory._record_memory_history(None)

    def run():
        if not os.path.isdir(folder):
            return
        why = obstacle()
        if why:
            return write("refused", why.encode())
        write("started", b"")
        history = seconds and not torch._C._cuda_isHistoryEnabled()
        snapshot = record(torch.cuda.memory) if history else take()
        if snapshot:
            write("snapshot", snapshot)

    try:
        run()
    except Exception as error:
        try:
            write("refused", ("%s: %s" % (type(error).__name__, error)).encode())
        except OSError:
            pass


attach(*request)  # noqa: F821 - what the tool asks for

# SPDX-License-Identifier: Apache-2.0
"""prologue.py PROGRAM [ARGUMENT...], or -m MODULE: runs a program as it is and writes down what every block is for.

Hooks of all modules and optimizers and the engine of autograd say in which phase the program is; marks are set after
each outermost forward pass, in the middle of backward, before and after each step. Only this run has them: the
runs that are judged start the program without this file. Program's thread and autograd's."""
import atexit
import functools
import os
import runpy
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:1] = [str(HERE.parent / "classes"), str(HERE)]

import torch  # noqa: E402
from torch.multiprocessing.reductions import StorageWeakRef  # noqa: E402
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook  # noqa: E402

import known  # noqa: E402
import truth  # noqa: E402

MARKS = int(os.environ.get("TRUTH_MARKS", "24"))
FIRST = 3  # of each kind of mark these always, then every EVERY-th
EVERY = 5
main, pid = threading.get_ident(), os.getpid()
depth, calls, length, stepping = [0], [0], [0], [False]
times = {}
batches = {}  # address: weak reference to a storage that was given to an outermost module


def here():
    return threading.get_ident() == main and os.getpid() == pid


def say(phase):
    truth.phases[-1] = phase
    torch.cuda.memory._set_memory_metadata(phase)


def mark(name):
    times[name] = times.get(name, 0) + 1
    if times[name] > FIRST and times[name] % EVERY or len(truth.lines) >= MARKS or os.getpid() != pid:
        return
    if torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
        truth.holders[:] = [(cls, why, functools.partial(list, [value]), tuple(or_else)) for cls, why, value, or_else in known.declare()]
        truth.mark(name)
        truth.holders.clear()
        add_batches(truth.lines[-1])


def note_batches(arguments):
    from_outside = [a for a in arguments if not isinstance(a, torch.nn.Module) and type(a).__name__[-5:] != "Cache"]
    known.caches_used.update(id(a) for a in arguments if type(a).__name__[-5:] == "Cache")
    for t in truth.tensors_in(from_outside, 3):
        at = truth.storage_of(t)
        if at:
            batches[at] = StorageWeakRef(t.untyped_storage())


def add_batches(line):
    """What was given to an outermost module is a batch; so is what was born between passes and saved by one.
    What another pass made before may still be called by that."""
    for at, ref in list(batches.items()):
        if ref.expired():
            del batches[at]
    for b in line["blocks"]:
        given = any(b["addr"] <= at < b["addr"] + b["size"] for at in batches)
        cls = (b["classes"] or ["activations"])[0]
        if cls not in ("activations", "forward_temporaries", "backward_temporaries", "optimizer_temporaries"):
            continue
        outside = b["born"] in ("setup", "between")
        if given:
            b["classes"] = ["inputs", *(() if outside else {"activations", "forward_temporaries", *b["classes"]})]
            b["why"] = "given to an outermost module"
        elif outside and b["held"]:
            b["classes"], b["why"] = ["inputs"], "made between passes, saved for backward"


def before_forward(module, args):
    if torch.compiler.is_compiling() or not here():
        return
    if depth[0] == 0:
        length[0], calls[0] = calls[0], 0
        # A global hook gets no keyword arguments; they are in the frame that calls it.
        note_batches([*args, *sys._getframe(1).f_locals.get("kwargs", {}).values()])
        say("forward")
    depth[0] += 1
    calls[0] += 1


def after_forward(module, args, result):
    if torch.compiler.is_compiling() or not here():
        return
    depth[0] = max(0, depth[0] - 1)
    if depth[0] == 0:
        if not torch.is_grad_enabled():
            say("after")
        mark("forward")
    elif length[0] > 8 and calls[0] == length[0] // 2 and times.get("after_step", 0) == FIRST - 1 and isinstance(result, torch.Tensor) and result.requires_grad:
        result.register_hook(lambda grad: mark("inside_backward"))


def before_step(optimizer, args, kwargs):
    if here():
        depth[0] = 0
        stepping[0] = True
        mark("before_step")
        say("step")


def after_step(optimizer, args, kwargs):
    if here():
        stepping[0] = False
        mark("after_step")
        say("between")


def follow_engine():
    real = torch.autograd.graph._engine_run_backward

    def run(*args, **kwargs):
        if not here():
            return real(*args, **kwargs)
        depth[0] = 0
        say("backward")
        try:
            return real(*args, **kwargs)
        finally:
            say("step" if stepping[0] else "between")  # a closure runs its passes inside the step
    for module in (torch.autograd, torch.autograd.graph):
        module._engine_run_backward = run


def follow_compiler():
    """A compiled module's code has the hooks of modules in it, and would be other code: they go, and what is compiled is an
    outermost module. Functions are compiled by libraries as they are imported."""
    real = torch.compile

    def compile(*args, **kwargs):
        from torch._dynamo.eval_frame import OptimizedModule
        what = args[0] if args else kwargs.get("model")
        if hooks and isinstance(getattr(what, "__self__", what), torch.nn.Module):
            while hooks:
                hooks.pop().remove()
            run = OptimizedModule.__call__

            def call(self, *args, **kwargs):
                before_forward(self, args)
                result = run(self, *args, **kwargs)
                after_forward(self, args, result)
                return result
            OptimizedModule.__call__ = call
        return real(*args, **kwargs)
    torch.compile = compile


def follow_buckets():
    """DDP's buckets: born in its __init__, and of the sizes that it logs itself."""
    from torch.nn.parallel import DistributedDataParallel
    real = DistributedDataParallel.__init__

    def made(self, *args, **kwargs):
        say("communication")
        real(self, *args, **kwargs)
        say("setup")
        logged.append(self)
    logged = []
    DistributedDataParallel.__init__ = made

    def sizes():
        for parallel in logged:
            data = parallel._get_ddp_logging_data()
            for name in ("bucket_sizes", "rebuilt_bucket_sizes"):
                yield from (int(n) for n in str(data.get(name, "")).replace(" ", "").split(",") if n.isdigit() and int(n))
    truth.holds_sizes("communication", "bucket", lambda: list(sizes()))


def finish():
    if os.getpid() == pid and truth.lines:
        batches.clear()
        truth.finish()


# Between passes without gradients: what was computed is the last one's result, and the next one's batch.
truth.BORN["after"] = ["forward_temporaries", "inputs"]
truth.start()
hooks = [torch.nn.modules.module.register_module_forward_pre_hook(before_forward),
         torch.nn.modules.module.register_module_forward_hook(after_forward)]
register_optimizer_step_pre_hook(before_step)
register_optimizer_step_post_hook(after_step)
follow_engine()
follow_compiler()
if torch.distributed.is_available():
    follow_buckets()
atexit.register(finish)
if __name__ == "__main__":
    if sys.argv[1] == "-m":
        sys.argv[:] = sys.argv[2:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = sys.argv[1:]
        sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
        runpy.run_path(sys.argv[0], run_name="__main__")

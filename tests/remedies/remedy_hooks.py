# SPDX-License-Identifier: Apache-2.0
"""Remedies by the kinds of findings: what each changes in PyTorch for the program that runs then."""
import functools
import inspect
import re
import sys
import weakref

import torch
from torch import nn
from torch.optim import Optimizer
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader
from torch.utils.checkpoint import checkpoint

import deferred_tensors
import held_names

HOOKS = {}
times = 0  # that the remedy took effect
say = None


def noted():
    global times
    times += 1
    say(times)


def apply(finding, tell):
    global say
    say = tell
    HOOKS[finding["kind"]](finding)


def remedy(*kinds):
    def note(function):
        HOOKS.update(dict.fromkeys(kinds, function))
        return function
    return note


def frames():
    """The program's frames and the libraries', innermost first."""
    frame = sys._getframe(1)
    while frame:
        yield frame
        frame = frame.f_back


def is_at(frame, finding):
    """In whichever clone the program was recorded."""
    return frame.f_lineno == finding["line"] and frame.f_code.co_filename.endswith("/".join(finding["file"].split("/")[-2:]))


# ---- calls of modules ----

depth = 0


def around_calls(around, outermost=False):
    """around(module, call, args, kwargs) in place of each call of a module; outermost: only of those not inside of another."""
    plain = nn.Module.__call__

    def called(self, *args, **kwargs):
        global depth
        call = functools.partial(plain, self)
        depth += 1
        try:
            return call(*args, **kwargs) if outermost and depth > 1 else around(self, call, args, kwargs)
        finally:
            depth -= 1

    nn.Module.__call__ = called


def before_backward(function):
    """Autograd is asked for gradients by one of these."""
    def wrapped(plain):
        @functools.wraps(plain)
        def call(*args, **kwargs):
            function(args[0] if args else kwargs.get("tensors", kwargs.get("outputs")))
            return plain(*args, **kwargs)
        return call

    torch.Tensor.backward = wrapped(torch.Tensor.backward)
    torch.autograd.grad = wrapped(torch.autograd.grad)


def around_steps(before=None, after=None):
    """Of every optimizer, also those that are made later. before may return False: then nothing is done after."""
    plain = Optimizer.__init__

    def begin(self, *args, **kwargs):
        plain(self, *args, **kwargs)
        if before:
            self.register_step_pre_hook(lambda opt, *_: before(opt))
        if after:
            self.register_step_post_hook(lambda opt, *_: after(opt))

    Optimizer.__init__ = begin


# ---- what backward needs ----

@remedy("checkpoint")
def checkpoint_class(finding):
    name = re.match(r"Checkpoint (\w+)", finding["what"])[1]
    inside = []

    def around(module, call, args, kwargs):
        of = type(module).forward.__qualname__.split(".")
        if inside or not torch.is_grad_enabled() or len(of) < 2 or of[-2] != name:
            return call(*args, **kwargs)
        # A cache would be filled twice.
        args = [None if type(a).__name__.endswith("Cache") else a for a in args]
        kwargs = {k: None if type(v).__name__.endswith("Cache") or k == "use_cache" else v for k, v in kwargs.items()}

        def run(*args, **kwargs):
            inside.append(1)
            try:
                return call(*args, **kwargs)
            finally:
                inside.pop()

        noted()
        return checkpoint(run, *args, use_reentrant=False, **kwargs)

    around_calls(around)


@remedy("offload_activations")
def save_on_cpu(finding):
    """The host's copies are made as the context manager makes them."""
    hooks = torch.autograd.graph.save_on_cpu()
    pack = hooks.pack_hook

    def counted(tensor):
        noted()
        return pack(tensor)

    torch.autograd.graph.saved_tensors_hooks(counted, hooks.unpack_hook).__enter__()


@remedy("no_grad")
def without_grad(finding):
    def around(module, call, args, kwargs):
        if not any(is_at(f, finding) for f in frames()):
            return call(*args, **kwargs)
        noted()
        with torch.no_grad():
            return call(*args, **kwargs)

    around_calls(around, outermost=True)


def is_frozen(module):
    weights = [*module.parameters()]
    return weights and not any(p.requires_grad for p in weights)


@remedy("frozen_graph")
def frozen_without_grad(finding):
    def around(module, call, args, kwargs):
        if not torch.is_grad_enabled() or not is_frozen(module):
            return call(*args, **kwargs)
        noted()
        with torch.no_grad():
            return call(*args, **kwargs)

    around_calls(around)


# ---- the optimizer ----

def optimizers_with(**options):
    """Every optimizer that takes these options is made with them."""
    for cls in {c for c in vars(torch.optim).values() if inspect.isclass(c) and issubclass(c, Optimizer)}:
        if not set(options) <= set(inspect.signature(cls.__init__).parameters):
            continue

        def begin(self, *args, plain=cls.__init__, **kwargs):
            noted()
            plain(self, *args, **{**kwargs, **options})

        cls.__init__ = functools.wraps(cls.__init__)(begin)


@remedy("fused_optimizer")
def fused(finding):
    optimizers_with(foreach=None, fused=True)


@remedy("foreach_off")
def foreach_off(finding):
    optimizers_with(foreach=False)


@remedy("set_to_none")
def set_to_none(finding):
    for cls in {Optimizer, nn.Module, *(c for c in vars(torch.optim).values() if inspect.isclass(c))}:
        if "zero_grad" not in vars(cls):
            continue

        def zero_grad(self, *args, plain=cls.zero_grad, **kwargs):
            noted()
            plain(self, set_to_none=True)

        cls.zero_grad = zero_grad
    cleared_after_step(finding)  # zero_grad may come behind another model's forward pass


@remedy("idle_gradients")
def cleared_after_step(finding):
    def after(opt):
        noted()
        opt.zero_grad(set_to_none=True)

    around_steps(after=after)


def trained(opt):
    return [p for group in opt.param_groups for p in group["params"]]


@remedy("offload_state")
def step_on_host(finding):
    """Weights and gradients come to the host for the step, and the weights go back."""
    homes = {}

    def before(opt):
        noted()
        for p in trained(opt):
            if p.grad is not None:
                homes[p] = p.data, p.grad
                p.data, p.grad = p.data.cpu(), None
                p.grad = homes[p][1].cpu()

    def after(opt):
        for p in trained(opt):
            if p in homes:
                home, grad = homes.pop(p)
                home.copy_(p.data)
                p.grad, p.data = None, home
                p.grad = grad

    around_steps(before, after)


@remedy("shard_state")
def half_of_state(finding):
    """One of two ranks: it updates its share of the parameters of all optimizers, whole ones, the largest first to who has less."""
    taken, ranks, held = {}, {}, [0, 0]

    def before(opt):
        for p in sorted(trained(opt), key=torch.numel, reverse=True):
            if p not in ranks:
                ranks[p] = held.index(min(held))
                held[ranks[p]] += p.numel()
            if ranks[p]:
                noted()
                taken[p], p.grad = p.grad, None

    def after(opt):
        for p, grad in taken.items():
            p.grad = grad
        taken.clear()

    around_steps(before, after)


@remedy("idle_weights")
def weights_on_host(finding):
    """Modules none of whose parameters is trained go to the host before backward, and come back where they are called, or after the
    optimizer's step if they never are."""
    modules, known, called, away = weakref.WeakSet(), set(), weakref.WeakSet(), weakref.WeakSet()
    begin = nn.Module.__init__

    def init(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        modules.add(self)

    def roots():
        children = {id(c) for m in modules for c in m.children()}
        every = [m for m in modules if id(m) not in children and any(True for _ in m.parameters())]
        return [m for m in every if not any(id(p) in known or p.grad is not None for p in m.parameters())]

    def leave(*_):
        for m in roots():
            if m not in away:
                noted()
                m.to("cpu")
                away.add(m)

    def come(m):
        if m in away:
            m.to("cuda")
            away.discard(m)

    def around(module, call, args, kwargs):
        called.add(module)
        come(module)
        out = call(*args, **kwargs)
        if module in roots() and not any(p.requires_grad for p in module.parameters()):
            module.to("cpu")
            away.add(module)
            noted()
        return out

    def after(opt):
        for m in list(away):
            if m not in called:
                come(m)

    nn.Module.__init__ = init
    around_calls(around, outermost=True)
    before_backward(leave)
    made = Optimizer.__init__

    def optimizer(self, *args, **kwargs):
        made(self, *args, **kwargs)
        known.update(map(id, trained(self)))
        self.register_step_post_hook(lambda opt, *_: after(opt))

    Optimizer.__init__ = optimizer
    copied = nn.Module.__setstate__

    def restored(self, state):  # a deep copy
        copied(self, state)
        modules.add(self)

    nn.Module.__setstate__ = restored


# ---- names ----

@remedy("late_del")
def deleted_before_backward(finding):
    held = held_names.Held(lambda frame: is_at(frame, finding))
    before_backward(lambda loss: held.delete(keep=loss) and noted())


@remedy("kept", "let_go", "kept_results")
def kept_on_host(finding):
    """What lists and dictionaries have of earlier steps, of this line or with a graph, are values on the host."""
    held = held_names.Held(lambda frame: is_at(frame, finding))

    def move():
        for tensor, container, key in held_names.contained():
            if held.is_held(tensor, older=True) or tensor.grad_fn is not None:
                container[key] = tensor.detach().cpu()
                noted()

    def around(module, call, args, kwargs):
        move()
        held.turn()
        return call(*args, **kwargs)

    around_calls(around, outermost=True)


# ---- other computations ----

class AtLine(TorchFunctionMode):
    """function(plain, args, kwargs) in place of torch's functions that this line calls. tell=False: the function tells itself what took effect."""

    def __init__(self, function, test, tell=True):
        super().__init__()
        self.function, self.test, self.tell = function, test, tell

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if self.test(func) and (found := self.function(func, args, kwargs or {})) is not None:
            if self.tell:
                noted()
            return found
        return func(*args, **(kwargs or {}))


@remedy("attention")
def fused_attention(finding):
    def is_inside():
        return any(getattr(f.f_code, "co_qualname", f.f_code.co_name).endswith(finding["function"]) for f in frames())

    AtLine(deferred_tensors.scores(is_inside, noted), lambda func: func.__name__ in deferred_tensors.PRODUCTS, tell=False).__enter__()


@remedy("loss_in_pieces")
def of_logits(finding):
    """A slice of deferred logits is computed of the slice of their input; a loss takes them in pieces."""
    n, unit = re.search(r"gradients, ([\d.]+) (\w+) each", finding["evidence"]).groups()
    size = float(n) * {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
    AtLine(deferred_tensors.logits(size, noted), lambda func: func.__name__ == "linear", tell=False).__enter__()


@remedy("logits_in_float32")
def without_float(finding):
    def stay(func, args, kwargs):
        if not isinstance(args[0], torch.Tensor) or args[0].dtype == torch.float32 or not any(is_at(f, finding) for f in frames()):
            return None
        return args[0] if func.__name__ == "float" or torch.float32 in (*args, *kwargs.values()) else None

    plain = nn.functional.cross_entropy

    def cross_entropy(input, *args, **kwargs):
        if input.dtype == torch.float32 or not torch.is_autocast_enabled():
            return plain(input, *args, **kwargs)
        noted()
        with torch.autocast("cuda", enabled=False):
            return plain(input, *args, **kwargs)

    nn.functional.cross_entropy = cross_entropy
    AtLine(stay, lambda func: func.__name__ in ("float", "to")).__enter__()


@remedy("smaller_batch")
def half_batch(finding):
    """Loaders of such batches get half the batch size, and what the program makes with as many rows as a batch half of them. Without such a
    loader, all tensors with as many rows, as soon as they are on the device; weights that a model moves there are none of these."""
    batches = finding["rows"]
    made = {"randn", "rand", "randint", "zeros", "ones", "full"}
    is_loaded = halved_loaders(batches)

    def halve(func, args, kwargs):
        if depth or is_loaded and func.__name__ not in made or any(is_of_module(f) for f in frames()):
            return None
        out = func(*args, **kwargs)
        is_new = func.__name__ in made or isinstance(args[0], torch.Tensor) and not args[0].is_cuda
        if not isinstance(out, torch.Tensor) or not out.is_cuda or not out.ndim or len(out) not in batches or not is_new:
            return out
        rows = len(out)
        del out
        noted()
        if func.__name__ not in made:
            return func(args[0][:rows // 2], *args[1:], **kwargs)
        return func(*(half(a, rows) for a in args), **{k: half(v, rows) if k == "size" else v for k, v in kwargs.items()})

    around_calls(lambda module, call, args, kwargs: call(*args, **kwargs))
    AtLine(halve, lambda func: func.__name__ in made | {"cuda", "to"}, tell=False).__enter__()


def is_of_module(frame):
    """A module's weights are made, or moved."""
    return frame.f_code.co_name in ("__init__", "_apply") and isinstance(frame.f_locals.get("self"), nn.Module)


def halved_loaders(batches):
    """Filled with the loaders that got half a batch."""
    loaders, plain = [], DataLoader.__init__

    def begin(self, *args, **kwargs):
        given = inspect.signature(plain).bind(self, *args, **kwargs)
        size = given.arguments.get("batch_size")
        if size in batches and size > 1:
            given.arguments["batch_size"] = size // 2
            loaders.append(size)
            noted()
        plain(*given.args, **given.kwargs)

    DataLoader.__init__ = begin
    return loaders


def half(value, rows):
    if isinstance(value, (tuple, list, torch.Size)) and value and value[0] == rows:
        return (rows // 2, *value[1:])
    return rows // 2 if value == rows and isinstance(value, int) else value


@remedy("rows")
def find_rows(finding):
    """Not a remedy: how many rows the batches have, those of a training or those of an evaluation."""
    batches = set()

    def around(module, call, args, kwargs):
        given = [t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor) and t.is_cuda and t.ndim]
        if given and torch.is_grad_enabled() == finding["trains"]:
            batches.add(len(given[0]))
            say(" ".join(map(str, batches)))
        return call(*args, **kwargs)

    around_calls(around, outermost=True)


@remedy("allocator", "less_workspace")
def by_environment(finding):
    """Set where the program is started."""
    noted()

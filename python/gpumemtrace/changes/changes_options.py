# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""Options of models and compilers that a program left at their defaults."""
import inspect

import torch

from .changes_places import InPlaceOf, around_calls, is_called_at


def config_with(noted, when, **options):
    """Models with a configuration run with these options."""
    def around(module, call, args, kwargs):
        config = getattr(module, "config", None)
        old = {k: getattr(config, k, None) for k in options}
        changed = {k: v for k, v in options.items() if kwargs.get(k, old[k]) not in (None, v)}
        if not changed or not when():
            return call(*args, **kwargs)
        noted()
        for k, v in changed.items():
            setattr(config, k, v)
        try:
            return call(*args, **{**kwargs, **{k: v for k, v in changed.items() if k in kwargs}})
        finally:
            for k in changed:
                setattr(config, k, old[k])

    around_calls(around, outermost=True)


def cache_off(change, noted, say):
    config_with(noted, torch.is_grad_enabled, use_cache=False)


def hidden_states_off(change, noted, say):
    config_with(noted, lambda: True, output_hidden_states=False, output_attentions=False)


def last_logits(change, noted, say):
    """Logits of the last position only, in passes over a prompt without a graph."""
    def around(module, call, args, kwargs):
        if torch.is_grad_enabled() or "logits_to_keep" in kwargs or "logits_to_keep" not in inspect.signature(module.forward).parameters:
            return call(*args, **kwargs)
        noted()
        return call(*args, **kwargs, logits_to_keep=1)

    around_calls(around, outermost=True)


def memory_budget(change, noted, say):
    """Limits the memory that a compiled model saves for backward."""
    from torch._functorch import config
    config.activation_memory_budget = change.value
    plain = torch.compile

    def compile(*args, **kwargs):
        noted()
        return plain(*args, **kwargs)

    torch.compile = compile


def logits_in_16_bits(change, noted, say):
    """A line does not convert to float32, and a loss is given what the model gave."""
    def stay(func, args, kwargs):
        if not isinstance(args[0], torch.Tensor) or args[0].dtype == torch.float32 or not is_called_at(change.value):
            return None
        if func.__name__ != "float" and torch.float32 not in (*args, *kwargs.values()):
            return None
        noted()
        return args[0]

    plain = torch.nn.functional.cross_entropy

    def cross_entropy(input, *args, **kwargs):
        if input.dtype == torch.float32 or not torch.is_autocast_enabled():
            return plain(input, *args, **kwargs)
        noted()
        with torch.autocast(input.device.type, enabled=False):
            return plain(input, *args, **kwargs)

    torch.nn.functional.cross_entropy = cross_entropy
    InPlaceOf(("float", "to"), stay)

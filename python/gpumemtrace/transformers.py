# SPDX-License-Identifier: Apache-2.0
"""For Hugging Face's Trainer:

    Trainer(..., callbacks=[gpumemtrace.transformers.GpuMemory(loggers=[SummaryWriter()])])

Marks every optimizer step and logs its peak by class. Weights & Biases and MLflow are found by themselves."""

from __future__ import annotations

import importlib
from typing import Any, Sequence

from ._steps_log import StepsLog, active_loggers

_Callback: Any = importlib.import_module("transformers").TrainerCallback


class GpuMemory(_Callback):  # type: ignore[misc]
    """loggers: more of them: with ``add_scalar``, ``log_metrics`` or ``log``, or functions of (figures, step).
    every: how many steps between two looks at the recording; 0: only at the end."""

    def __init__(self, loggers: Sequence[Any] = (), every: int = 100) -> None:
        self._log = StepsLog(every)
        self._loggers = list(loggers)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._log.step(state.global_step, [*self._loggers, *active_loggers()])

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._log.log([*self._loggers, *active_loggers()])

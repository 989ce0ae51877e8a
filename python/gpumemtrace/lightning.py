# SPDX-License-Identifier: Apache-2.0
"""For Lightning:

    Trainer(..., callbacks=[gpumemtrace.lightning.GpuMemory()])

Marks every optimizer step and logs its peak by class to the trainer's own loggers."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from ._steps_log import StepsLog

_PACKAGE = "lightning.pytorch" if importlib.util.find_spec("lightning") else "pytorch_lightning"
_Callback: Any = importlib.import_module(_PACKAGE).Callback


class GpuMemory(_Callback):  # type: ignore[misc]
    """every: how many steps between two looks at the recording; 0: only at the end."""

    def __init__(self, every: int = 100) -> None:
        super().__init__()
        self._log = StepsLog(every)
        self._last = 0

    def on_train_batch_end(self, trainer: Any, *rest: Any, **more: Any) -> None:
        if trainer.global_step > self._last:  # some batches only gather gradients
            self._last = trainer.global_step
            self._log.step(self._last, trainer.loggers)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._log.log(trainer.loggers)

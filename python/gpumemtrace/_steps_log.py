# SPDX-License-Identifier: Apache-2.0
"""Peaks of training steps by class, as figures for loggers; what the callbacks of frameworks share."""

from __future__ import annotations

import sys
from typing import Any, Dict, Iterable, List, Optional

from ._documents import Report
from ._error import Error
from ._program import mark, recording
from ._tool import ask

PREFIX = "gpu_memory/"


def active_loggers() -> List[Any]:
    """Weights & Biases and MLflow, where the program has a run of theirs open."""
    found: List[Any] = []
    wandb, mlflow = sys.modules.get("wandb"), sys.modules.get("mlflow")
    if wandb is not None and getattr(wandb, "run", None) is not None:
        found.append(getattr(wandb, "run"))
    if mlflow is not None and mlflow.active_run() is not None:
        found.append(mlflow)
    return found


def log_to(logger: Any, figures: Dict[str, float], step: int) -> None:
    """By what the logger can do: TensorBoard's writer, Lightning's loggers and MLflow, Weights & Biases, a function."""
    if hasattr(logger, "add_scalar"):
        for name, value in figures.items():
            logger.add_scalar(name, value, step)
    elif hasattr(logger, "log_metrics"):
        logger.log_metrics(figures, step=step)
    elif hasattr(logger, "log"):
        logger.log(figures, step=step)
    else:
        logger(figures, step)


class StepsLog:
    """Marks every step, and gives the peaks of those that ended to loggers: ``gpu_memory/peak`` and a figure for each
    class at that peak, in bytes, under the number that the framework gives the step.

    Every ``every`` steps the recording is read so far (a second for ten million events); 0: only at the end. Does
    nothing in a program that is not recorded, and trouble with the recording never stops the training.
    """

    def __init__(self, every: int = 100) -> None:
        self._every = every
        self._first: Optional[int] = None  # the framework's number of the first step, less the recording's
        self._logged = 0
        self._complained = False

    def step(self, number: int, loggers: Iterable[Any]) -> None:
        """After the optimizer's step of that number, from 1."""
        if recording() is None:
            return
        if self._first is None:
            self._first = number - 1
        mark(f"step {number}")
        if self._every and (number - self._first) % self._every == 0:
            self.log(loggers, ended=False)

    def log(self, loggers: Iterable[Any], ended: bool = True) -> None:
        path, targets = recording(), list(loggers)
        if path is None or not targets:
            return
        try:
            rows = [s for s in Report._of(ask("report", path, "--steps")).steps or () if s.step > self._logged]
        except Error as error:
            self._complain(error)
            return
        for row in rows if ended else rows[:-1]:  # the last one may go on
            figures = {PREFIX + "peak": float(row.peak_bytes)}
            figures.update((PREFIX + name, float(size)) for name, size in row.categories_at_peak.items())
            for target in targets:
                log_to(target, figures, row.step + (self._first or 0))
            self._logged = row.step

    def _complain(self, error: Error) -> None:
        if not self._complained:
            print(f"gpumemtrace: peaks of steps are not logged: {error.sentence}", file=sys.stderr)
        self._complained = True

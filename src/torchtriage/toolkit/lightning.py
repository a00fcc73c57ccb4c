"""Callbacks for the Trainer of Lightning: the probes without the launcher around fit, and checkpoints that survive.

    from torchtriage.toolkit.lightning import StateCallback, TriageCallback

    trainer = Trainer(callbacks=[TriageCallback(symptom="the loss becomes NaN")])

    kept = StateCallback("checkpoints", every=100, keep=3)
    Trainer(callbacks=[kept], enable_checkpointing=False).fit(model, kept.batches(loader))

Neither Lightning nor torch is imported before the callback is asked for.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from torchtriage.toolkit.around import Around
from torchtriage.toolkit.keeping import Keeping

PACKAGES = ("lightning.pytorch", "pytorch_lightning")  # one library under two names, whose classes are not the same


def __getattr__(name: str) -> Any:
    if name in KINDS:
        loaded = (each for each in PACKAGES if each in sys.modules)
        there = (each for each in PACKAGES if find_spec(each.partition(".")[0]))
        return KINDS[name](next(loaded, None) or next(there, PACKAGES[0]))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _made(package: str) -> type:
    base: Any = import_module(package).Callback

    class TriageCallback(Around, base):  # type: ignore[misc]  # the job decides which Lightning there is
        """Watches `fit` and judges it at its end; arguments and `case` are those of `torchtriage.toolkit.watch`."""

        def setup(self, *_: Any, stage: str) -> None:
            if stage == "fit":
                self.begin()

        def on_exception(self, _trainer: Any, _module: Any, exception: BaseException) -> None:
            self.end(exception)

        def teardown(self, *_: Any, **__: Any) -> None:
            self.end()

    TriageCallback.__qualname__ = "TriageCallback"  # strategies that spawn pickle it
    return TriageCallback


@cache
def _state(package: str) -> type:
    base: Any = import_module(package).Callback

    class StateCallback(Keeping, base):  # type: ignore[misc]  # as above
        """Saves all of a `fit` every so many steps, or at each epoch's end; goes on from the newest step that is whole.

        Arguments are those of `torchtriage.toolkit.keeping.Keeping`. The place in the data, and so an exact resume
        within an epoch, is kept of the loader that `batches` was given.
        """

        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            others = {each.state_key: each for each in trainer.callbacks if each is not self}
            self.begin(
                model=pl_module,
                optimizer=list(trainer.optimizers),
                scheduler=[each.scheduler for each in trainer.lr_scheduler_configs],
                scaler=getattr(trainer.precision_plugin, "scaler", None),
                loops=_Loops(trainer.fit_loop),
                callbacks=_Callbacks(others),
            )

        def on_train_start(self, *_: Any) -> None:
            self.state.settle()

        def on_train_batch_start(self, trainer: Any, *_: Any) -> None:
            self.state.epoch = trainer.current_epoch

        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            if self.due(trainer.global_step) and not trainer.is_last_batch:
                self.keep_step(trainer.global_step)

        def on_train_epoch_end(self, trainer: Any, *_: Any) -> None:
            self.end_passes()
            if self.every is None or self.due(trainer.global_step):
                self.keep_step(trainer.global_step)

        def on_exception(self, *_: Any) -> None:
            self.finish()

        def on_fit_end(self, *_: Any) -> None:
            self.finish()

    StateCallback.__qualname__ = "StateCallback"
    return StateCallback


class _Loops:
    """Where a fit is: its counters of epochs, batches and steps of the optimizer."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop

    def state_dict(self) -> Any:
        return self._loop.state_dict()

    def load_state_dict(self, state: Any) -> None:
        self._loop.load_state_dict(state)


class _Callbacks:
    """The other callbacks of the training, by their keys; what is not there any more is left out."""

    def __init__(self, callbacks: dict[str, Any]) -> None:
        self._callbacks = callbacks

    def state_dict(self) -> Any:
        held = {key: each.state_dict() for key, each in self._callbacks.items()}
        return {key: state for key, state in held.items() if state}

    def load_state_dict(self, state: Any) -> None:
        for key, each in state.items():
            if key in self._callbacks:
                self._callbacks[key].load_state_dict(each)


KINDS = {"TriageCallback": _made, "StateCallback": _state}

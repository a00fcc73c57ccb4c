"""Callbacks for the Trainer of transformers: the probes without the launcher around train, checkpoints that survive.

    from torchtriage.toolkit.transformers import StateCallback, TriageCallback

    trainer = Trainer(..., callbacks=[TriageCallback(symptom="the loss becomes NaN")])

    kept = StateCallback("checkpoints", every=100, keep=3)
    Trainer(..., callbacks=[kept]).train(resume_from_checkpoint=kept.checkpoint())

Neither transformers nor torch is imported before the callback is asked for.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from torchtriage.core.errors import TriageError
from torchtriage.toolkit.around import Around
from torchtriage.toolkit.keeping import Keeping

EMPTY = b'{"__metadata__":{"format":"pt"}}'
"""The header of a file without weights: a Trainer looks for one, and says then which are missing; the callback brings
them."""


def __getattr__(name: str) -> Any:
    if name in KINDS:
        return KINDS[name]()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _made() -> type:
    base: Any = import_module("transformers").TrainerCallback

    class TriageCallback(Around, base):  # type: ignore[misc]  # transformers is the job's own
        """Watches `train` and judges it at its end; arguments and `case` are those of `torchtriage.toolkit.watch`.

        A Trainer tells its callbacks of no error: a training that ends with one is judged when the process ends.
        """

        def on_train_begin(self, *_: Any, **__: Any) -> None:
            self.begin()

        def on_train_end(self, *_: Any, **__: Any) -> None:
            self.end()

    TriageCallback.__qualname__ = "TriageCallback"  # so that it can be pickled
    return TriageCallback


@cache
def _state() -> type:
    base: Any = import_module("transformers").TrainerCallback

    class StateCallback(_Kept, base):  # type: ignore[misc]  # as above
        """Saves all of a `train` every so many steps, or at each epoch's end.

        Arguments are those of `torchtriage.toolkit.keeping.Keeping`. To go on from the newest step that is whole, the
        Trainer is told by `resume_from_checkpoint=kept.checkpoint()`: it counts and passes over batches by itself. So a
        resume within an epoch is the same to the bit only where the data set draws no random numbers.
        """

    StateCallback.__qualname__ = "StateCallback"
    return StateCallback


class _Kept(Keeping):
    """What StateCallback does; see there."""

    _behind = False

    def checkpoint(self) -> str | None:
        """What a Trainer needs to go on where the newest whole step was; None where there is no step."""
        from torchtriage.toolkit.state.resuming import newest

        held = newest(self.folder)
        if held is None:
            return None
        made = Path(tempfile.mkdtemp(prefix="torchtriage-"))
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        (made / "trainer_state.json").write_text(json.dumps(held["parts"]["trainer"]["state"]))
        (made / "model.safetensors").write_bytes(len(EMPTY).to_bytes(8, "little") + EMPTY)
        return str(made)

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **there: Any) -> None:
        optimizer, scheduler = there["optimizer"], there["lr_scheduler"]
        self.begin(
            model=there["model"],
            optimizer=getattr(optimizer, "optimizer", optimizer),
            scheduler=getattr(scheduler, "scheduler", scheduler),
            scaler=getattr(optimizer, "scaler", None),
            trainer=_Progress(state),
        )
        if (self._last or 0) != state.global_step:
            what = f"the Trainer begins at step {state.global_step}, and the newest step is {self._last}"
            do = "Call train(resume_from_checkpoint=kept.checkpoint()), or name an empty folder to begin anew."
            raise TriageError(what, str(self.folder), do)
        self._behind = self._last is not None

    def on_epoch_begin(self, _args: Any, state: Any, _control: Any, **__: Any) -> None:
        if float(state.epoch or 0).is_integer():  # nothing has been drawn for this epoch yet
            self._catch_up()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._catch_up()  # after the batches before were passed over

    def on_step_end(self, _args: Any, state: Any, _control: Any, **__: Any) -> None:
        if self.due(state.global_step):
            self.keep_step(state.global_step)

    def on_epoch_end(self, _args: Any, state: Any, _control: Any, **__: Any) -> None:
        if self.every is None:
            self.keep_step(state.global_step)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self.finish()

    def _catch_up(self) -> None:
        if self._behind:
            self.state.settle()
            self._behind = False


class _Progress:
    """What a Trainer counts and has logged."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def state_dict(self) -> Any:
        return {key: value for key, value in vars(self._state).items() if key != "stateful_callbacks"}

    def load_state_dict(self, state: Any) -> None:
        """Nothing to do: the Trainer has read it itself."""


KINDS = {"TriageCallback": _made, "StateCallback": _state}

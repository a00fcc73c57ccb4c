"""A callback for the Trainer of transformers: the probes without the launcher, around train.

    from torchtriage.toolkit.transformers import TriageCallback

    trainer = Trainer(..., callbacks=[TriageCallback(symptom="the loss becomes NaN")])

Neither transformers nor torch is imported before the callback is asked for.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from torchtriage.toolkit.around import Around


def __getattr__(name: str) -> Any:
    if name == "TriageCallback":
        return _made()
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

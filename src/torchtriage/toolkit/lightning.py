"""A callback for the Trainer of Lightning: the probes without the launcher, around fit.

    from torchtriage.toolkit.lightning import TriageCallback

    trainer = Trainer(callbacks=[TriageCallback(symptom="the loss becomes NaN")])

Neither Lightning nor torch is imported before the callback is asked for.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from torchtriage.toolkit.around import Around

PACKAGES = ("lightning.pytorch", "pytorch_lightning")  # one library under two names, whose classes are not the same


def __getattr__(name: str) -> Any:
    if name == "TriageCallback":
        loaded = (each for each in PACKAGES if each in sys.modules)
        there = (each for each in PACKAGES if find_spec(each.partition(".")[0]))
        return _made(next(loaded, None) or next(there, PACKAGES[0]))
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

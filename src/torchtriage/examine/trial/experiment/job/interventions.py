"""Finds what can be changed inside a job: functions in the rooms' folders of interventions."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .looks import places_that_matter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import NoReturn

    from torchtriage.examine.run.job.job import Job

    Delivery = tuple[Any, Any]  # a loader and its batch
    Call = tuple[Any, tuple[Any, ...], Mapping[str, Any]]  # a module and its arguments


class NotApplied(Exception):
    """A change that this job has no place for; says why."""


class Interventions:
    """Changes what is named, in a trial.

    job, loader, batch, call: what the job was about to do when the trial began: the loader with its batch, None of a
    job without, and the root module with its arguments. give_up: ends the trial, where only a later step shows that a
    change has no place in the job.

    An intervention `learning-rate` is the function `learning_rate(now, value)` of a module in a room's folder; it
    refuses where there is nothing to change. One that must be there when the job starts has `start` in the place of
    `now`.
    """

    def __init__(self, job: Job, delivery: Delivery, call: Call, give_up: Callable[[str], NoReturn]) -> None:
        self.job, self.call, self.give_up = job, call, give_up
        self.loader, self.batch = delivery

    def places_that_matter(self) -> set[int | str]:
        """Of the arguments of the call, by position or name, the tensors whose samples reach the answer."""
        return places_that_matter(*self.call)

    def apply(self, name: str, value: Any) -> None:
        """Raises NotApplied where no room knows it, and as it does."""
        functions = dict(_functions())
        if name not in functions:
            raise NotApplied(f"there is no intervention {name}")
        if is_from_start(functions[name]):
            raise NotApplied("it must be there when the job starts")
        functions[name](self, value)

    @staticmethod
    def refuse(why: str) -> None:
        """Raises NotApplied with WHY: interventions are loaded by path, and share no class with this module."""
        raise NotApplied(why)


class Start:
    """What is changed before the job does anything: loaders and optimizers are still to be built."""

    def __init__(self, job: Job, give_up: Callable[[str], NoReturn]) -> None:
        self.job, self.give_up = job, give_up
        self._beginnings: list[Callable[[], None]] = []

    def on_begin(self, call: Callable[[], None]) -> None:
        """CALL comes before the first step, when the loaders are built: it gives up where nothing was changed."""
        self._beginnings.append(call)

    def begin(self) -> None:
        for each in self._beginnings:
            each()

    def apply(self, changes: Mapping[str, float]) -> frozenset[str]:
        """Makes those of CHANGES that must be there when the job starts, and tells which."""
        functions = {name: each for name, each in _functions() if name in changes and is_from_start(each)}
        for name, function in functions.items():
            function(self, changes[name])
        return frozenset(functions)


def is_from_start(function: Callable[..., object]) -> bool:
    """Whether an intervention must be there when the job starts, by the name of its first parameter."""
    return function.__code__.co_varnames[0] == "start"


def _functions() -> Iterator[tuple[str, Callable[[Any, Any], None]]]:
    for folder in filter(None, os.environ.get("TORCHTRIAGE_INTERVENTIONS", "").split(os.pathsep)):
        package = f"_torchtriage_interventions_{Path(folder).parent.name}"
        spec = spec_from_file_location(package, Path(folder, "__init__.py"), submodule_search_locations=[folder])
        if spec is None or spec.loader is None:
            continue
        sys.modules[package] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[package])
        for file in sorted(Path(folder).glob("[!_]*.py")):
            module = import_module(f"{package}.{file.stem}")
            for name, function in list(vars(module).items()):
                if not name.startswith("_") and getattr(function, "__module__", "") == module.__name__:
                    yield name.replace("_", "-"), function

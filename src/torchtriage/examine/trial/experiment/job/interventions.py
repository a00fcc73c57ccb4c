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

    Call = tuple[Any, tuple[Any, ...], Mapping[str, Any]]  # a module and its arguments


class NotApplied(Exception):
    """A change that this job has no place for; says why."""


class Interventions:
    """Changes what is named, in a branch.

    job, batch, call: what the job was about to do when it was branched: the batch of a loader, and the root module with
    its arguments. give_up: ends the branch, where only a later step shows that a change has no place in the job.

    An intervention `learning-rate` is the function `learning_rate(now, value)` of a module in a room's folder; it
    refuses where there is nothing to change.
    """

    def __init__(self, job: Job, batch: Any, call: Call, give_up: Callable[[str], NoReturn]) -> None:
        self.job, self.batch, self.call, self.give_up = job, batch, call, give_up

    def places_that_matter(self) -> set[int | str]:
        """Of the arguments of the call, by position or name, the tensors whose samples reach the answer."""
        return places_that_matter(*self.call)

    def apply(self, name: str, value: Any) -> None:
        """Raises NotApplied where no room knows it, and as it does."""
        functions = dict(_functions())
        if name not in functions:
            raise NotApplied(f"there is no intervention {name}")
        functions[name](self, value)

    @staticmethod
    def refuse(why: str) -> None:
        """Raises NotApplied with WHY: interventions are loaded by path, and share no class with this module."""
        raise NotApplied(why)


def _functions() -> Iterator[tuple[str, Callable[[Interventions, Any], None]]]:
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

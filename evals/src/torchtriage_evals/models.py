"""The models of a run: any of Inspect's providers, or an agent that is scripted here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torchtriage import TriageError
from torchtriage_evals import scripted
from torchtriage_evals.ledger import Price

if TYPE_CHECKING:
    from inspect_ai.model import Model

    from torchtriage_evals.legs import Leg
    from torchtriage_evals.source import Source

MOCK = "mockllm/"


def simulated(*names: str | None) -> bool:
    """Whether any of the models is scripted: what comes of it says nothing about the skill."""
    return any(name is not None and name.startswith(MOCK) for name in names)


def agent(name: str, legs: tuple[Leg, ...], base_url: str | None = None) -> Model:
    """The agent of that name; raises TriageError for one that is not there."""
    if not simulated(name):
        return _model(name, base_url)
    return _scripted(name, scripted.agent(name.removeprefix(MOCK), legs))


def judge(name: str, source: Source) -> Model:
    """The judge of that name; raises TriageError for one that is not there."""
    if not simulated(name):
        return _model(name, None)
    return _scripted(name, scripted.judge(name.removeprefix(MOCK), source.labelled))


def priced(name: str, prices: Mapping[str, Price]) -> bool:
    """Whether the price of a model is known, here or to the library."""
    from inspect_ai.model import get_model_info

    info = None if simulated(name) or name in prices else get_model_info(name)
    return name in prices or (info is not None and info.cost is not None)


def _scripted(name: str, script: scripted.Script) -> Model:
    from inspect_ai.model import get_model

    return get_model(name, memoize=False, custom_outputs=script)


def _model(name: str, base_url: str | None) -> Model:
    from inspect_ai._util.error import PrerequisiteError
    from inspect_ai.model import get_model

    try:
        return get_model(name, base_url=base_url, memoize=False)
    except (PrerequisiteError, ValueError, ImportError) as error:
        do = "Name it as provider/model, install the provider's package, set its key: docs/evaluation.md."
        raise TriageError(f"no such model: {_said(error)}", name, do) from error


def _said(error: Exception) -> str:
    """What the library says, in one line and without its colours."""
    from rich.errors import MarkupError
    from rich.text import Text

    try:
        plain = Text.from_markup(str(error)).plain
    except MarkupError:
        plain = str(error)
    return " ".join(plain.split()).removeprefix("ERROR: ").rstrip(".")[:300]

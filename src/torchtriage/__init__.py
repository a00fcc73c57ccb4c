"""Triage and diagnosis for PyTorch training: a query becomes a plan, evidence shows faults, findings carry remedies."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchtriage import toolkit as toolkit
    from torchtriage.catalog.page import Page as Page
    from torchtriage.core.case import Case as Case
    from torchtriage.core.errors import TriageError as TriageError
    from torchtriage.core.plan import Plan as Plan
    from torchtriage.core.plan import Question as Question
    from torchtriage.core.plan import Referral as Referral
    from torchtriage.core.plan import Route as Route
    from torchtriage.triage import ask as ask
    from torchtriage.triage import check as check
    from torchtriage.triage import explain as explain
    from torchtriage.triage import next_step as next_step
    from torchtriage.triage import read as read

__version__ = "0.1.0"
__all__ = [
    "Case",
    "Page",
    "Plan",
    "Question",
    "Referral",
    "Route",
    "TriageError",
    "ask",
    "check",
    "explain",
    "next_step",
    "read",
    "toolkit",
]

# Where each public name stands; a name without a home is a module of its own.
_HOMES = {
    "Case": "core.case",
    "Page": "catalog.page",
    "Plan": "core.plan",
    "Question": "core.plan",
    "Referral": "core.plan",
    "Route": "core.plan",
    "TriageError": "core.errors",
    "ask": "triage",
    "check": "triage",
    "explain": "triage",
    "next_step": "triage",
    "read": "triage",
}


if not TYPE_CHECKING:  # a checker that saw this function would accept any name: torchtriage.chekc

    def __getattr__(name: str) -> object:
        """Loads a public name on first use, so that `import torchtriage` costs next to nothing."""
        if name not in __all__:
            raise AttributeError(f"module 'torchtriage' has no attribute {name!r}; it has {', '.join(__all__)}")
        if name not in _HOMES:
            return import_module(f"torchtriage.{name}")
        return getattr(import_module(f"torchtriage.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

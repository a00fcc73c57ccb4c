"""What a resume needs, part by part."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Component(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a training's state.

    title: what it is called in a sentence; without: what a resume does that lacks it. needed: "always", or "used" where
    only a training that has it must keep it. beyond: kept where there is one, not counted among what a resume needs.
    role: what the rules of source call it, "" where they look for none. keys: entries of a dictionary that hold it
    where its own structure does not tell; marks: sets of keys of which each tells it, whatever its entry is called.
    """

    slug: str
    specialist: str
    title: str
    without: str
    needed: Literal["always", "used"]
    role: str = ""
    keys: tuple[str, ...] = ()
    marks: tuple[tuple[str, ...], ...] = ()
    beyond: bool = False

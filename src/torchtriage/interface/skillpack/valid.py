"""What a skill may look like: the Agent Skills format, and budgets of our own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
KEYS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
LONGEST_NAME, DESCRIPTION, LINES = 64, (400, 700), 500
CHARACTERS = 4  # of a token, about
ROUTER, SHEET, ROUTE = 1_500, 2_500, 8_000  # tokens: the router's body, a sheet's, and the longest route's
_LINK = re.compile(r"\]\(([^)#]+)[^)]*\)|`((?:references|scripts)/[\w.-]+)`")


def tokens(text: str) -> int:
    """About as many as TEXT costs."""
    return -(-len(text) // CHARACTERS)


def head(text: str) -> dict[str, str]:
    """The front matter of a SKILL.md, one line for each key; empty where there is none."""
    parts = text.split("---\n", 2)
    if len(parts) < 3 or parts[0]:
        return {}
    pairs = (line.partition(": ") for line in parts[1].splitlines())
    return {key: value.strip().strip('"') for key, _, value in pairs}


def body(text: str) -> str:
    return text.split("---\n", 2)[-1]


def complaints(files: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with a pack of FILES by path, one sentence each."""
    sheets = {path.partition("/")[0]: text for path, text in files.items() if path.endswith("/SKILL.md")}
    for name, text in sheets.items():
        yield from (f"{name}/SKILL.md: {each}" for each in _of_head(name, head(text)))
        limit = ROUTER if name == next(iter(sheets)) else SHEET
        if tokens(body(text)) > limit:
            yield f"{name}/SKILL.md: {tokens(body(text))} tokens, {limit} are allowed"
        if len(text.splitlines()) >= LINES:
            yield f"{name}/SKILL.md: {len(text.splitlines())} lines, fewer than {LINES} are allowed"
    for path, text in files.items():
        if path.endswith(".md"):
            yield from (f"{path}: {link} is not in the pack" for link in _links(path, text) if link not in files)


def _of_head(name: str, keys: Mapping[str, str]) -> Iterator[str]:
    if keys.get("name") != name or not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        yield f"its name is {keys.get('name')!r}: it must be its folder's, {name!r}"
    if unknown := set(keys) - KEYS:
        yield f"unknown keys {sorted(unknown)}"
    said = keys.get("description", "")
    if not DESCRIPTION[0] <= len(said) <= DESCRIPTION[1] or set(said) & set("<>"):
        yield f"a description of {len(said)} characters: {DESCRIPTION[0]} to {DESCRIPTION[1]}, without angle brackets"


def _links(path: str, text: str) -> Iterator[str]:
    """The files that a page names, by their path in the pack: relative to the skill's own folder."""
    skill = path.partition("/")[0]
    for found in _LINK.finditer(text):
        link = found.group(1) or found.group(2)
        if "://" not in link:
            own = path.rpartition("/")[0] if found.group(1) else skill
            yield f"{own}/{link}"

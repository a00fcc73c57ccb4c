"""Every command that a plan, a page or a report hands out is one that this version has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click import Context

import torchtriage
from torchtriage.catalog.load import catalog
from torchtriage.interface.cli import torchtriage as verbs

SOURCE = Path(torchtriage.__file__).parent
SPOKEN = [*SOURCE.rglob("*.toml"), *SOURCE.rglob("*.md"), *SOURCE.rglob("*.py")]
VERBS = set(verbs.list_commands(Context(verbs)))
_COMMAND = re.compile(r"[\"'`]torchtriage ([a-z]+(?:-[a-z]+)?)")


@pytest.mark.parametrize("path", SPOKEN, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_text_names_a_verb_that_is_not_there(path: Path) -> None:
    assert set(_COMMAND.findall(path.read_text(encoding="utf-8"))) <= VERBS


def test_this_test_sees_commands() -> None:
    said = 'examine = ["torchtriage run --symptom nan -- t.py", "torchtriage gradcheck m:f"], `torchtriage repro`'
    assert _COMMAND.findall(said) == ["run", "gradcheck", "repro"]


def test_a_symptom_named_in_a_command_exists() -> None:
    commands = [command for symptom in catalog().symptoms.values() for command in symptom.examine]
    named = {found for command in commands for found in re.findall(r"--symptom (\S+)", command)}
    assert named
    assert named <= set(catalog().symptoms)

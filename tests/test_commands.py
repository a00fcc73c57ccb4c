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


HOME = Path(__file__).parent.parent
PAGES = [HOME / "README.md", HOME / "CONTRIBUTING.md", *sorted(HOME.glob("docs/*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_page_promises_what_the_probes_do_not_keep(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "Never a cost" not in text
    assert "tens of microseconds" not in text
    assert "microseconds, whatever the model" not in text


def test_the_cost_of_the_probes_is_stated_with_its_command_and_the_goal_that_it_misses() -> None:
    text = (HOME / "docs/running.md").read_text(encoding="utf-8")
    section = text.partition("## What it costs")[2].partition("\n## ")[0]
    assert "The goal is 50 microseconds and 1 % of a step. Today it is missed" in section
    assert "python bench/overhead.py" in section
    rows = re.findall(r"^\|.*?([\d.]+) ms.*\| ([\d,]+) µs.* \| ([\d.]+) % \|$", section, re.M)
    assert len(rows) == section.count(" % |\n") == 6
    for step, added, part in rows:
        assert float(part) == pytest.approx(float(added.replace(",", "")) / float(step) / 10, rel=0.03)

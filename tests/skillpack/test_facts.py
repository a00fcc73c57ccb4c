"""The ledger: every number of a sheet or topic names its fact, and every fact that can be measured is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from sheets import ids, prose, texts

from torchtriage.interface.skillpack.ledger import Basis, read
from torchtriage.interface.skillpack.pack import ROUTER, skills

LEDGERS = {name: read(folder) for name, folder in skills().items()}
NUMBER = re.compile(r"(?<![\w.#/-])\d[\d,.]*")
NOT_PROSE = re.compile(r"`[^`]*`|\]\([^)]*\)|^\s*\d+\.\s|^#.*|<!--.*?-->")


def claims(path: Path) -> list[str]:
    """The lines with a number that is no example, list number, heading or part of a name."""
    return [line for line in prose(path) if NUMBER.search(NOT_PROSE.sub("", line))]


@pytest.mark.parametrize("path", texts(), ids=str)
def test_every_number_names_its_fact(path: Path) -> None:
    assert [line for line in claims(path) if not ids(line)] == []


@pytest.mark.parametrize("name", sorted(LEDGERS))
def test_every_fact_is_used_and_every_id_is_one(name: str) -> None:
    folder = skills()[name]
    named = {
        each
        for path in (folder / "SKILL.md", *folder.glob("topics/*.md"))
        if path.exists()
        for line in prose(path)
        for each in ids(line)
    }
    assert named == set(LEDGERS[name])


@pytest.mark.parametrize("name", sorted(set(LEDGERS) - {ROUTER}))
def test_every_fact_that_is_no_documents_is_measured_by_a_test_of_its_name(name: str) -> None:
    path = Path(__file__).parent / "facts" / f"test_{name.replace('-', '_')}.py"
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.exists() else ast.Module([], [])
    tests = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}
    facts = {
        f"test_{each.replace('-', '_')}" for each, fact in LEDGERS[name].items() if fact.basis is not Basis.DOCUMENT
    }
    assert facts <= tests


def test_a_number_without_a_fact_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Of 3\n1. Call it `4` times in FSDP2 with fp16.\nIt costs 5 %.\n")
    assert claims(page) == ["It costs 5 %."]

"""The pack as it ships."""

from __future__ import annotations

from pathlib import Path

import pytest
from skills_ref import validate

from torchtriage.catalog.load import catalog
from torchtriage.catalog.scenarios import reports, scenarios
from torchtriage.interface.skillpack.pack import ROUTER, pack, skills
from torchtriage.interface.skillpack.valid import ROUTE, body, complaints, tokens

PACK = pack()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("skills")
    for path, text in PACK.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", skills())
def test_a_skill_is_valid_by_the_formats_own_validator(name: str, written: Path) -> None:
    assert validate(written / name) == []


def test_nothing_is_too_long_and_every_link_leads_to_a_file_of_the_pack() -> None:
    assert list(complaints(PACK)) == []


def test_the_longest_route_stays_within_its_budget() -> None:
    costs = {name: tokens(body(PACK[f"{name}/SKILL.md"])) for name in skills()}
    tables = sum(tokens(text) for path, text in PACK.items() if path.startswith(f"{ROUTER}/references/"))
    routes = {each.route for each in (*reports(), *scenarios())}
    longest = max(sum(costs[name] for name in route) for route in routes)
    assert costs[ROUTER] + tables + longest <= ROUTE


def test_every_fault_has_its_reference_in_its_own_skill() -> None:
    wanted = {f"{fault.specialist}/references/{slug}.md" for slug, fault in catalog().faults.items()}
    assert wanted <= set(PACK)


def test_nothing_of_how_it_is_made_ships() -> None:
    assert [path for path, text in PACK.items() if "<!--" in text] == []
    assert {Path(path).parts[1] for path in PACK} <= {"SKILL.md", "references", "scripts"}
    assert all(len(Path(path).parts) <= 3 for path in PACK)


def test_the_same_pack_is_built_twice() -> None:
    assert pack() == PACK
    assert list(pack()) == list(PACK)

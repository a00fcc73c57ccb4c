from __future__ import annotations

from pathlib import Path

import pytest

from torchtriage.interface.skillpack.clients import CLIENTS, folders


@pytest.mark.parametrize(
    ("names", "user", "expected"),
    [
        (("claude",), False, [".claude/skills"]),
        (("codex",), False, [".agents/skills"]),
        (("cursor",), False, [".cursor/skills"]),
        (("copilot",), False, [".github/skills"]),
        (("copilot",), True, [".copilot/skills"]),
        (("gemini",), True, [".agents/skills"]),
        (("codex", "gemini"), False, [".agents/skills"]),
        (("all",), False, [".claude/skills", ".agents/skills", ".cursor/skills", ".github/skills"]),
        ((), False, [".agents/skills"]),
    ],
)
def test_each_client_has_its_folder_and_a_shared_one_counts_once(
    names: tuple[str, ...], user: bool, expected: list[str], tmp_path: Path
) -> None:
    assert folders(names, tmp_path, user=user) == [tmp_path / each for each in expected]


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_that_is_in_use_is_found(name: str, tmp_path: Path) -> None:
    (tmp_path / CLIENTS[name].shown_by[0]).mkdir(parents=True)
    assert folders((), tmp_path, user=False) == [tmp_path / CLIENTS[name].project]

"""Installing: what is ours is kept up to date, what is not is not touched."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from torchtriage.core.errors import TriageError
from torchtriage.interface.skillpack import place
from torchtriage.interface.skillpack.place import LIST, Act, carry_out, plan

FILES = {"a/SKILL.md": "one\n", "a/references/x.md": "two\n"}


def put(base: Path, files: dict[str, str], folder: str = "skills") -> dict[str, Act]:
    steps = plan(base / folder, files, base)
    carry_out(base / folder, steps, base)
    return {step.path: step.act for step in steps}


def tree(base: Path) -> set[str]:
    return {path.relative_to(base).as_posix() for path in base.rglob("*") if path.is_file()}


def test_a_second_installation_changes_nothing(tmp_path: Path) -> None:
    assert set(put(tmp_path, FILES).values()) == {Act.NEW}
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "skills/a").rglob("*.md")}
    assert set(put(tmp_path, FILES).values()) == {Act.SAME}
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_newer_pack_updates_what_nobody_changed_and_takes_away_what_it_no_longer_has(tmp_path: Path) -> None:
    put(tmp_path, FILES)
    assert put(tmp_path, {"a/SKILL.md": "newer\n"}) == {"a/SKILL.md": Act.UPDATE, "a/references/x.md": Act.REMOVE}
    assert tree(tmp_path) == {"skills/a/SKILL.md", f"skills/{LIST}"}
    assert not (tmp_path / "skills/a/references").exists()


def test_a_file_that_somebody_changed_is_known(tmp_path: Path) -> None:
    put(tmp_path, FILES)
    (tmp_path / "skills/a/SKILL.md").write_text("mine\n")
    (step, *_) = plan(tmp_path / "skills", {**FILES, "a/SKILL.md": "newer\n"}, tmp_path)
    assert (step.act, step.before, step.after) == (Act.CHANGED, "mine\n", "newer\n")


def test_a_file_of_the_same_name_that_was_there_before_counts_as_changed(tmp_path: Path) -> None:
    (tmp_path / "skills/a").mkdir(parents=True)
    (tmp_path / "skills/a/SKILL.md").write_bytes(b"\xff mine")
    assert plan(tmp_path / "skills", FILES, tmp_path)[0].act is Act.CHANGED


def test_taking_out_leaves_what_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "skills/theirs").mkdir(parents=True)
    (tmp_path / "skills/theirs/SKILL.md").write_text("theirs\n")
    put(tmp_path, FILES)
    (tmp_path / "skills/a/references/x.md").write_text("mine\n")
    assert put(tmp_path, {}) == {"a/SKILL.md": Act.REMOVE, "a/references/x.md": Act.FOREIGN}
    assert tree(tmp_path) == {"skills/theirs/SKILL.md", "skills/a/references/x.md"}


def test_taking_out_all_leaves_no_trace(tmp_path: Path) -> None:
    put(tmp_path, FILES, ".claude/skills")
    put(tmp_path, {}, ".claude/skills")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("link", ["skills", "skills/a", "skills/a/SKILL.md", f"skills/{LIST}"])
def test_a_link_on_the_way_is_refused_and_what_it_leads_to_stays(link: str, tmp_path: Path) -> None:
    base, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("theirs\n")
    (base / link).parent.mkdir(parents=True)
    (base / link).symlink_to(elsewhere / "file" if "." in Path(link).name else elsewhere)
    with pytest.raises(TriageError, match="a link lies where skills are to be"):
        put(base, FILES)
    assert tree(elsewhere) == {"file"}
    assert (elsewhere / "file").read_text() == "theirs\n"


@pytest.mark.parametrize("path", ["../theirs", "/etc/theirs", "a/../../theirs", "", "a\0b"])
def test_a_list_that_names_a_file_elsewhere_is_refused(path: str, tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / LIST).write_text(json.dumps({"files": {path: "0"}}))
    with pytest.raises(TriageError, match="leads out of the folder"):
        plan(tmp_path / "skills", {}, tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", '{"files": 3}'])
def test_a_broken_list_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / LIST).write_text(content)
    with pytest.raises(TriageError, match="the list of installed skills is broken"):
        plan(tmp_path / "skills", FILES, tmp_path)


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "skills/a/SKILL.md").mkdir(parents=True)
    with pytest.raises(TriageError, match="it is no file"):
        plan(tmp_path / "skills", FILES, tmp_path)


def test_what_an_interrupted_installation_wrote_is_known_as_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = place._write

    def broken(path: Path, text: str) -> None:
        if path.name == "x.md":
            raise KeyboardInterrupt
        whole(path, text)

    monkeypatch.setattr(place, "_write", broken)
    with pytest.raises(KeyboardInterrupt):
        put(tmp_path, FILES)
    monkeypatch.setattr(place, "_write", whole)
    assert put(tmp_path, FILES) == {"a/SKILL.md": Act.SAME, "a/references/x.md": Act.NEW}
    put(tmp_path, {})
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_in_the_place_of_a_file_is_named_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    os.mkfifo(tmp_path / "skills" / LIST)
    with pytest.raises(TriageError, match="it is no file"):
        plan(tmp_path / "skills", FILES, tmp_path)

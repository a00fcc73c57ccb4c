"""`torchtriage skills`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from torchtriage.core.errors import TriageError
from torchtriage.interface.cli.skills import command
from torchtriage.interface.skillpack.clients import CLIENTS
from torchtriage.interface.skillpack.pack import pack
from torchtriage.interface.skillpack.place import LIST

SHEET = "performance-profiling/SKILL.md"


def skills(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, catch_exceptions=False)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, and a home beside it."""
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "project"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("whose", ["--project", "--user"])
def test_a_client_finds_every_skill_where_it_looks(client: str, whose: str, project: Path) -> None:
    assert skills("install", "--client", client, whose).exit_code == 0
    base, below = (
        (project.parent / "home", CLIENTS[client].user) if whose == "--user" else (project, CLIENTS[client].project)
    )
    found = {path.relative_to(base / below).as_posix() for path in (base / below).rglob("*") if path.is_file()}
    assert found == {*pack(), LIST}


def test_installing_again_changes_nothing_and_check_agrees(project: Path) -> None:
    skills("install", "--client", "claude")
    assert f"{len(pack())} same" in skills("install", "--client", "claude").stderr
    assert skills("check", "--client", "claude").exit_code == 0


def test_a_changed_file_is_shown_and_left_where_nobody_can_be_asked(project: Path) -> None:
    skills("install", "--client", "claude")
    sheet = project / ".claude/skills" / SHEET
    sheet.write_text("mine\n")
    with pytest.raises(TriageError, match="1 file there with another content than ours"):
        skills("install", "--client", "claude")
    assert sheet.read_text() == "mine\n"
    checked = skills("check", "--client", "claude")
    assert (checked.exit_code, checked.stdout) == (1, f"{sheet}: changed\n")


def test_force_writes_over_a_changed_file_and_shows_what_it_was(project: Path) -> None:
    skills("install", "--client", "claude")
    sheet = project / ".claude/skills" / SHEET
    sheet.write_text("mine\n")
    assert "-mine" in skills("install", "--client", "claude", "--force").stdout
    assert sheet.read_text() == pack()[SHEET]


def test_uninstalling_leaves_a_changed_file_and_nothing_else(project: Path) -> None:
    skills("install", "--client", "claude")
    sheet = project / ".claude/skills" / SHEET
    sheet.write_text("mine\n")
    assert skills("uninstall", "--client", "claude").exit_code == 0
    assert [path for path in project.rglob("*") if path.is_file()] == [sheet]


def test_an_export_is_a_plugin_of_every_kind(project: Path) -> None:
    assert skills("export", "out").exit_code == 0
    out = project / "out"
    plugin = json.loads((out / ".claude-plugin/plugin.json").read_text())
    (listed,) = json.loads((out / ".claude-plugin/marketplace.json").read_text())["plugins"]
    assert plugin["name"] == listed["name"] == "torchtriage"
    assert (out / listed["source"] / "skills" / SHEET).is_file()
    for path in (".codex-plugin/plugin.json", ".cursor-plugin/plugin.json"):
        assert (out / json.loads((out / path).read_text())["skills"] / SHEET).is_file()
    extension = json.loads((out / "gemini-extension.json").read_text())
    assert "torchtriage ask" in (out / extension["contextFileName"]).read_text()
    assert {"name", "version"} <= set(extension)


def test_a_link_in_the_place_of_a_clients_folder_is_refused(project: Path) -> None:
    (project.parent / "elsewhere").mkdir()
    (project / ".claude").symlink_to(project.parent / "elsewhere")
    with pytest.raises(TriageError, match="a link lies where skills are to be"):
        skills("install", "--client", "claude")
    assert list((project.parent / "elsewhere").iterdir()) == []


def test_without_a_name_every_installation_is_found(project: Path) -> None:
    skills("install", "--client", "copilot")
    (project / ".github/skills" / SHEET).unlink()
    checked = skills("check")
    assert (checked.exit_code, checked.stdout) == (1, f"{project / '.github/skills' / SHEET}: missing\n")
    assert skills("uninstall").exit_code == 0
    assert list(project.iterdir()) == []
    assert "No skills of ours are installed here." in skills("uninstall").stderr


def test_line_ends_and_control_characters_are_spelt_out_in_a_difference(project: Path) -> None:
    skills("install", "--client", "claude")
    sheet = project / ".claude/skills" / SHEET
    sheet.write_bytes(sheet.read_bytes().replace(b"\n", b"\r\n", 1) + b"\x1b]0;evil\x07")
    said = skills("install", "--client", "claude", "--force").stdout
    assert "----\\r\n" in said
    assert "-\\x1b]0;evil\\x07 (no line end)\n" in said
    assert "\x1b" not in said


def test_an_export_follows_no_link(project: Path) -> None:
    (project.parent / "elsewhere").mkdir()
    (project / "out").symlink_to(project.parent / "elsewhere")
    with pytest.raises(TriageError, match="links are not followed"):
        skills("export", "out")
    assert list((project.parent / "elsewhere").iterdir()) == []

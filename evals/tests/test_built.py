"""What is built: torchtriage-evals has the scenarios of the rooms, torchtriage has none of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from torchtriage_evals import store

ROOT = store.ROOMS.parents[1]
INSIDE = "torchtriage_evals/scenarios.json"


def built(folder: Path, into: Path, kind: str) -> Path:
    """The file that hatchling, without pip and in this environment, makes of the project in FOLDER."""
    settings = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=settings)
    (found,) = into.iterdir()
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT / "evals", tmp_path_factory.mktemp("wheel"), "wheel")


def test_the_wheel_has_what_the_rooms_have(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert json.loads(archive.read(INSIDE)) == store.written(store.ROOMS)
    wanted = {path.relative_to(store.HERE.parent).as_posix() for path in store.HERE.rglob("*") if path.is_file()}
    assert {name for name in wanted if "__pycache__" not in name} <= names
    assert not store.BUILT.exists()


def test_a_wheel_that_is_built_from_the_source_archive_has_the_same(wheel: Path, tmp_path: Path) -> None:
    archive = built(ROOT / "evals", tmp_path / "sdist", "sdist")
    (tmp_path / "unpacked").mkdir()
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(tmp_path / "unpacked")], check=True)
    (folder,) = (tmp_path / "unpacked").iterdir()
    with ZipFile(wheel) as one, ZipFile(built(folder, tmp_path / "again", "wheel")) as other:
        assert one.read(INSIDE) == other.read(INSIDE)
        assert set(one.namelist()) == set(other.namelist())


def test_what_was_installed_reads_its_own_scenarios(wheel: Path, tmp_path: Path) -> None:
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = "from torchtriage_evals import store; print(len(store.scenarios()), len(store.labelled()), store.BUILT.is_file())"
    settings = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT / 'src'}"}
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=settings)
    assert said.stdout.split() == [str(len(store.scenarios())), str(len(store.labelled())), "True"]


def test_torchtriage_itself_has_none_of_them(tmp_path: Path) -> None:
    with ZipFile(built(ROOT, tmp_path, "wheel")) as archive:
        names = archive.namelist()
        texts = [
            archive.read(name).decode(errors="replace")
            for name in names
            if name.endswith((".toml", ".json", ".md", ".py"))
        ]
    assert not [name for name in names if "scenarios.toml" in name or "torchtriage_evals" in name]
    said = [each.query for each in store.scenarios() if len(each.query) > 60]
    assert len(said) > 100
    whole = "\n".join(texts)
    assert [query for query in said if query in whole] == []


def test_a_folder_without_scenarios_is_met_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="use a checkout of the repository"):
        store.written(tmp_path)

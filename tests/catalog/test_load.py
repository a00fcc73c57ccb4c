from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchtriage.catalog import cache, load, walk
from torchtriage.catalog.page import Page
from torchtriage.catalog.room import Room, VerdictKind
from torchtriage.catalog.symptom import Symptom
from torchtriage.core.errors import TriageError
from torchtriage.core.plan import Stage

EIGHT = (
    "checkpointing-and-reproducibility",
    "custom-autograd-functions",
    "debugging-techniques",
    "distributed-training-strategies",
    "mixed-precision-and-optimization",
    "module-design-patterns",
    "performance-profiling",
    "tensor-operations-and-memory",
)


def test_rooms_are_found_by_walking(house: Path) -> None:
    read = load.read(house)
    assert read.specialists == ("mixed-precision",)
    assert (list(read.faults), list(read.symptoms)) == (["clip-before-unscale"], ["loss-scale-trouble"])
    assert read.symptoms["loss-scale-trouble"].stage is Stage.DIAGNOSE
    assert list(read.verdicts) == ["compute-bound", "launch-bound"]


def test_what_a_resume_needs_are_fourteen_parts_each_told_by_one_thing() -> None:
    parts = load.catalog().components
    needed = [part.slug for part in parts.values() if not part.beyond]
    assert needed == [
        *("model", "ema", "optimizer", "scheduler", "scaler", "epoch", "step", "best", "loader"),
        *("rng-python", "rng-numpy", "rng-torch", "rng-device", "config"),
    ]
    keys = [key for part in parts.values() for key in part.keys]
    assert sorted({key for key in keys if keys.count(key) > 1}) == []
    assert {part.slug: part.role for part in parts.values() if part.role} == {
        **{role: role for role in ("model", "optimizer", "scheduler", "scaler", "epoch")},
    }


def test_a_missing_piece_of_furniture_is_simply_not_there(house: Path) -> None:
    (house / "mixed_precision" / "verdicts.toml").unlink()
    (house / "mixed_precision" / "faults" / "clip-before-unscale.md").unlink()
    assert (load.read(house).verdicts, load.read(house).faults) == ({}, {})


@pytest.mark.parametrize(
    ("name", "old", "new", "why"),
    [
        ("symptoms.toml", "[loss-scale-trouble]", "[loss-scale-trouble", "broken table"),
        ("symptoms.toml", 'stage = "diagnose"', 'stage = "later"', "Invalid enum value 'later'"),
        ("symptoms.toml", 'pattern = "', 'patern = "', "patern"),
        ("verdicts.toml", 'title = "The step computes"\n', "", "title"),
        ("verdicts.toml", "> 0.7", "< 0.7", "write DETECTOR or DETECTOR > NUMBER"),
        ("room.toml", 'does = "', "does = 3 #", "Expected `str`"),
    ],
)
def test_a_broken_table_is_named_with_what_is_wrong(
    house: Path, changed: Callable[[str, str, str], Path], name: str, old: str, new: str, why: str
) -> None:
    path = changed(name, old, new)
    with pytest.raises(TriageError, match=why) as error:
        load.read(house)
    assert error.value.where == str(path)


def test_this_installation_has_the_eight_specialists_of_the_source_documents() -> None:
    assert load.catalog().specialists == EIGHT
    assert load.catalog() == load.read()


def test_every_specialist_says_what_it_does_and_why() -> None:
    assert all(room.does.endswith(".") and room.why.endswith(".") for room in load.catalog().rooms)


def test_every_specialist_knows_at_least_one_fault_and_one_symptom() -> None:
    assert all(room.faults and room.symptoms for room in load.catalog().rooms)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("clip-before-unscale", Page),
        ("input-bound", Page),
        ("nan-loss", Symptom),
        ("compute-bound", VerdictKind),
        ("debugging-techniques", Room),
    ],
)
def test_everything_that_has_a_name_is_found_by_it(name: str, kind: type) -> None:
    assert isinstance(load.topic(name), kind)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("clip-befor-unscale", "clip-before-unscale"), ("nanloss", "nan-loss"), ("nan", "nan-loss"), ("NaN", "nan-loss")],
)
def test_a_typing_error_is_met_with_near_names(typed: str, meant: str) -> None:
    with pytest.raises(TriageError, match=f"Near names: .*{meant}"):
        load.topic(typed)


@pytest.mark.parametrize("typed", ["0000", "", "oom"])
def test_a_name_that_is_near_to_none_is_not_met_with_any(typed: str) -> None:
    with pytest.raises(TriageError, match=r"No name is near; .*docs/faults\.md lists them"):
        load.topic(typed)


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "torchtriage"


def test_the_same_content_is_compiled_once(house: Path, caches: Path) -> None:
    files = walk.files(house)
    first = cache.compiled("catalog", files, load.Catalog, lambda: load.read(house))
    again = cache.compiled("catalog", files, load.Catalog, lambda: pytest.fail("compiled twice"))
    assert first == again
    assert [path.suffix for path in caches.iterdir()] == [".json"]


def test_changed_content_is_compiled_anew_and_the_stale_file_goes(
    house: Path, caches: Path, changed: Callable[[str, str, str], Path]
) -> None:
    cache.compiled("catalog", walk.files(house), load.Catalog, lambda: load.read(house))
    changed("verdicts.toml", "The step computes", "The step is busy")
    made = cache.compiled("catalog", walk.files(house), load.Catalog, lambda: load.read(house))
    assert made.verdicts["compute-bound"].title == "The step is busy"
    assert len(list(caches.iterdir())) == 1


def test_a_damaged_cache_is_compiled_anew(house: Path, caches: Path) -> None:
    files = walk.files(house)
    cache.compiled("catalog", files, load.Catalog, lambda: load.read(house))
    (only,) = caches.iterdir()
    for damage in (b"", b"{", b"[]", b'{"rooms": 1}'):
        only.write_bytes(damage)
        assert cache.compiled("catalog", files, load.Catalog, lambda: load.read(house)) == load.read(house)


def test_a_home_that_cannot_be_written_costs_time_and_nothing_else(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache.compiled("catalog", walk.files(house), load.Catalog, lambda: load.read(house)) == load.read(house)


@pytest.mark.parametrize(
    ("platform", "where"),
    [("linux", ".cache/torchtriage"), ("darwin", "Library/Caches/torchtriage"), ("win32", "AppData/Local/torchtriage")],
)
def test_the_cache_lies_where_the_platform_keeps_caches(
    platform: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.folder() == str(tmp_path / where)

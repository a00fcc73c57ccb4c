"""The device is compiled once, and a machine that cannot is told what it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtriage.simulation import SimulationError, build


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("torch")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_a_machine_without_a_compiler_is_told_what_it_lacks(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(elsewhere))
    monkeypatch.setenv("CXX", "clang++-99")
    with pytest.raises(SimulationError) as raised:
        build.load_library()
    text = str(raised.value)
    assert "a C++ compiler (clang++-99 is not on PATH), ninja (pip install ninja)" in text
    assert f"copy {build.cache_folder()} from a machine of this kind" in text


def test_what_a_compiler_says_is_quoted(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("setuptools")
    compiler = elsewhere / "c++"
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in *version*) echo g++ 12.2.0;; *) echo no room on device >&2; exit 1;; esac\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    if build.obstacles():
        pytest.skip(f"for lack of {', '.join(build.obstacles())}")
    with pytest.raises(SimulationError, match=r"(?s)could not be compiled in .*no room on device"):
        build.load_library()


def test_the_cache_follows_the_sources(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = build.cache_folder()
    assert before == build.cache_folder()
    assert before.parent == elsewhere / "torchtriage" / "simulation"
    sources = elsewhere / "native"
    sources.mkdir()
    (sources / "clock.h").write_text("// another")
    monkeypatch.setattr(build, "SOURCES", sources)
    assert build.cache_folder() != before

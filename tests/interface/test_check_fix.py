"""check --fix writes the safe edits; --diff shows them; an edit that would not help is not made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from torchtriage.catalog import page, walk

CLIPPING = page.read(walk.pages()["clip-before-unscale"]).snippet("Bad")


@pytest.fixture
def clipping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.py"
    file.write_text(f"# a comment, kept\n{CLIPPING}")
    return file


def test_fix_writes_the_edit_and_nothing_else_changes(clipping: Path, call: Any) -> None:
    clipping.chmod(0o750)
    before = clipping.read_text().splitlines()
    said = call("check", "train.py", "--fix")
    after = clipping.read_text().splitlines()
    assert said.code == 0
    assert said.err == "1 finding mended in 1 file.\n0 findings in 1 file.\n"
    assert [row for row in after if row not in before] == ["        scaler.unscale_(optimizer)"]
    assert [row for row in before if row not in after] == []
    assert clipping.stat().st_mode & 0o777 == 0o750
    assert list(clipping.parent.iterdir()) == [clipping]


def test_fix_again_changes_nothing(clipping: Path, call: Any) -> None:
    call("check", "train.py", "--fix")
    mended = clipping.read_bytes()
    assert call("check", "train.py", "--fix").err.startswith("0 findings mended in 0 files.")
    assert clipping.read_bytes() == mended


def test_diff_shows_what_fix_would_write_and_writes_nothing(clipping: Path, call: Any) -> None:
    before = clipping.read_bytes()
    said = call("check", "train.py", "--diff")
    assert said.code == 1
    assert "\n+        scaler.unscale_(optimizer)\n" in said.out
    assert said.out.startswith("--- a/train.py\n+++ b/train.py\n@@ ")
    assert clipping.read_bytes() == before
    call("check", "train.py", "--fix")
    assert (call("check", "train.py", "--diff").code, call("check", "train.py", "--diff").out) == (0, "")


def test_a_link_stays_a_link_and_its_target_is_mended(clipping: Path, call: Any) -> None:
    link = clipping.with_name("link.py")
    link.symlink_to("train.py")
    call("check", "link.py", "--fix")
    assert link.is_symlink()
    assert "unscale_" in clipping.read_text()


def test_stdin_is_mended_as_a_difference(clipping: Path, call: Any) -> None:
    said = call("check", "-", "--diff", stdin=clipping.read_bytes())
    assert (said.code, said.out.splitlines()[0]) == (1, "--- a/-")
    assert call("check", "-", "--fix", stdin=b"").code == 2


def test_what_is_ignored_is_not_mended(clipping: Path, call: Any) -> None:
    said = call("check", "train.py", "--fix", "--ignore", "clip-before-unscale")
    assert "unscale_" not in clipping.read_text()
    assert said.code == 0


def test_what_was_mended_is_told_beside_what_is_left(clipping: Path, faulty: Path, call: Any) -> None:
    said = call("check", ".", "--fix", "--json")
    assert said.code == 1
    assert [finding["fault"] for finding in json.loads(said.out)["findings"]] == ["gradients-not-zeroed"]


def test_unsafe_edits_go_with_fix_or_diff(clipping: Path, call: Any) -> None:
    assert call("check", "train.py", "--unsafe-fixes").code == 2

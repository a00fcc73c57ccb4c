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


def test_a_file_that_somebody_changed_meanwhile_stays_as_it_is(
    clipping: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchtriage.interface.cli import mend

    def changed(*given: Any) -> Any:
        found = mended(*given)
        clipping.write_text("# mine now\n")
        return found

    mended = mend.mended
    monkeypatch.setattr(mend, "mended", changed)
    said = call("check", "train.py", "--fix")
    assert said.code == 2
    assert "was changed while it was examined" in said.err
    assert clipping.read_text() == "# mine now\n"


def test_a_file_with_two_names_keeps_both(clipping: Path, call: Any) -> None:
    other = clipping.with_name("other.txt")
    other.hardlink_to(clipping)
    call("check", "train.py", "--fix")
    assert "unscale_" in other.read_text()


def test_a_file_that_may_not_be_written_is_left(clipping: Path, call: Any) -> None:
    clipping.chmod(0o444)
    assert call("check", "train.py", "--fix").code == 2
    assert "unscale_" not in clipping.read_text()


def test_a_form_feed_ends_no_line_of_a_difference(clipping: Path, call: Any) -> None:
    clipping.write_text(clipping.read_text().replace("        scaler.step", "        \f\n        scaler.step"))
    rows = call("check", "train.py", "--diff").out.split("\n")
    assert [row for row in rows if row[:1] not in ("", " ", "+", "-", "@")] == []


@pytest.mark.parametrize("words", [["--fix", "--diff"], ["--fix", "--write-baseline", "b"], ["--diff", "--json"]])
def test_options_that_exclude_each_other_end_with_2(words: list[str], clipping: Path, call: Any) -> None:
    assert call("check", "train.py", *words).code == 2


def test_a_difference_of_nothing_that_can_be_read_ends_with_3(clipping: Path, call: Any) -> None:
    clipping.write_text("import torch\nx = (\n")
    assert call("check", "train.py", "--diff").code == 3
    assert call("check", "train.py", "--write-baseline", "b.json").code == 3

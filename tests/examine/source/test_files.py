from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchtriage.core.errors import TriageError
from torchtriage.core.evidence import Inconclusive, Observed
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.files import examine
from torchtriage.examine.source.script import Script

TORCH = "import torch\nfault()\n"


@detector("source/marked")
def marked(script: Script) -> Iterator[Sighting]:
    """A call of fault()."""
    yield from (script.seen(call.node) for call in script.calls("fault"))


@detector("source/failing")
def failing(script: Script) -> Iterator[Sighting]:
    """Fails on a file that says so."""
    yield from (script.seen(call.node) for call in script.calls("fail") if call.node.args[0])


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, text: str | bytes = TORCH) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def places(paths: list[str]) -> list[str | None]:
    (observed,) = examine([Path(path) for path in paths], [marked]).outcomes
    assert isinstance(observed, Observed)
    return [item.place.path for item in observed.evidence]


def test_folders_are_walked_and_what_others_installed_is_left_out(tree: Path) -> None:
    for name in ("b.py", "a.py", "sub/c.py", ".git/d.py", "env/lib/e.py", "site-packages/f.py", "node_modules/g.py"):
        write(tree / "job" / name)
    write(tree / "job/env/pyvenv.cfg", "")
    write(tree / "job/sub/__pycache__/h.py")
    write(tree / "job/notes.txt")
    assert places(["job"]) == ["job/a.py", "job/b.py", "job/sub/c.py"]


def test_paths_are_said_as_the_user_gave_them_and_a_file_counts_once(tree: Path) -> None:
    write(tree / "a.py")
    assert places(["a.py", "./a.py", str(tree)]) == ["a.py"]
    assert places([str(tree / "a.py")]) == [(tree / "a.py").as_posix()]


def test_a_script_without_the_ending_is_examined_when_it_is_named(tree: Path) -> None:
    write(tree / "train")
    assert places(["train"]) == ["train"]


def test_a_path_that_does_not_exist_is_a_mistake_of_usage(tree: Path) -> None:
    with pytest.raises(TriageError, match="no such file") as error:
        examine([Path("gone.py")], [marked])
    assert error.value.code == 2


@pytest.mark.parametrize("paths", [[], ["empty"]])
def test_where_no_python_file_is_nothing_is_examined(tree: Path, paths: list[str]) -> None:
    (tree / "empty").mkdir()
    with pytest.raises(TriageError, match="no Python file") as error:
        examine([Path(path) for path in paths], [marked])
    assert error.value.code == 3


def test_a_broken_file_is_inconclusive_and_the_others_are_examined(tree: Path) -> None:
    write(tree / "a.py", "import torch\ndef f(:\n")
    write(tree / "b.py")
    examined = examine([Path()], [marked])
    observed, broken = examined.outcomes
    assert isinstance(observed, Observed)
    assert isinstance(broken, Inconclusive)
    assert [item.place.path for item in observed.evidence] == ["b.py"]
    assert broken.detector == "source"
    assert broken.why.startswith("a.py:2:")
    assert examined.files == 1


def test_of_a_broken_file_alone_nothing_is_observed(tree: Path) -> None:
    write(tree / "a.py", b"import torch\nx = '\xff'\n")
    examined = examine([Path("a.py")], [marked])
    assert [type(outcome) for outcome in examined.outcomes] == [Inconclusive]
    assert examined.files == 0


def test_a_file_that_may_not_be_read_is_inconclusive(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tree / "a.py")

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    (outcome,) = examine([Path("a.py")], [marked]).outcomes
    assert isinstance(outcome, Inconclusive)
    assert "Permission denied" in outcome.why


def test_files_of_a_folder_without_torch_are_counted_and_not_parsed(tree: Path) -> None:
    write(tree / "job/a.py", "def broken(:\n")
    examined = examine([Path("job")], [marked])
    assert examined.outcomes == (Observed("source/marked"),)
    assert examined.files == 1


def test_a_detector_that_fails_names_the_file_and_spares_the_others(tree: Path) -> None:
    write(tree / "a.py", "import torch\nfail()\nfault()\n")
    outcomes = examine([Path("a.py")], [failing, marked]).outcomes
    assert [(type(o), o.detector) for o in outcomes] == [
        (Observed, "source/marked"),
        (Inconclusive, "source/failing"),
    ]
    assert outcomes[1].why.startswith("a.py: the detector failed: IndexError")  # type: ignore[union-attr]


def test_evidence_of_all_files_is_one_outcome_in_the_order_of_the_alphabet(tree: Path) -> None:
    for name in ("b.py", "a.py"):
        write(tree / name, "import torch\nfault()\nfault()\n")
    (observed,) = examine([Path("b.py"), Path("a.py")], [marked]).outcomes
    assert isinstance(observed, Observed)
    assert [(i.place.path, i.place.line) for i in observed.evidence] == [
        ("a.py", 2), ("a.py", 3), ("b.py", 2), ("b.py", 3),
    ]  # fmt: skip


@pytest.mark.parametrize("is_on", [True, False])
def test_the_garbage_collector_is_left_as_it_was(tree: Path, is_on: bool) -> None:
    write(tree / "a.py")
    before = gc.isenabled()
    try:
        (gc.enable if is_on else gc.disable)()
        examine([Path("a.py")], [marked])
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if before else gc.disable)()


def test_a_place_says_line_column_and_the_text_that_finds_it_again(tree: Path) -> None:
    write(tree / "a.py", "import torch\nif torch:\n    fault(\n        1)\n")
    (observed,) = examine([Path("a.py")], [marked]).outcomes
    assert isinstance(observed, Observed)
    place = observed.evidence[0].place
    assert (place.line, place.column, place.end_line, place.anchor) == (3, 5, 4, "fault(")


def reasons(paths: list[str]) -> list[tuple[str, str]]:
    outcomes = examine([Path(path) for path in paths], [marked]).outcomes
    return [(each.why, each.unblock) for each in outcomes if isinstance(each, Inconclusive)]


@pytest.mark.parametrize("named", ["job/queue.py", "job"])
def test_a_pipe_is_not_opened(tree: Path, named: str) -> None:
    write(tree / "job/a.py")
    os.mkfifo(tree / "job/queue.py")
    assert reasons([named]) == [("job/queue.py:1: no regular file: it is not opened", UNOPENED)]


UNOPENED = "Name a regular .py file, or leave it out."


@pytest.mark.parametrize("named", ["job/link.py", "job"])
def test_a_link_to_nowhere_says_that_its_target_is_missing(tree: Path, named: str) -> None:
    write(tree / "job/a.py")
    (tree / "job/link.py").symlink_to("gone.py")
    ((why, _),) = reasons([named])
    assert why == "job/link.py:1: the link's target gone.py is missing"


def test_a_link_that_leads_to_itself_says_that_its_target_is_missing(tree: Path) -> None:
    write(tree / "job/a.py")
    (tree / "job/link.py").symlink_to("link.py")
    ((why, _),) = reasons(["job"])
    assert "target link.py is missing" in why


def test_a_file_that_was_named_is_read_even_where_it_mentions_no_torch(tree: Path) -> None:
    write(tree / "job/broken.py", "x = (\n")
    (named,) = examine([Path("job/broken.py")], [marked]).outcomes
    assert isinstance(named, Inconclusive)
    assert named.why.startswith("job/broken.py:1: ")

"""A file is examined once: the same content under the same name is remembered, outside of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source import names
from torchtriage.examine.source.files import STDIN, Means, examine, named
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.seen import Memory, Seen, look
from torchtriage.triage import detectors

TORCH = b"import torch\nfault()  # torchtriage: ignore[other] because it is meant\n"
looked: list[str] = []


@detector("source/marked")
def marked(script: Script):
    """A call of fault()."""
    looked.append(script.text.path)
    yield from (Sighting(script.place(call.node), value=1.5) for call in script.calls("fault"))


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    looked.clear()
    file = tmp_path / "rules.py"
    file.write_text("the program\n")
    return file


def memory(code: Path) -> Memory:
    return Memory([code], code.parent / "home")


def test_what_was_seen_is_remembered_as_it_was(code: Path) -> None:
    seen = look("a.py", TORCH, [marked])
    assert memory(code).recall("a.py", TORCH) is None
    memory(code).keep("a.py", TORCH, seen)
    assert memory(code).recall("a.py", TORCH) == seen
    assert (len(seen.evidence), len(seen.inconclusive)) == (1, 1)


@pytest.mark.parametrize(("path", "data"), [("b.py", TORCH), ("a.py", TORCH + b"\n")])
def test_another_name_or_content_is_not_known(path: str, data: bytes, code: Path) -> None:
    memory(code).keep("a.py", TORCH, Seen())
    assert memory(code).recall(path, data) is None


def test_a_changed_program_remembers_nothing(code: Path) -> None:
    memory(code).keep("a.py", TORCH, Seen())
    code.write_text("the program, mended\n")
    assert memory(code).recall("a.py", TORCH) is None


def test_only_the_memories_of_the_last_versions_stay(code: Path) -> None:
    for version in range(5):
        code.write_text("x" * version)
        memory(code).keep("a.py", TORCH, Seen())
    assert len(list((code.parent / "home").iterdir())) == 3


def test_a_damaged_memory_is_no_memory(code: Path) -> None:
    memory(code).keep("a.py", TORCH, Seen())
    (file,) = (code.parent / "home").rglob("*.json")
    file.write_bytes(b'{"evidence": [1')
    assert memory(code).recall("a.py", TORCH) is None


def test_a_home_that_cannot_be_written_costs_nothing(code: Path) -> None:
    (code.parent / "home").write_text("a file")
    memory(code).keep("a.py", TORCH, Seen())
    assert memory(code).recall("a.py", TORCH) is None


def test_a_file_that_did_not_change_is_not_looked_at_again(code: Path) -> None:
    Path("a.py").write_bytes(TORCH)
    means = Means(memory=memory(code))
    first = examine([Path("a.py")], [marked], means)
    assert examine([Path("a.py")], [marked], means) == first
    assert looked == ["a.py"]


def test_stdin_is_examined_under_the_name_that_stands_for_it(code: Path) -> None:
    (observed, _) = examine([STDIN], [marked], Means(stdin=TORCH)).outcomes
    assert [each.place.path for each in observed.evidence] == ["-"]  # type: ignore[union-attr]


def test_only_a_bare_dash_is_stdin(code: Path) -> None:
    Path("-").write_bytes(TORCH)
    assert [named("-"), named("./-"), named("a.py")] == [STDIN, Path("-").absolute(), Path("a.py")]
    (observed, _) = examine([named("./-")], [marked], Means()).outcomes
    assert [each.place.path for each in observed.evidence] == [Path("-").absolute().as_posix()]  # type: ignore[union-attr]


def test_several_processes_see_what_one_sees_in_the_same_order(code: Path) -> None:
    Path("job").mkdir()
    for number in range(40):
        Path(f"job/{number:02}.py").write_bytes(TORCH if number % 3 else b"import torch\nx = (\n")
    one, four = (examine([Path("job")], [marked], Means(jobs=jobs)) for jobs in (1, 4))
    assert one == four
    assert one.files == 26


CALLED = "; ".join(f"f{number}(x)" for number in range(6))
CIRCLES = "".join(f"def f{number}(x):\n    {CALLED}\n\n" for number in range(6))
STEP = "def t(model, opt, loader):\n  for x in loader:\n    model(f3(x)).backward()\n    opt.step()\n"
ENTANGLED = f"import torch\n{CIRCLES}{STEP}".encode()


def test_functions_that_call_each_other_in_circles_are_followed_as_far_as_the_bound_goes() -> None:
    seen = look("a.py", ENTANGLED, tuple(detectors("rules")))
    assert seen.is_read
    assert [each.why.partition(": one takes")[0] for each in seen.inconclusive] == [
        "a.py: 1 of 1 functions that nothing here calls were not followed to their end"
    ]


def test_code_that_is_too_entangled_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MOST", 100)
    seen = look("a.py", ENTANGLED, tuple(detectors("rules")))
    assert {each.why for each in seen.inconclusive} == {"a.py: the code is too entangled to be followed"}


LONG = "import torch\nweight = torch.nn.Parameter(torch.ones(1))\n(weight * 2).sum().backward()\n"


def test_a_program_that_is_not_followed_to_its_end_is_told_once() -> None:
    source = f"{LONG}for a in range(60):\n    for b in range(60):\n        for c in range(60):\n            d = a + b\n"
    seen = look("long.py", source.encode(), tuple(detectors("rules")))
    (told,) = [each for each in seen.inconclusive if each.detector == "source/execution"]
    assert told.why.startswith("long.py: the program was not followed to its end: it takes more than 60,000 steps")
    assert look("long.py", LONG.encode(), tuple(detectors("rules"))).inconclusive == ()

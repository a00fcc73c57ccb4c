"""By execution: each planted bug fails before its reference patch and passes after it; patches that seem right fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from torchtriage_evals.programs.program import Edit, Program, edited, program, slugs
from torchtriage_evals.programs.runner import Runner, surroundings

PROGRAMS = [program(slug) for slug in slugs()]
NOTHING = "def check(program):\n    program.main()\n"


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as running:
        yield running


@pytest.fixture
def check(tmp_path: Path) -> Path:
    path = tmp_path / "check.py"
    path.write_text(NOTHING)
    return path


BROKEN = [each for each in PROGRAMS if not each.sound]
SOUND = [each for each in PROGRAMS if each.sound]


@pytest.mark.parametrize("each", BROKEN, ids=lambda each: each.slug)
def test_a_broken_program_fails_for_its_reason_and_passes_after_the_reference_patch(
    each: Program, runner: Runner
) -> None:
    before, after = runner.judge(each.text, each.check), runner.judge(each.mended, each.check)
    assert not before.passed
    assert each.patches.told in before.why
    assert after.passed, after.why


WRONG = [(each, number) for each in PROGRAMS for number in range(len(each.patches.wrong))]


@pytest.mark.parametrize(("each", "number"), WRONG, ids=[f"{each.slug} {number}" for each, number in WRONG])
def test_a_patch_that_only_seems_right_fails_for_its_reason(each: Program, number: int, runner: Runner) -> None:
    wrong = each.patches.wrong[number]
    verdict = runner.judge(each.wrongly(wrong), each.check)
    assert not verdict.passed, wrong.why
    assert wrong.told in verdict.why


OTHER = [(each, number) for each in PROGRAMS for number in range(len(each.patches.other))]


@pytest.mark.parametrize(("each", "number"), OTHER, ids=[f"{each.slug} {number}" for each, number in OTHER])
def test_another_right_patch_passes_as_well(each: Program, number: int, runner: Runner) -> None:
    verdict = runner.judge(each.otherwise[number], each.check)
    assert verdict.passed, verdict.why


@pytest.mark.parametrize("each", SOUND, ids=lambda each: each.slug)
def test_a_sound_program_passes_as_it_is(each: Program, runner: Runner) -> None:
    assert runner.judge(each.text, each.check).passed
    assert each.mended == each.text
    assert each.patch == ""


def test_there_are_programs_of_which_each_has_patches_that_only_seem_right() -> None:
    assert len(BROKEN) >= 24
    assert min(len(each.patches.wrong) for each in BROKEN) >= 2
    assert len(SOUND) >= 5
    assert sum(bool(each.patches.other) for each in BROKEN) >= len(BROKEN) - 1
    assert min(len(each.patches.wrong) for each in SOUND) >= 1


@pytest.mark.parametrize("each", PROGRAMS, ids=slugs())
def test_a_program_says_nothing_of_its_bug(each: Program) -> None:
    words = {"bug", "fixme", "todo", "wrong", "broken", "leak", "fix", "expect"}
    assert words & {word.strip(".,:;()#\"'") for word in each.text.lower().split()} == set()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def main(): pass", ""),
        ("def main(): raise KeyError('x')", "KeyError: 'x'"),
        ("def main(): assert 1 == 2", "AssertionError"),
        ("def main(:", "SyntaxError"),
        ("import sys\nsys.exit(0)", "SystemExit: 0"),
        ("import os\nos._exit(0)", "the process ended without a verdict"),
        ("def main():\n    while True: pass", "still running after 0.5 s"),
        ("import os, time\ndef main():\n    os.fork() or time.sleep(60)", ""),
        ("def other(): pass", "has no attribute 'main'"),
        ("def main(): print('loud', flush=True)", ""),
    ],
    ids=[
        "sound",
        "raises",
        "asserts",
        "no Python",
        "exits",
        "ends at once",
        "never ends",
        "forks",
        "no main",
        "prints",
    ],
)
def test_a_program_that_raises_ends_or_never_ends_is_told_from_one_that_passes(
    text: str, why: str, runner: Runner, check: Path
) -> None:
    verdict = runner.judge(text, check, limit=0.5)
    assert verdict.passed == (not why)
    assert why in verdict.why


def test_a_program_runs_in_an_empty_folder_that_is_gone_afterwards(runner: Runner, check: Path, tmp_path: Path) -> None:
    note = tmp_path / "where"
    text = f"import os\ndef main():\n    open({str(note)!r}, 'w').write(os.getcwd() + ' ' + ' '.join(os.listdir()))"
    assert runner.judge(text, check).passed
    folder, *names = note.read_text().split()
    assert names == ["program.py"]
    assert not Path(folder).exists()


def test_one_program_leaves_nothing_to_the_next(runner: Runner, check: Path) -> None:
    assert runner.judge("import torch\ndef main(): torch.relu = None", check).passed
    assert runner.judge("import torch\ndef main(): torch.relu(torch.ones(1))", check).passed


def test_a_runner_that_has_ended_says_so(check: Path) -> None:
    running = Runner()
    running.close()
    with pytest.raises((RuntimeError, ValueError)):
        running.judge("", check)


def test_a_patch_can_be_shown_as_a_difference() -> None:
    assert "+        optimizer.step()\n" in program("gradients-cleared-before-the-step").patch


def test_an_edit_replaces_what_is_there_once_or_is_refused() -> None:
    assert edited("a b", (Edit("b", "c"),), "x") == "a c"
    with pytest.raises(ValueError, match="x: 'a' is there 2 times"):
        edited("a a", (Edit("a", "b"),), "x")
    with pytest.raises(ValueError, match="no program 'nothing'; there are best-that"):
        program("nothing")


def test_a_program_is_given_no_key_of_a_provider() -> None:
    given = surroundings(
        {"PATH": "/bin", "LC_ALL": "C", "OPENAI_API_KEY": "k", "AWS_SECRET_ACCESS_KEY": "k", "HF_TOKEN": "k"}
    )
    assert given == {"PATH": "/bin", "LC_ALL": "C", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

"""bench/remedies.py --held: the cases can be read, and `check` proposes an edit for the fault of each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from remedies_held.cases import HERE, Case, changed, read

from torchtriage.examine.trial.experiment.remedies import Verdict

CASES = read()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_check_proposes_one_edit_for_the_fault_of_each_case(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in case.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    remedy = case.remedy()
    assert remedy.files
    for path, data in remedy.files.items():
        assert data.decode() != case.files[path]
        compile(data, path, "exec")


def test_names_are_unique_and_each_case_says_why() -> None:
    assert max(Counter(case.name for case in CASES).values()) == 1
    assert all(case.why.endswith(".") for case in CASES)


def test_each_verdict_has_a_dozen_cases_and_eight_programs_are_edited() -> None:
    assert min(Counter(case.verdict for case in CASES).values()) >= 12
    assert {case.verdict for case in CASES} == {Verdict.HELPS, Verdict.SAME, Verdict.HARMS}
    assert len({case.program or case.mutant for case in CASES}) >= 8
    assert {each.parent.name for each in HERE.glob("programs/*/train.py")} <= {case.program for case in CASES}


def test_an_old_text_that_is_there_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="is 2 times in"):
        changed({"train.py": "x = 1\nx = 1\n"}, [("train.py", "x", "y")])

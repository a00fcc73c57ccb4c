"""The tables are sound, and a broken one is named."""

from __future__ import annotations

import shutil
from itertools import combinations
from pathlib import Path

import msgspec
import pytest

from torchtriage.catalog.load import read as read_catalog
from torchtriage.core.errors import TriageError
from torchtriage.core.query import ClaimKind, PressureKind
from torchtriage.routing import build, draft, selfcheck, tables
from torchtriage.routing.compiled import lexicon
from torchtriage.routing.phrases import Branch, compile_phrases

CATALOG = read_catalog()
WORDS = build.vocabulary(build.read("words", build.Words))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the tables that may be broken."""
    for path in tables.files():
        shutil.copy(path, tmp_path)
    return tmp_path


def test_what_is_compiled_is_what_the_files_say() -> None:
    assert build.build() == lexicon()


def test_a_misspelt_column_is_named_with_its_file(folder: Path) -> None:
    path = folder / "questions.toml"
    path.write_text('[[question]]\nname = "x"\nphrase = ["y"]\nquestion = "?"\noptions = ["z"]\n', encoding="utf-8")
    with pytest.raises(TriageError, match=r"questions\.toml: broken table: .*phrase"):
        build.build(folder)


def test_a_table_that_is_no_toml_is_named(folder: Path) -> None:
    (folder / "claims.toml").write_text("[[", encoding="utf-8")
    with pytest.raises(TriageError, match=r"claims\.toml: broken table"):
        build.build(folder)


def test_a_phrase_that_says_nothing_is_named(folder: Path) -> None:
    path = folder / "words.toml"
    path.write_text(path.read_text(encoding="utf-8").replace('"memory network"', '"the"'), encoding="utf-8")
    with pytest.raises(TriageError, match="phrase 'the'"):
        build.build(folder)


def test_no_phrase_belongs_to_two_symptoms() -> None:
    names = list(CATALOG.symptoms)
    trie = compile_phrases([symptom.phrases for symptom in CATALOG.symptoms.values()], WORDS)
    ends = [msgspec.json.decode(branch, type=Branch).ends for branch in trie.branches.values()]
    shared = [[names[each] for each in numbers] for branch in ends for numbers in branch.values() if len(numbers) > 1]
    assert shared == []


def test_a_symptom_says_what_a_step_needs() -> None:
    for slug, symptom in CATALOG.symptoms.items():
        assert symptom.title, slug
        assert symptom.because.endswith("."), slug
        assert symptom.phrases, slug
        assert symptom.collect, slug
        assert symptom.read in {None, symptom.specialist}, slug


def test_a_fault_that_a_signature_names_has_a_page() -> None:
    named = {fault for _, signature in lexicon().signatures for fault in signature.faults}
    assert named <= set(CATALOG.faults)


def test_signatures_have_names_of_their_own() -> None:
    names = [signature.name for _, signature in lexicon().signatures]
    assert len(set(names)) == len(names) >= 40


def test_all_kinds_of_claim_and_pressure_have_rows() -> None:
    assert {row.kind for row in lexicon().claims} == set(ClaimKind)
    assert {row.kind for row in lexicon().pressures} == set(PressureKind)
    assert len(lexicon().pressures) == 10


def test_every_place_to_refer_to_has_a_row() -> None:
    assert {row.refer_to for row in lexicon().referrals} == {
        "training-optimization",
        "neural-architectures",
        "ml-production",
        "other-framework",
        "environment",
        "theory",
    }


def test_red_flags_lead_to_five_specialists_and_six_checks_exist() -> None:
    flags = build.read("redflags", draft.RedFlags).flag
    assert {row.specialist for row in flags} <= set(CATALOG.specialists)
    assert len({row.specialist for row in flags}) == 5
    assert len(build.read("selfcheck", selfcheck.Checks).check) == 6


def test_the_four_ambiguous_queries_have_questions_of_their_own() -> None:
    questions = [row.question for row in lexicon().questions[:4]]
    assert all(one != other for one, other in combinations(questions, 2))

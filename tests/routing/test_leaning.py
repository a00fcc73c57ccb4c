"""Where the words lean: what ships is complete and of today, and its arithmetic is plain; only clear cases are named."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import torchtriage
from torchtriage.catalog.load import catalog
from torchtriage.catalog.scenarios import Report, reports
from torchtriage.core.plain import row
from torchtriage.core.plan import Plan, Question
from torchtriage.core.query import Leaning
from torchtriage.interface.cli.batch import answer
from torchtriage.report.route import as_dict
from torchtriage.routing import leaning
from torchtriage.routing.compiled import lexicon
from torchtriage.routing.gist import Gist, gist
from torchtriage.routing.leaning import BITS, MOST, OFFSET, TOLD, features, lean, length, others, slot, weights
from torchtriage.routing.listen import attend, listen
from torchtriage.routing.order import order
from torchtriage.triage import ask, heard

ROOT = Path(torchtriage.__file__).parents[2]
NOTHING = Gist((), (), (), ())


@cache
def learning() -> ModuleType:
    """learn/leaning.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("learn_leaning", ROOT / "learn/leaning.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def known() -> leaning.Weights:
    found = weights()
    assert found is not None
    return found


def leant(text: str) -> Leaning:
    found = listen(text).leaning
    assert found is not None
    return found


# What ships.


def test_there_are_weights_for_every_specialist_and_every_kind_of_answer() -> None:
    referrals = {f"referral {row.refer_to}" for row in lexicon().referrals}
    assert set(known().to) == {*catalog().specialists, "question", *referrals}
    assert known().rooms == catalog().specialists


def test_the_table_has_a_row_for_every_slot_and_a_column_for_every_answer_and_room() -> None:
    width = len(known().to) + len(known().rooms)
    assert len(known().table) == width << BITS
    assert {len(row) for row in (known().bias, *known().heard.values())} == {width}
    assert known().unit > 0


def test_no_sum_of_bytes_leaves_its_lane() -> None:
    """Of a word at most three rows are added, each of at most 128 for every answer."""
    assert 3 * 128 * len(known().to) < OFFSET


def test_what_ships_was_learned_from_the_reports_of_today() -> None:
    told, exact = learning().learned()
    assert learning().digest([*told, *exact]) == known().learned_from, "run `make learn`"


def test_what_is_held_back_is_not_learned() -> None:
    told, exact = learning().learned()
    learned = {report.text for report in (*told, *exact)}
    held = [report for report in reports() if report.held]
    assert held
    assert [report.text for report in held if report.text in learned] == []


def test_the_digest_is_of_the_reports_and_not_of_their_order() -> None:
    one, other = Report("a", "question"), Report("b", route=("performance-profiling",))
    digest = learning().digest
    assert digest([one, other]) == digest([other, one]) != digest([one])
    assert digest([one]) != digest([replace(one, kind="referral", refer_to="theory")])


@pytest.mark.parametrize(
    ("report", "name"),
    [
        (Report("a", route=("performance-profiling", "debugging-techniques")), "performance-profiling"),
        (Report("a", "question"), "question"),
        (Report("a", "referral", refer_to="theory"), "referral theory"),
    ],
)
def test_a_report_is_learned_under_the_name_of_its_first_answer(report: Report, name: str) -> None:
    assert learning().answer(report) == name
    assert name in known().to


@pytest.mark.parametrize(
    ("also", "others"), [((), 0), ((("a", "b"),), 0), ((("b",),), 1), ((("b",), ("c",)), 2), (((),), 0)]
)
def test_what_an_expert_would_also_accept_counts_for_less_than_the_label(also: Any, others: int) -> None:
    target = learning().target(Report("x", route=("a",), also=also), ["a", "b", "c"])
    assert float(target.sum()) == pytest.approx(1)
    assert int((target > 0).sum()) == 1 + others
    assert int(target.argmax()) == 0


def test_a_room_is_wanted_less_surely_where_an_expert_would_accept_the_contrary() -> None:
    sure = Report("x", route=("a", "b"), also=(("a", "c"),))
    a, b, c, d = learning().wanted(sure, ["a", "b", "c", "d"]).tolist()
    assert (a, d) == (1, 0)
    assert 0 < c < b < 1


# What is made of it.

CLEAR = [
    ("The loss becomes NaN", "debugging-techniques"),
    ("CUDA out of memory during training", "tensor-operations-and-memory"),
    ("Training is slow and GPU utilization is low", "performance-profiling"),
    ("Set up DDP for 8 GPUs", "distributed-training-strategies"),
    ("Save a checkpoint and resume training from it", "checkpointing-and-reproducibility"),
    ("Write my own torch.autograd.Function with a custom backward", "custom-autograd-functions"),
    ("How do I use mixed precision with GradScaler?", "mixed-precision-and-optimization"),
    ("It does not work", "question"),
    ("How do I deploy my model to production?", "referral ml-production"),
]


@pytest.mark.parametrize(("text", "to"), CLEAR)
def test_a_clear_query_leans_where_it_belongs(text: str, to: str) -> None:
    assert leant(text).to == to


@pytest.mark.parametrize(("text", "to"), CLEAR)
def test_the_room_that_a_clear_query_leans_to_is_the_likeliest(text: str, to: str) -> None:
    rooms = leant(text).rooms
    assert set(rooms) == set(catalog().specialists)
    if to in rooms:
        assert rooms[to] == max(rooms.values())


@given(st.text())
def test_any_text_leans_somewhere_with_a_share(text: str) -> None:
    found, words = leant(text), gist(attend(text)).words
    assert found.to in known().to
    assert 1 / len(known().to) - 0.001 <= found.share <= 1
    assert all(0 <= share <= 1 for share in found.rooms.values())
    assert len(found.words) <= TOLD
    assert set(found.words) <= set(words)


VOCABULARY = ["loss", "nan", "slow", "training", "memory", "checkpoints", "ddp", "zebra", "显存", "gradient", "#", "%"]
WORDS = st.lists(st.sampled_from(VOCABULARY) | st.text(min_size=1, max_size=12), unique=True, max_size=60).map(tuple)
NAMES = st.deferred(
    lambda: st.lists(st.sampled_from([*known().heard, "seen no-such-symptom"]), unique=True, max_size=8).map(tuple)
)


@given(WORDS, WORDS, st.lists(st.sampled_from(["rise", "room", "rise room"]), unique=True).map(tuple), NAMES)
def test_the_packed_sums_are_the_plain_sums(
    words: tuple[str, ...], pairs: tuple[str, ...], topics: tuple[str, ...], names: tuple[str, ...]
) -> None:
    told, table = Gist(words, pairs, topics, names), known()
    width = len(table.bias)
    named = [feature for word in words for feature in features(word)] + others(told)
    rows = [table.table[slot(name) * width : (slot(name) + 1) * width] for name in named]
    scores = [
        bias
        + sum((row[at] + 128) % 256 - 128 for row in rows) * table.unit / length(len(named))
        + sum(table.heard[name][at] for name in names if name in table.heard)
        for at, bias in enumerate(table.bias)
    ]
    found = lean(told)
    if not (words or names):
        assert found is None
        return
    assert found is not None
    leads = scores[: len(table.to)]
    assert leads[table.to.index(found.to)] == pytest.approx(max(leads))
    assert found.rooms == {
        name: pytest.approx(_share(scores[len(table.to) + at]), abs=0.002) for at, name in enumerate(table.rooms)
    }


def _share(score: float) -> float:
    return 1 / (1 + 2.718281828459045 ** -max(-MOST, min(MOST, score)))


def test_the_words_that_are_told_speak_for_the_answer() -> None:
    assert "nan" in leant("The loss becomes NaN").words
    assert lean(Gist((), (), (), ("seen nan-loss",))) is not None
    assert lean(Gist((), (), (), ("seen nan-loss",))).words == ()  # type: ignore[union-attr]


def test_an_empty_gist_leans_nowhere() -> None:
    assert lean(NOTHING) is None


@pytest.mark.parametrize(
    ("word", "known_by"),
    [
        ("nan", ["wnan", "snan"]),
        ("losses", ["wlosses", "sloss", "xlosse"]),
        ("train", ["wtrain", "strain"]),
        ("显存", ["w显存", "s显存"]),
    ],
)
def test_a_word_is_known_by_itself_its_stem_and_its_beginning(word: str, known_by: list[str]) -> None:
    assert features(word) == known_by


@given(st.text())
def test_every_feature_has_a_slot(feature: str) -> None:
    assert 0 <= slot(feature) < 1 << BITS


def test_a_surrogate_has_a_slot_too() -> None:
    assert slot("\udcff") != slot("")
    assert leant("loss \udcff is NaN").to == leant("loss is NaN").to


def test_long_texts_say_more_but_not_in_proportion() -> None:
    assert length(0) == length(1) == 1
    assert 1 < length(100) < 100


def test_scores_beyond_all_measure_give_shares_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    loud = replace(known(), bias=tuple(1e6 * (-1) ** at for at in range(len(known().bias))))
    monkeypatch.setattr(leaning, "weights", lambda: loud)
    found = lean(Gist((), (), (), ("phrases question",)))
    assert found is not None
    assert set(found.rooms.values()) == {0.0, 1.0}


@pytest.fixture
def unlearned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A checkout in which nothing was learned."""
    monkeypatch.setattr(leaning, "FILE", str(tmp_path / "leaning.json"))
    weights.cache_clear()
    yield
    weights.cache_clear()


@pytest.mark.usefixtures("unlearned")
def test_without_weights_nothing_leans_and_the_phrases_lead() -> None:
    assert weights() is None
    assert listen("the loss is NaN").leaning is None
    route = ask("the loss is NaN")
    assert isinstance(route, Plan)
    assert route.route[0] == "debugging-techniques"
    assert isinstance(ask("It does not work"), Question)


# What must not move it.


def test_the_order_of_sentences_on_their_own_lines_does_not_change_the_leaning(reordered: tuple[str, str]) -> None:
    first, other = map(leant, reordered)
    assert (first.to, first.words) == (other.to, other.words)
    assert first.share == pytest.approx(other.share, abs=0.002)
    assert first.rooms == pytest.approx(other.rooms, abs=0.002)


def shape(text: str) -> tuple[str, ...]:
    """The kind of the route of TEXT, and of a plan the specialists at their stages."""
    route = ask(text)
    steps = [f"{step.specialist} {step.stage.value}" for step in route.steps] if isinstance(route, Plan) else []
    return (type(route).__name__, *steps)


@given(
    st.sampled_from([text for text, _ in CLEAR]),
    st.sampled_from([str.upper, str.lower, str.title, str.swapcase]),
    st.sampled_from(["", "!", "!!!", "?", " ...", "\n\n", " :("]),
)
def test_case_and_punctuation_do_not_change_a_route(text: str, case: Any, ends: str) -> None:
    assert shape(case(text) + ends) == shape(text)


@pytest.mark.parametrize("saying", ["My boss insists.", "It is urgent.", "I think it is the scheduler.", "Thank you."])
@pytest.mark.parametrize(("text", "to"), CLEAR)
def test_what_is_said_beside_the_matter_does_not_move_the_leaning(text: str, to: str, saying: str) -> None:
    alone, beside = leant(f"{text}."), leant(f"{text}.\n{saying}")
    assert (alone.to, alone.share) == (beside.to, pytest.approx(beside.share, abs=0.002))


def test_a_batch_is_answered_as_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    texts = [*(text for text, _ in CLEAR), *(report.text for report in reports()[:: len(reports()) // 40]), ""]
    lines = [json.dumps({"id": at, "text": text}) for at, text in enumerate(texts)]
    assert answer(line.encode() for line in lines) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each.pop("id") for each in answers] == [*range(len(texts))]
    for text, each in zip(texts, answers, strict=True):
        assert each == json.loads(row(as_dict(*heard(text)))), text


def test_the_same_text_leads_to_the_same_route_whatever_was_asked_before() -> None:
    first = order(listen(CLEAR[0][0]))
    for text, _ in CLEAR:
        order(listen(text))
    assert order(listen(CLEAR[0][0])) == first

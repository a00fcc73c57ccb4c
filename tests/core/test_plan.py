from __future__ import annotations

import pytest

from torchtriage.core.plan import Plan, Question, Referral, Stage, Step, remaining


def test_stages_run_from_setup_to_treatment() -> None:
    assert sorted([Stage.TREAT, Stage.DIAGNOSE, Stage.CUSTOMISE, Stage.STRUCTURE, Stage.SETUP]) == [
        Stage.SETUP,
        Stage.STRUCTURE,
        Stage.DIAGNOSE,
        Stage.CUSTOMISE,
        Stage.TREAT,
    ]
    assert Stage.SETUP < Stage.TREAT
    assert Stage.TREAT >= Stage.DIAGNOSE


@pytest.mark.parametrize(
    ("stage", "opens_on"),
    [(Stage.TREAT, ()), (Stage.DIAGNOSE, ("compute-bound",))],
    ids=["a treatment without a condition", "a diagnosis with one"],
)
def test_exactly_the_treating_steps_wait_for_a_diagnosis(stage: Stage, opens_on: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="exactly the treating steps wait"):
        Step("mixed-precision-and-optimization", stage, "the user asked for it", opens_on=opens_on)


def test_a_plan_opens_its_treating_step_only_when_evidence_names_its_condition(plan: Plan) -> None:
    first, second = plan.steps
    assert plan.open(()) == (first,)
    assert plan.open({"input-bound"}) == (first,)
    assert plan.open({"compute-bound"}) == (first, second)


def test_a_route_names_each_specialist_once_in_order() -> None:
    memory = "tensor-operations-and-memory"
    plan = Plan(
        (
            Step("distributed-training-strategies", Stage.SETUP, "first"),
            Step(memory, Stage.DIAGNOSE, "then"),
            Step(memory, Stage.TREAT, "last", opens_on=("memory-growth",)),
        )
    )
    assert plan.route == ("distributed-training-strategies", memory)


DIAGNOSE, SETUP = Step("a", Stage.DIAGNOSE, "x"), Step("a", Stage.SETUP, "x")


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ((), "at least one step"),
        ((DIAGNOSE, SETUP), "stages decrease"),
        ((DIAGNOSE, DIAGNOSE), "visited twice"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(steps: tuple[Step, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Plan(steps)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [lambda: Question("", ("a",)), lambda: Question("what?", ())])
def test_a_question_needs_words_and_options(make: object) -> None:
    with pytest.raises(ValueError, match="needs its words and its options"):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(("to", "because"), [("", "x"), ("theory", "")])
def test_a_referral_says_to_whom_and_why(to: str, because: str) -> None:
    with pytest.raises(ValueError, match="both are needed"):
        Referral(to, because)


def test_no_route_has_a_field_for_advice() -> None:
    words = {name for kind in (Plan, Question, Referral, Step) for name in kind.__struct_fields__}
    assert not words & {"advice", "remedy", "remedies", "fix", "fixes", "solution"}


CHECK, RUN = "torchtriage check train.py", "torchtriage run --symptom loss-exploding -- train.py"
LAUNCHED = "torchtriage run --symptom ranks-disagree -- torchrun --nproc-per-node 2 train.py"


@pytest.mark.parametrize(
    ("examine", "taken", "ranks", "left"),
    [
        ((RUN, CHECK), {"run"}, 1, (CHECK,)),
        ((RUN,), {"run"}, 1, (CHECK,)),
        ((RUN, CHECK), {"run", "check"}, 1, ()),
        ((CHECK,), {"check"}, 1, ("torchtriage run -- train.py",)),
        ((RUN, CHECK), (), 1, (RUN, CHECK)),
        ((LAUNCHED,), {"run"}, 1, (LAUNCHED,)),
        ((LAUNCHED,), {"run"}, 2, (CHECK,)),
        (("torchtriage run --steps 50 -- train.py",), {"run"}, 1, ("torchtriage run --steps 50 -- train.py",)),
        (("torchtriage explain graph-retained",), {"run", "check"}, 1, ("torchtriage explain graph-retained",)),
        ((), {"run"}, 1, ()),
    ],
)
def test_a_step_does_not_ask_again_for_what_was_examined(
    examine: tuple[str, ...], taken: set[str], ranks: int, left: tuple[str, ...]
) -> None:
    step = Step("debugging-techniques", Stage.DIAGNOSE, "x", examine=examine)
    assert remaining(step, taken, ranks=ranks).examine == left

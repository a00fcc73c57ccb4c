from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from torchtriage.core.evidence import Evidence
from torchtriage.core.fault import Basis, Confidence, Fault, FaultClass, Remedy, Severity, Sign
from torchtriage.core.finding import Finding


@pytest.mark.parametrize(
    ("text", "sign"),
    [("source/x", Sign("source/x")), ("run/data-wait > 0.30", Sign("run/data-wait", 0.3))],
)
def test_a_sign_is_read_as_it_is_written(text: str, sign: Sign) -> None:
    assert Sign.parse(text) == sign


@pytest.mark.parametrize("text", ["", "run/x >", "run/x < 3", "run/x > three", "run/x > 1 > 2"])
def test_a_sign_written_otherwise_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"DETECTOR|three"):
        Sign.parse(text)


@pytest.mark.parametrize(
    ("value", "spread", "shown", "straddled"),
    [
        (0.5, None, True, False),
        (0.2, None, False, False),
        (None, None, False, False),
        (0.5, (0.4, 0.6), True, False),
        (0.5, (0.2, 0.8), False, True),
        (0.1, (0.0, 0.2), False, False),
        (0.5, (0.3, 0.8), False, True),
    ],
    ids=["above", "below", "unmeasured", "surely above", "straddling", "surely below", "touching"],
)
def test_the_near_end_of_the_interval_decides(
    seen: Callable[..., Evidence], value: float | None, spread: Any, shown: bool, straddled: bool
) -> None:
    sign, item = Sign("run/data-wait", 0.3), seen("run/data-wait", value=value, spread=spread)
    assert (sign.shows_in(item), sign.straddled_by(item)) == (shown, straddled)


def test_a_sign_is_deaf_to_other_detectors_and_a_sign_without_bound_needs_only_the_sight(
    seen: Callable[..., Evidence],
) -> None:
    assert not Sign("run/x", 0.3).shows_in(seen("run/y", value=0.9))
    assert Sign("run/x").shows_in(seen("run/x"))
    assert not Sign("run/x").straddled_by(seen("run/x", value=0.5, spread=(0.0, 1.0)))


@pytest.mark.parametrize(
    ("proof", "proven_on"),
    [("cpu", (Basis.CPU,)), ("cpu, sim", (Basis.CPU, Basis.SIM)), ("needs cuDNN, which the CPU lacks", ())],
)
def test_a_proof_names_what_has_shown_the_harm_or_says_why_nothing_has(
    fault: Fault, proof: str, proven_on: tuple[Basis, ...]
) -> None:
    assert replace(fault, proof=proof).proven_on == proven_on


@pytest.mark.parametrize("proof", ["", "gpu", "cpu, gpu", "sim;cpu", "cpu, needs CUDA"])
def test_a_proof_that_is_neither_is_refused(fault: Fault, proof: str) -> None:
    with pytest.raises(ValueError, match="in words why none has"):
        replace(fault, proof=proof)


@pytest.mark.parametrize("missing", ["id", "title", "when", "cost", "verify"])
def test_a_remedy_without_one_of_its_words_is_refused(remedy: Remedy, missing: str) -> None:
    with pytest.raises(ValueError, match=missing):
        replace(remedy, **{missing: ""})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"slug": "Clip_Before"}, "lower-case words"),
        ({"signs": ()}, "needs a sign"),
        ({"remedies": ()}, "needs a sign that shows it and a remedy"),
    ],
)
def test_a_fault_that_cannot_be_shown_or_treated_is_refused(fault: Fault, change: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        replace(fault, **change)


def test_remedies_are_numbered_in_the_order_they_stand(fault: Fault, remedy: Remedy) -> None:
    with pytest.raises(ValueError, match="numbered from 1"):
        replace(fault, remedies=(remedy, replace(remedy, id="other", order=3)))


@pytest.mark.parametrize(
    ("kind", "confidence", "severity"),
    [
        (FaultClass.ERROR, Confidence.MEDIUM, Severity.ERROR),
        (FaultClass.WRONG, Confidence.HIGH, Severity.ERROR),
        (FaultClass.WRONG, Confidence.MEDIUM, Severity.WARNING),
        (FaultClass.WASTE, Confidence.HIGH, Severity.WARNING),
        (FaultClass.ADVICE, Confidence.HIGH, Severity.INFO),
        (FaultClass.API, Confidence.HIGH, Severity.INFO),
    ],
)
def test_severity_follows_from_class_and_confidence(
    fault: Fault, kind: FaultClass, confidence: Confidence, severity: Severity
) -> None:
    assert replace(fault, kind=kind, confidence=confidence).severity is severity


def test_a_finding_reaches_its_remedies(fault: Fault, seen: Callable[..., Evidence], remedy: Remedy) -> None:
    assert Finding(fault, (seen(),)).remedies == (remedy,)


@pytest.mark.parametrize(
    ("evidence", "error"),
    [((), "needs evidence"), (("my senior says AMP",), "not evidence")],
    ids=["nothing", "a claim"],
)
def test_a_finding_without_evidence_is_refused(fault: Fault, evidence: Any, error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        Finding(fault, evidence)


def test_a_finding_refuses_evidence_that_shows_something_else(fault: Fault, seen: Callable[..., Evidence]) -> None:
    with pytest.raises(ValueError, match=r"not shown by run/clips at 0\.1"):
        Finding(fault, (seen("run/clips", value=0.1),))


def test_a_fingerprint_survives_shifted_lines_and_other_figures(fault: Fault, seen: Callable[..., Evidence]) -> None:
    def print_of(**place: Any) -> str:
        return Finding(fault, (seen(path="t.py", anchor="clip(model)", **place),)).fingerprint

    assert print_of(line=3) == print_of(line=90, value=2.0)
    assert print_of(line=3) != print_of(line=3, module="blocks.2")

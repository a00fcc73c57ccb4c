"""Cases made by hand: what every report has to show."""

from __future__ import annotations

from math import nan, sin

import pytest
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.evidence import Edit, Evidence, Inconclusive, Observed, Outcome, Place, Verdict
from torchtriage.core.fault import Confidence, EditSafety, Fault, FaultClass, Persona, Remedy, Sign
from torchtriage.core.finding import Finding
from torchtriage.core.plan import Plan, Question, Referral, Stage, Step
from torchtriage.core.query import Claim, ClaimKind, Decoded, Mention, Pressure, PressureKind, Query

# Made-up slugs: no page of a room can change what is compared with tests/golden.
CLIP = Fault(
    "example-clip",
    "mixed-precision-and-optimization",
    "Gradients are clipped while still multiplied by the loss scale",
    FaultClass.WRONG,
    Confidence.HIGH,
    Persona.DEFAULT,
    (Sign("source/example-clip"), Sign("run/example-clip")),
    (
        Remedy(
            "unscale-first",
            "Call scaler.unscale_(optimizer) before clipping",
            "Always, with a GradScaler.",
            "None.",
            1,
            "Run again: the norm after clipping is at most max_norm.",
            EditSafety.SAFE,
        ),
        Remedy(
            "no-scaler",
            "Train in bfloat16 without a scaler",
            "The device has native bfloat16.",
            "Three decimal digits of precision.",
            2,
            "Run again: the scaler is gone and the loss is finite for 1,000 steps.",
        ),
    ),
    ("not-learning",),
)
WAIT = Fault(
    "example-wait",
    "performance-profiling",
    "The step waits for data",
    FaultClass.WASTE,
    Confidence.HIGH,
    Persona.DEFAULT,
    (Sign("run/example-wait", 0.3),),
    (
        Remedy(
            "more-workers",
            "Load with more workers",
            "Fewer workers than cores, and decoding dominates the wait.",
            "Memory of one dataset copy for each worker.",
            1,
            "Run again: the share of the step spent waiting for data falls below 10 %.",
        ),
    ),
    ("training-slow", "utilisation-low"),
)
DEPRECATED = Fault(
    "example-name",
    "mixed-precision-and-optimization",
    "A deprecated name of the mixed-precision API is used",
    FaultClass.API,
    Confidence.HIGH,
    Persona.PEDANTIC,
    (Sign("source/example-name"),),
    (
        Remedy(
            "torch-amp",
            "Write torch.amp.autocast(device_type)",
            "Always.",
            "None.",
            1,
            "Run `torchtriage check` again: nothing is found.",
            EditSafety.SAFE,
        ),
    ),
)

CLIPPED = Evidence(
    "run/example-clip",
    Place("train.py", 41, 5, step=12, module="encoder.0"),
    "The gradient norm was still multiplied by 65536 when it was clipped",
    1.5e-5,
    None,
    (1.2e-5, 1.8e-5),
)
WAITED = Evidence(
    "run/example-wait", Place(rank=0), "Waiting for the next batch took most of the step", 0.62, "share", (0.58, 0.66)
)
CLIP_LINE = Evidence(
    "source/example-clip",
    Place("train.py", 41, 5, 41, anchor="clip_grad_norm_(model.parameters(), 1.0)"),
    "clip_grad_norm_ comes before scaler.unscale_(optimizer)",
    edits=(Edit("unscale-first", "train.py", 812, 812, "scaler.unscale_(optimizer)\n    "),),
)
OLD_NAME = Evidence(
    "source/example-name",
    Place("notes/try out.ipynb", 3, 6, 3, cell=2, anchor="with torch.cuda.amp.autocast():"),
    "torch.cuda.amp.autocast is deprecated",
)
BLIND = (
    Inconclusive("run/kernel-times", "the job ran on a CPU", "Run the job where it has its GPU."),
    Inconclusive("run/loss-at-chance", "the loss was never a single number", "Name the loss with --loss."),
)

PLAN = Plan(
    (
        Step(
            "debugging-techniques",
            Stage.DIAGNOSE,
            "The loss stopped being a number: find the first tensor that is not finite.",
            ("step of the first NaN", "precision", "learning rate and schedule"),
            ("non-finite-origin", "gradients-exploding", "scale-collapsing"),
            ("torchtriage run --symptom nan-loss -- train.py",),
        ),
        Step(
            "mixed-precision-and-optimization",
            Stage.TREAT,
            "Precision is changed only when it is shown to be the cause.",
            rule_out=("scale-collapsing",),
            examine=("torchtriage check train.py",),
            opens_on=("scale-collapsing", "example-clip"),
        ),
    )
)
TEXT = "NaN loss since today, my senior says AMP is to blame, it must be fixed by tonight. mat1 and mat2 shapes 4x57600"


def span(words: str) -> tuple[int, int, str]:
    return TEXT.index(words), TEXT.index(words) + len(words), words


QUERY = Query(
    TEXT,
    (Mention(*span("NaN loss"), symptom="nan-loss", specialist="debugging-techniques"),),
    (
        Claim(
            *span("AMP is to blame"),
            kind=ClaimKind.GUESSED_CAUSE,
            answer="That names a place to look; it proves nothing.",
        ),
    ),
    (
        Pressure(*span("my senior says"), kind=PressureKind.AUTHORITY, answer="Rank decides nothing here; a run does."),
        Pressure(*span("by tonight"), kind=PressureKind.TIME, answer="Ten minutes of measuring are the short way."),
    ),
    (
        Decoded(
            *span("mat1 and mat2 shapes 4x57600"),
            signature="matmul-shapes",
            fields={"shape": [4, 57600]},
            faults=("shape-mismatch",),
        ),
    ),
)

STEPS = 60
SHARES = {
    "data": 0.62,
    "transfer": 0.01,
    "forward": 0.14,
    "backward": 0.17,
    "optimizer": 0.03,
    "communication": 0.0,
    "idle": 0.0,
    "other": 0.03,
}
DIFFERING = ((0, 0), (1, 0), (2, 0), (4, 0), (8, 3), (16, 20), (32, 34))
MEASURED = {
    "setup": {
        "torch": "2.13.0",
        "python": "3.11.9",
        "devices": ["cpu"],
        "optimizer": "AdamW",
        "parameters": {"float32": 1_200_000},
        "world_size": 1,
    },
    "steps": STEPS,
    "step_time": {"median": 0.412, "p10": 0.398, "p90": 0.431, "interval": [0.409, 0.416]},
    "shares": SHARES,
    "memory": {"rss": {"first": 2.1 * 2**30, "last": 3.2 * 2**30, "highest": 3.2 * 2**30}, "peak": None},
    "overhead": 0.008,
}


@pytest.fixture
def query() -> Query:
    return QUERY


@pytest.fixture
def plan() -> Plan:
    return PLAN


def _series() -> dict[str, object]:
    """Pairs of step and figure, and the columns of the timeline."""
    wobble = [1 + 0.05 * sin(step) for step in range(STEPS)]
    phases = {name: [share * 0.412 * each for each in wobble] for name, share in SHARES.items()}
    rss = [(2.1 + 0.018 * step) * 2**30 for step in range(STEPS)]
    loss = [[step, 2.3 * 0.97**step if step < 41 else nan] for step in range(STEPS)]
    return {"loss": loss, "timeline": {"step": list(range(STEPS)), **phases, "rss": rss}}


def _ill_run() -> Case:
    seen: tuple[Outcome, ...] = (
        Observed("run/example-clip", (CLIPPED,)),
        Observed("run/example-wait", (WAITED,)),
        *BLIND,
    )
    lines = Finding(CLIP, (CLIP_LINE,))
    findings = (Finding(CLIP, (CLIPPED,)), lines, Finding(WAIT, (WAITED,)))
    given = Verdict("example-wait", "The input pipeline sets the pace", (WAITED,))
    return Case(QUERY, PLAN, seen, findings, (given,), {**MEASURED, **_series()})


def _healthy_run() -> Case:
    busy = Evidence("run/compute-share", Place(rank=0), "The device computed", 0.93, "share", (0.92, 0.94))
    given = Verdict("compute-bound", "The step spends its time computing", (busy,))
    measured = {
        **MEASURED,
        "shares": {"data": 0.02, "forward": 0.35, "backward": 0.55, "optimizer": 0.05, "other": 0.03},
    }
    return Case(outcomes=(Observed("run/compute-share", (busy,)), BLIND[0]), verdicts=(given,), measurements=measured)


def _rank(rank: int, host: str, differs: dict[str, float], **each: object) -> dict[str, object]:
    """One rank of four that takes 412 ms for a step, and so much more or less in some phases."""
    usual = {name: share * 0.412 for name, share in SHARES.items() if share}
    seconds = {name: usual.get(name, 0.0) + differs.get(name, 0.0) for name in SHARES}
    known = {"host": host, "pid": 4000 + rank, "device": f"cuda:{rank % 2}", "memory": {"rss": 2.0**31, "peak": 9e9}}
    told = {"rank": rank, "steps": STEPS, "step_time": MEASURED["step_time"], "shares": SHARES, "ended": "exit"}
    return {**told, **known, "seconds": seconds, "differs": differs, "late": 0.0004, **each}


def _ranks_run() -> Case:
    """Four ranks on two hosts: one is waited for, and drifts away from the others."""
    slow = {"data": 0.0121, "backward": -0.0119}
    each = [_rank(rank, f"node-{rank // 2}", {}) for rank in range(3)]
    times = [[0.255 + 0.001 * ((step + rank) % 3) + 0.0121 * (rank == 3) for step in range(6)] for rank in range(4)]
    told = {
        "world_size": 4,
        "each": [*each, _rank(3, "node-1", slow, late=0.0123)],
        "heat": {
            "of": 4,
            "ranks": [0, 1, 2, 3],
            "steps": list(range(0, 60, 10)),
            "wide": 10,
            "phases": {"data": times},
        },
        "late": {"clock_residual": 0.0001, "steps": 58},
        "scaling": {
            "efficiency": 0.81,
            "ranks": 4,
            "samples_per_second": 324.0,
            "baseline_samples_per_second": 100.0,
        },
        "divergence": {
            "looks": [{"step": step, "differing": differing, "of": 34} for step, differing in DIFFERING],
            "first": {"step": 8, "tensor": "encoder.0.weight", "ranks": [3]},
        },
    }
    return Case(outcomes=(Observed("run/example-wait"),), measurements={**MEASURED, "ranks": told})


def _hung_run() -> Case:
    """Four ranks: three wait in a collective that one has not reached, and one of them left no steps."""
    waits = {"step": 41, "seconds": 12.5, "waits_in": "all_reduce", "seq": 83, "group": "0", "path": "train.py"}
    stands = {"step": 41, "seconds": 12.4, "waits_in": None, "path": "train.py", "line": 57, "state": "still"}
    hang = [*({"rank": rank, **waits, "line": 61, "state": "waits"} for rank in range(3)), {"rank": 3, **stands}]
    each = [_rank(rank, "node-0", {}, late=None, ended="unknown") for rank in range(3)]
    lost = {"rank": 3, "steps": 0, "step_time": None, "shares": None, "seconds": None, "ended": "unknown"}
    ranks = {"world_size": 4, "each": [*each, lost], "heat": None, "hang": hang}
    return Case(outcomes=(Observed("run/example-wait"),), measurements={**MEASURED, "ranks": ranks})


def _checked() -> Case:
    seen = (Observed("source/example-clip", (CLIP_LINE,)), Observed("source/example-name", (OLD_NAME,)))
    return Case(outcomes=seen, findings=(Finding(CLIP, (CLIP_LINE,)), Finding(DEPRECATED, (OLD_NAME,))))


CASES = {
    "ill-run": _ill_run(),
    "healthy-run": _healthy_run(),
    "ranks-run": _ranks_run(),
    "hung-run": _hung_run(),
    "checked": _checked(),
    "nothing-found": Case(outcomes=(Observed("source/example-clip"),)),
    "all-blind": Case(outcomes=BLIND),
    "planned": Case(QUERY, PLAN),
    "question": Case(
        Query("It does not work"),
        Question("What do you see?", ("an error message", "a loss that does not fall", "it is slow")),
    ),
    "referral": Case(Query("Which learning rate?"), Referral("training-optimization", "Tuning is not a fault.")),
}


def _mended() -> Case:
    """The ill run after some remedies: faster, its data nearer, and one fault gone of two that are looked for."""
    less = replace(WAITED, value=0.4, spread=(0.37, 0.43))
    measured = {
        **MEASURED,
        "step_time": {"median": 0.288, "p10": 0.28, "p90": 0.3, "interval": [0.284, 0.291]},
        "shares": {**SHARES, "data": 0.4, "forward": 0.25, "backward": 0.28},
        "memory": {"rss": {"first": 2.1 * 2**30, "last": 2.2 * 2**30, "highest": 2.2 * 2**30}, "peak": None},
    }
    seen = (Observed("run/example-clip"), Observed("run/example-wait", (less,)))
    return Case(outcomes=seen, findings=(Finding(WAIT, (less,)),), measurements=measured)


@pytest.fixture
def mended() -> Case:
    return _mended()


@pytest.fixture
def cases() -> dict[str, Case]:
    return CASES


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def ill_run() -> Case:
    return CASES["ill-run"]


@pytest.fixture
def checked() -> Case:
    return CASES["checked"]


@pytest.fixture
def clip() -> Fault:
    return CLIP

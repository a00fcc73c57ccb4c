"""Code that mypy --strict and pyright must refuse, each line for the reason beside it.

Both checkers report an ignore that nothing needs, so a refusal that is lost fails `make types`.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

import torchtriage
from torchtriage.core.evidence import Evidence, Place, Verdict
from torchtriage.core.fault import Confidence, Fault, FaultClass, Persona, Remedy, Sign
from torchtriage.core.finding import Finding
from torchtriage.core.plan import Plan, Question, Route, Stage, Step
from torchtriage.core.query import Claim, ClaimKind, Query

remedy = Remedy("id", "title", "when", "cost", 1, "verify")
fault = Fault(
    "slug", "room", "title", FaultClass.WRONG, Confidence.HIGH, Persona.DEFAULT, (Sign("source/slug"),), (remedy,)
)
seen = Evidence("source/slug", Place(path="train.py", line=3), "a fact")
claim = Claim(0, 20, "my senior says it...", kind=ClaimKind.AUTHORITY, answer="It is measured first.")
step = Step("room", Stage.DIAGNOSE, "because")

accepted = Finding(fault, (seen,)).remedies
watching = torchtriage.toolkit.watch
routes: list[Route] = [Plan((step,)), Question("what?", ("speed",))]

Finding(fault, ())  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] # no evidence
Finding(fault, (claim,))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] # a claim is not evidence
Finding(fault, (Query("it is slow"),))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] # nor are words
Plan(())  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] # no step
Question("what?", ())  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] # no options
Verdict("compute-bound", "title", ())  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] # no evidence
Remedy("id", "title", "when", "cost", 1)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue] # no verification
Step("room", "treat", "because")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] # a stage is no string
Fault("slug", "room", "title", FaultClass.WRONG, Confidence.HIGH, Persona.DEFAULT, (), (remedy,))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] # no sign
Fault("slug", "room", "title", FaultClass.WRONG, Confidence.HIGH, Persona.DEFAULT, fault.signs, ())  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] # no remedy
seen.fact = "another"  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue] # frozen
torchtriage.chekc(["train.py"])  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue] # a misspelt name
torchtriage.toolkit.wathc()  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue] # of a module, too

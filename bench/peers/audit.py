"""torch-audit: rules over parameters, gradients, activations and batches while a job runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import ClassVar

from corpus import Job
from processes import NAME, ended

from peers.peer import Peer, Said, faults

AUDITED = Path(__file__).parent / "inside/audited.py"
NOT_FINITE = faults("non-finite-origin input-not-finite gradients-exploding scale-collapsing scaler-missing",
                    "scaler-bypassed scaler-not-updated half-model-trained uninitialised-parameter")  # fmt: skip
LARGE = faults("gradients-exploding clip-before-unscale clip-after-step scaler-bypassed scaler-not-updated",
               "gradients-not-zeroed loss-not-averaged-over-accumulation scaler-touched-mid-accumulation",
               "uninitialised-parameter")  # fmt: skip
DEAD = faults("dead-units gradients-vanishing parameter-never-used loss-at-chance zeroed-before-step",
              "softmax-before-cross-entropy scaler-missing scale-collapsing half-model-trained")  # fmt: skip
NO_GRADIENT = faults("zeroed-before-step step-missing parameters-not-in-optimizer parameter-never-used",
                     "unregistered-modules unregistered-tensor wrapper-bypassed tensor-on-ctx")  # fmt: skip
UNUSED = faults("parameter-never-used unregistered-modules unregistered-tensor layers-shared-by-repetition",
                "layer-built-in-forward parameters-not-in-optimizer wrapper-bypassed")  # fmt: skip
INPUT = faults("input-not-finite non-finite-origin index-out-of-range")


class TorchAudit(Peer):
    """Its zero-touch mode, at its most thorough: every step is audited."""

    package = "torch-audit"
    how = "autopatch(model, optimizer=…, every_n_steps=1) when a model is first called"
    means: ClassVar[dict[str, frozenset[str]]] = {
        "TA100": NOT_FINITE,
        "TA102": LARGE,
        "TA103": DEAD,
        "TA104": NO_GRADIENT,
        "TA105": DEAD | faults("dropout-always-on"),
        "TA301": INPUT,
        "TA302": INPUT | faults("dataset-owned-rng"),
        "TA304": faults("mode-left-in-train"),
        "TA305": INPUT,
        "TA405": DEAD,
        "TA500": UNUSED,
        "TA501": faults("layers-shared-by-repetition"),
    }

    def said(self, job: Job) -> Said:
        folder = self.folder / "job"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / NAME).write_text(job.script, encoding="utf-8")
        left = folder / "findings.json"
        code, seconds = ended((self.tools / "python", AUDITED, NAME, left), folder)
        if not left.exists():
            return Said(frozenset(), seconds, "ran out of time" if code is None else "left no findings")
        found = json.loads(left.read_text(encoding="utf-8"))
        trouble = "" if code == job.exit else "changed how the job ends"
        return Said(frozenset((rule, severity != "INFO") for rule, severity in found), seconds, trouble)

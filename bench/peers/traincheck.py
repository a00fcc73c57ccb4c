"""TrainCheck: what always held in runs that were well, checked in another run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from corpus import Job
from processes import NAME, ended

from peers.peer import Peer, Said, faults

REFERENCES, LIMIT, SAMPLES = 2, 600.0, "1000"
MODELS = re.compile(r"^\s*(\w+)\s*=(?=.*\()", re.MULTILINE)
SCALER = faults("scaler-bypassed scaler-not-updated scaler-missing scaler-with-bf16 scale-collapsing",
                "clip-before-unscale scheduler-on-skipped-step scaler-touched-mid-accumulation")  # fmt: skip


class TrainCheck(Peer):
    """The healthy jobs of the shortest scripts are its references; the others are what it may be wrong about."""

    package = "traincheck"
    how = (f"{REFERENCES} healthy jobs, the shortest scripts, are its references (-collect, -infer), then "
           "-collect --invariants and -check of a part of the jobs")  # fmt: skip
    most = 8
    means: ClassVar[dict[str, frozenset[str]]] = {
        r"zero_grad": faults("gradients-not-zeroed zeroed-before-step"),
        r"\.step\(\)|sgd\(\)|adamw?\(\)": faults(
            "step-missing scaler-bypassed scheduler-before-optimizer clip-after-step scheduler-on-skipped-step"
        ),
        r"backward": faults("retain-graph-needless backward-in-autocast graph-retained hidden-state-not-detached"),
        r"clip_grad": faults("clip-before-unscale clip-after-step gradients-exploding"),
        r"GradScaler|unscale|_scale": SCALER,
        r"autocast": faults("backward-in-autocast half-model-trained scaler-missing scaler-with-bf16"),
        r"Parameter\.(grad|data)": faults(
            "step-missing parameters-not-in-optimizer parameter-never-used gradients-vanishing gradients-not-zeroed",
            "zeroed-before-step unregistered-modules unregistered-tensor non-finite-origin dead-units",
        ),
        r"add_param_group": faults("parameters-not-in-optimizer"),
        r"[Dd]ropout|\.training|\.eval\(\)|\.train\(\)": faults(
            "dropout-always-on mode-left-in-eval mode-left-in-train"
        ),
        r"no_grad|requires_grad": faults("eval-builds-graph parameter-never-used"),
        r"dtype": faults("half-model-trained scaler-with-bf16"),
        r"shape|nbytes": faults("loss-broadcast"),
        r"__init__|register_": faults("layer-built-in-forward unregistered-modules hook-handle-dropped"),
        r"DataLoader|Sampler|set_epoch": faults("sampler-epoch-not-set dataset-owned-rng iterable-not-sharded"),
        r"LRScheduler|LR\.": faults("scheduler-before-optimizer scheduler-on-skipped-step"),
        r"softmax|cross_entropy": faults("softmax-before-cross-entropy"),
        r"anomaly|profiler": faults("debug-left-on"),
        r"manual_seed": faults("seeds-incomplete"),
    }

    def learned(self, healthy: Sequence[Job]) -> Sequence[Job]:
        references, others = healthy[:REFERENCES], healthy[REFERENCES:]
        traces = [self._collected(job, self.folder / f"reference{number}")[0] for number, job in enumerate(references)]
        usable = [trace for trace in traces if trace]
        infer = (self.tools / "traincheck-infer", "--precond-sampling-threshold", SAMPLES)
        ended((*infer, "-f", *usable, "-o", self._invariants), self.folder, 2 * LIMIT)
        return others

    @property
    def _invariants(self) -> Path:
        return self.folder / "invariants.json"

    def said(self, job: Job) -> Said:
        if not self._invariants.exists():
            return Said(frozenset(), 0.0, "nothing was inferred from the references")
        folder = self.folder / "job"
        trace, collecting = self._collected(job, folder, "--invariants", self._invariants)
        if trace is None:
            return Said(frozenset(), collecting, "no trace could be collected")
        check = (self.tools / "traincheck-check", "-f", trace, "-i", self._invariants)
        _, checking = ended((*check, "--output-dir", folder / "checked"), folder, LIMIT)
        left = next(folder.glob("checked/*/violations_summary.json"), None)
        if left is None:
            return Said(frozenset(), collecting + checking, "the check did not end")
        violations = json.loads(left.read_text(encoding="utf-8"))["violations"]
        texts = [each["display_name"] for each in violations]
        words = frozenset((word, True) for word in self.means if any(re.search(word, text) for text in texts))
        return Said(words, collecting + checking)

    def _collected(self, job: Job, folder: Path, *how: str | Path) -> tuple[Path | None, float]:
        """A trace, with its models tracked where that can be; and the seconds of the attempt that counts."""
        for tracked in (models(job.script), ()):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / NAME).write_text(job.script, encoding="utf-8")
            track = ("--models-to-track", *tracked) if tracked else ()
            command = (self.tools / "traincheck-collect", "--pyscript", NAME, *track, *how, "--output-dir", "trace")
            code, seconds = ended(command, folder, LIMIT)
            if code == job.exit and any(folder.glob("trace/trace_*")):
                return folder / "trace", seconds
        return None, seconds


def models(script: str) -> tuple[str, ...]:
    """The variables whose parameters are asked for, and that the script assigns by a call."""
    assigned = set(MODELS.findall(script))
    asked = dict.fromkeys(re.findall(r"\b(\w+)\.parameters\(\)", script))
    return tuple(name for name in asked if name in assigned)

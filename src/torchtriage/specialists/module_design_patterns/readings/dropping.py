"""What a record says about dropouts that go on dropping in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.module_design_patterns.probes.events import Dropped

WANTED = """
    mc monte carlo uncertain uncertainty bayes bayesian stochastic ensemble noise noisy corrupt corruption corrupted
    augment augmentation perturb denoise denoising
"""  # code with such names drops by intention


@detector("run/dropout-always-on")
def dropout_always_on(record: RankRecord) -> Iterator[Sighting]:
    """A dropout that was not told the mode dropped values while the model was in evaluation mode."""
    for event in record.all(Dropped):
        if set(WANTED.split()) & set(event.words):
            continue
        place = Place(path=event.path, line=event.line, rank=record.rank, module=event.module)
        what = "a dropout layer made for the call" if event.layer else "a functional dropout"
        what = "dropout_p of scaled_dot_product_attention" if event.attention else what
        fact = f"{what} dropped values (p = {event.rate:g}) in {event.passes} passes in evaluation mode"
        yield Sighting(place, fact, float(event.passes), "passes")
        if event.from_:
            place = Place(path=event.from_[0], line=event.from_[1], rank=record.rank, module=event.module)
            yield Sighting(place, f"{event.module} calls it here", float(event.passes), "passes")

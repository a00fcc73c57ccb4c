"""What is asked: scenarios, their files, and the answers that a judge is measured by."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import msgspec
from msgspec import Struct

from torchtriage_evals.labelled import Labelled
from torchtriage_evals.pack import digest
from torchtriage_evals.prompt import FILE, Given
from torchtriage_evals.scenario import Scenario


class Source(Struct, frozen=True):
    """Scenarios with the folder of their artefacts, and labelled answers."""

    scenarios: tuple[Scenario, ...]
    labelled: tuple[Labelled, ...] = ()
    artefacts: Path = Path()

    def given(self, scenario: Scenario) -> Given | None:
        """The file that SCENARIO is about: its name says nothing. Of kind healthy it is the mended program."""
        if scenario.program:
            from torchtriage_evals.programs.program import program

            found = program(scenario.program)
            return Given(FILE, found.mended if scenario.kind == "healthy" else found.text)
        if scenario.artefact:
            path = self.artefacts / scenario.artefact
            return Given(f"evidence{path.suffix}", path.read_text(encoding="utf-8"))
        return None

    def chosen(self, kinds: Iterable[str], limit: int | None) -> Source:
        """Those of KINDS, or all, at most LIMIT: of each kind its share, the first by a checksum of their ids."""
        wanted = set(kinds)
        of_kind: dict[str, list[Scenario]] = {}
        for one in sorted(self.scenarios, key=lambda one: (crc32(one.id.encode()), one.id)):
            if not wanted or one.kind in wanted:
                of_kind.setdefault(one.kind, []).append(one)
        shares = [((at + 0.5) / len(ones), one.id, one) for ones in of_kind.values() for at, one in enumerate(ones)]
        kept = [one for _, _, one in sorted(shares, key=lambda each: each[:2])[:limit]]
        return msgspec.structs.replace(self, scenarios=tuple(sorted(kept, key=lambda one: one.id)))

    @property
    def digest(self) -> str:
        """A hash of every scenario and of what is shown with it."""
        files = {one.id: msgspec.json.encode(one).decode() for one in self.scenarios}
        shown = ((one.id, self.given(one)) for one in self.scenarios)
        return digest(files | {f"{name}/{given.name}": given.text for name, given in shown if given})

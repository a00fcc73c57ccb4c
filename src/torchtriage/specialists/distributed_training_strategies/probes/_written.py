"""Which line of the user's writes to the tensors of an optimizer beside its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .events import WrittenBeside

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

FOLLOWED = 16  # steps during which the user's lines are followed, until the one is found
AGAIN = 2  # lines that are looked for in a run
FEW = 8  # tensors that are asked after every line


class Written:
    """Looks whether a tensor was written between two steps of its optimizer, and follows the lines when one was."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.before: dict[int, list[int]] = {}  # by course: how often each tensor had been written after its last step
        self.suspects: list[Any] = []
        self.left = self.found = 0
        self.follower: Any = None
        self.names: list[str] = []

    def watching(self) -> None:
        """A window begins: what was noted before is out of date."""
        self.ending()
        self.before.clear()

    def ending(self) -> None:
        """Nothing of the user's is followed any more."""
        if self.follower is not None:
            self.follower.stop()
            self.follower = None

    def stepping(self, course: Any) -> None:
        """An optimizer is about to step."""
        if self.follower is not None:
            self.told(course)
        if course is None or course.tracked is None:
            return
        before = self.before.pop(course.number, None)
        if before is None or self.found >= AGAIN or self.left:
            return
        now, kinds = course.tracked.written(), course.tracked.kinds
        changed = [number for number, then in enumerate(before) if then != now[number] and kinds[number] != "b"]
        if changed:
            self.suspects = [course.tracked.tensors[number] for number in changed[:FEW]]
            self.names = [course.tracked.names[number] for number in changed[:FEW]]
            self.left = FOLLOWED

    def stepped(self, course: Any) -> None:
        """It has stepped."""
        if course is None or course.tracked is None or self.found >= AGAIN:
            return
        self.before[course.number] = course.tracked.written()
        if self.left and self.follower is None:
            self.left -= 1
            versions = [(each, each()._version) for each in self.suspects if each() is not None]
            self.follower = self.job.follow(lambda: any(_newer(each, then) for each, then in versions))

    def told(self, course: Any) -> None:
        found = self.follower.stop()
        self.follower = None
        if found:
            self.left, self.found = 0, self.found + 1
            path, line = found[0]
            turn = course.turns if course is not None else None
            self.job.record(WrittenBeside(path=path, line=line, names=self.names, turn=turn))


def _newer(kept: Any, then: int) -> bool:
    tensor = kept()
    return tensor is not None and tensor._version != then

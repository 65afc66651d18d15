"""What is printed: a line a round, and at the end a table by fault."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True)
class Round:
    number: int
    faults: tuple[str, ...]
    events: tuple[str, ...]
    """What else happened: a defect was planted, or healed."""
    rest_s: float | None
    """From the end of the faults until rest; None where it did not come."""
    counts: dict[str, int] = field(default_factory=dict)
    findings: tuple[str, ...] = ()

    def __str__(self) -> str:
        rest = "never at rest" if self.rest_s is None else f"at rest after {self.rest_s:5.1f} s"
        counted = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        what = " + ".join(self.faults) + "".join(f"; {event}" for event in self.events)
        verdict = "ok" if not self.findings else "FAILED"
        return f"{self.number:4}  {verdict:6}  {what:60}  {rest}; {counted}" + "".join(
            f"\n        {finding}" for finding in self.findings
        )


def table(rounds: Sequence[Round]) -> str:
    """By fault: rounds, median and maximum of the seconds until rest, and how many rounds failed. In Markdown, for docs/soak.md."""
    by_fault: dict[str, list[Round]] = defaultdict(list)
    for each in rounds:
        for fault in each.faults:
            by_fault[fault].append(each)
    lines = ["| Fault | Rounds | Seconds until rest, median | at most | Failed |", "|---|---|---|---|---|"]
    lines += [_row(fault, which) for fault, which in sorted(by_fault.items())]
    return "\n".join([*lines, _row("all", rounds)])


def _row(name: str, rounds: Sequence[Round]) -> str:
    seconds = [each.rest_s for each in rounds if each.rest_s is not None]
    times = f"{median(seconds):.1f} | {max(seconds):.1f}" if seconds else "- | -"
    return f"| {name} | {len(rounds)} | {times} | {sum(bool(each.findings) for each in rounds)} |"

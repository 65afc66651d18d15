"""Which team a line of the audit log is about: its administrators read it. What is of no team, whoever runs the instance reads."""

from __future__ import annotations

from dataclasses import dataclass

from django.apps import apps
from django.conf import settings


@dataclass(frozen=True)
class SubjectKind:
    """How the team of a subject is found: `model` (`catalog.Dataset`) by `lookup`, and from there along `team`."""

    model: str
    lookup: str
    team: str

    @classmethod
    def named(cls, kind: str) -> SubjectKind | None:
        path = settings.LAKEHUB_AUDIT_SUBJECTS.get(kind)
        return cls(*path) if path else None

    def find_team(self, name: str) -> int | None:
        if self.lookup == "pk" and not name.isdecimal():
            return None
        rows = apps.get_model(self.model)._default_manager.filter(**{self.lookup: name})
        team: int | None = rows.values_list(self.team, flat=True).first()
        return team


def team_of_subject(subject: str) -> int | None:
    """The key of the team that `dataset:flights` or `incident:214` belongs to now; None: none, or there is no such thing."""
    kind, _, name = subject.partition(":")
    subject_kind = SubjectKind.named(kind)
    # A copy is named `flights@dc1`; no other name has an @.
    return subject_kind.find_team(name.partition("@")[0]) if subject_kind else None

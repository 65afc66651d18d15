"""Who may register a pipeline: its table holds rows of its inputs, and belongs to the team that its files name."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied

from ingestion.pipelines.checking import Checked
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require, role_names
from lakehub.catalog.models import Dataset
from lakehub.catalog.request_permissions import without_rows


def require_registration(user: User | AnonymousUser, checked: Checked) -> None:
    """Of whoever registers, changes or plans it: the right to onboard in the team that gets the table and in the one that has it, and to see rows in the team of
    each input, whatever the change is. Raises PermissionDenied."""
    require(user, "onboard", checked.team)
    if checked.target is not None:
        require(user, "onboard", checked.target.team)
    if hidden := without_rows(user, dict.fromkeys(checked.inputs.values())):
        raise PermissionDenied(_refusal(user, hidden))


def _refusal(user: User | AnonymousUser, hidden: Sequence[Dataset]) -> str:
    named = ", ".join(f"`{each.name}` of team {each.team.name}" for each in hidden)
    needed = f"The pipeline reads rows of {named}: for that you need to be {role_names('see rows')} there."
    limit = getattr(user, "token_team", None)
    if limit is not None:
        return f"{needed} This token acts for team {limit.name} only: register the pipeline signed in, or ask the operator to."
    return f"{needed} An admin of the team can add you to it."

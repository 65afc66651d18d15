"""Registers versions of schemas, finds them, and says which may follow."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from ingestion.domain.avro.compatibility import (
    MAX_PAIRS,
    MAX_PAIRS_OF_ALL,
    MAX_REASONS,
    Compatibility,
    Refusal,
    TooManyPairs,
    refusals,
)
from ingestion.models import SchemaSubject, SchemaVersion
from ingestion.schemas.avro_text import digest_of, parsed
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.suggest import did_you_mean

DEFAULT_RULE = Compatibility.BACKWARD
MAX_VERSIONS = 1_000
MAX_WHY = 2_000
_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,200}")
"""`.` and `..` have no address: browsers take them for steps of a path."""
_OF_CAPTURES = re.compile(r".*\.[0-9]+")
"""The subjects of captured datasets, of which the next one can be guessed: whoever had it first would own the schema of somebody else's table."""
_NAMED_REASONS = 5


class Incompatible(Conflict):
    """The subject's rule is against the schema; the message says why."""


class SubjectNotFound(NotFound):
    pass


class VersionNotFound(NotFound):
    pass


class InvalidVersion(Refused):
    pass


class InvalidRule(Refused):
    pass


def register(
    subject_name: str,
    text: str,
    *,
    team: Team,
    actor: str,
    now: datetime,
    after: int | None = None,
    is_captured: bool = False,
) -> SchemaVersion:
    """The version that has this schema, a new one where there is none. `team`: that of a new subject. `after`: the number of the newest
    version that the schema was looked at beside, 0 where there was none; None: whichever it is. `is_captured`: it is the subject of a captured dataset, for
    whose team it is registered. Raises Refused, Incompatible, Conflict."""
    schema = parsed(text)
    with transaction.atomic():
        if not (is_captured or SchemaSubject.objects.filter(name=subject_name).exists()):
            require_new_name(subject_name)
        subject = _locked_subject(subject_name, team, actor=actor, now=now)
        if subject.team_id != team.pk:
            raise Conflict(
                f"{subject_name!r} belongs to team {subject.team} now: somebody registered it at the same time."
            )
        known = subject.versions.filter(digest=digest_of(schema)).first()
        if known is not None:
            return known
        newest = _newest_number(subject)
        if after is not None and after != newest:
            raise Conflict(
                f"Version {newest} of {subject} was registered in the meantime: look at what changes from that one."
            )
        if reasons := _problems(subject, schema, subject.versions.all(), is_captured=is_captured):
            raise Incompatible(f"The schema may not follow version {newest} of {subject}. {_text(reasons)}")
        number = newest + 1
        version = subject.versions.create(
            version=number, text=text, digest=digest_of(schema), registered_by=actor, registered_at=now
        )
        audit_log.record(actor, "register schema", f"schema:{subject}", now=now, version=number, id=version.pk)
    return version


def compatibility_problems(subject_name: str, text: str, *, version: int | None = None) -> tuple[Refusal, ...]:
    """Why the schema may not follow, by the subject's rule; of one version, where it is named. Raises Refused, NotFound."""
    schema, subject = parsed(text), find_subject(subject_name)
    if version is not None:
        find_version(subject_name, version)
    return _problems(subject, schema, subject.versions.filter(**({} if version is None else {"version": version})))


def subjects() -> QuerySet[SchemaSubject]:
    return SchemaSubject.objects.order_by("name")


def find_subject(name: str) -> SchemaSubject:
    subject = SchemaSubject.objects.select_related("team").filter(name=name).first()
    if subject is None:
        names = SchemaSubject.objects.values_list("name", flat=True)[:1000]
        raise SubjectNotFound(f"There is no subject {name!r}.{did_you_mean(name, names)}")
    return subject


def find_version(subject_name: str, version: int | None = None) -> SchemaVersion:
    """None: the newest."""
    versions = find_subject(subject_name).versions.select_related("subject__team").order_by("-version")
    sought = (versions if version is None else versions.filter(version=version)).first()
    if sought is None:
        raise VersionNotFound(f"The subject {subject_name!r} has no version {'yet' if version is None else version}.")
    return sought


def find_by_id(schema_id: int) -> SchemaVersion:
    version = SchemaVersion.objects.select_related("subject").filter(pk=schema_id).first()
    if version is None:
        raise NotFound(f"There is no schema with the id {schema_id}.")
    return version


def find_registered(subject_name: str, text: str) -> SchemaVersion:
    """The version that has this schema. Raises Refused, NotFound."""
    version = (
        find_subject(subject_name).versions.select_related("subject").filter(digest=digest_of(parsed(text))).first()
    )
    if version is None:
        raise NotFound(f"No version of {subject_name!r} is this schema.")
    return version


def set_team(subject: SchemaSubject, team: Team, *, actor: str, now: datetime) -> None:
    """Hands a subject over."""
    with transaction.atomic():
        before, subject.team = subject.team, team
        subject.save(update_fields=["team"])
        audit_log.record(actor, "set schema team", f"schema:{subject}", now=now, before=before.name, after=team.name)


def set_rule(subject: SchemaSubject, text: str, *, actor: str, now: datetime) -> Compatibility:
    """`text`: the rule's name, in whatever case. It holds for versions that are registered from now on. Raises InvalidRule."""
    rule = next((rule for rule in Compatibility if rule.value == text.lower()), None)
    if rule is None:
        rules = ", ".join(rule.value.upper() for rule in Compatibility)
        raise InvalidRule.for_fields({"compatibility": f"{text[:40]!r} is not a rule. Write one of {rules}."})
    with transaction.atomic():
        before, subject.compatibility = subject.compatibility, rule.value
        subject.save(update_fields=["compatibility"])
        audit_log.record(actor, "set schema rule", f"schema:{subject}", now=now, before=before, after=rule.value)
    return rule


def deprecate(version: SchemaVersion, why: str, *, actor: str, now: datetime) -> None:
    """What was written by it can be read as before. Raises Refused."""
    if not why.strip():
        raise Refused.for_fields({"why": "Say why: whoever uses the version reads it."})
    if len(why.strip()) > MAX_WHY:
        raise Refused.for_fields({"why": f"The reason has {len(why.strip()):,} characters. Write {MAX_WHY:,} at most."})
    with transaction.atomic():
        version.deprecated_at, version.deprecated_why = now, why.strip()
        version.save(update_fields=["deprecated_at", "deprecated_why"])
        number = version.version
        audit_log.record(
            actor, "deprecate schema", f"schema:{version.subject}", now=now, version=number, why=why.strip()
        )


def require_name(name: str) -> None:
    """Raises Refused where no subject can have this name."""
    if not _NAME.fullmatch(name):
        raise Refused.for_fields(
            {
                "subject": f"{name[:80]!r} is not a subject: it has 1 to 200 letters, digits, dots, dashes and underscores."
            }
        )


def require_new_name(name: str) -> None:
    """Of a subject that people register. Raises Refused."""
    require_name(name)
    if _OF_CAPTURES.fullmatch(name):
        raise Refused.for_fields(
            {
                "subject": f"{name!r} ends in a dot and a number, as the subjects of captured datasets do: these are registered when the dataset is captured. Choose another name."
            }
        )


def version_number(text: str) -> int | None:
    """As addresses have it; None: the newest. Raises InvalidVersion."""
    if text in ("latest", "-1"):
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise InvalidVersion(f"{text[:40]!r} is not a version: write a number from 1 on, or `latest`.")
    return int(text)


def _locked_subject(name: str, team: Team, *, actor: str, now: datetime) -> SchemaSubject:
    """Its versions are numbered one after the other."""
    require_name(name)
    subject, is_new = SchemaSubject.objects.get_or_create(
        name=name, defaults={"team": team, "compatibility": DEFAULT_RULE.value}
    )
    if is_new:
        audit_log.record(actor, "add schema subject", f"schema:{name}", now=now, team=team.name)
    return SchemaSubject.objects.select_for_update(of=("self",)).select_related("team").get(pk=subject.pk)


def _newest_number(subject: SchemaSubject) -> int:
    """0: it has no version yet."""
    number = subject.versions.order_by("-version").values_list("version", flat=True).first() or 0
    if number >= MAX_VERSIONS:
        raise Refused(f"{subject} has {MAX_VERSIONS:,} versions already. Register the schema under another subject.")
    return number


def _problems(
    subject: SchemaSubject, schema: Any, versions: QuerySet[SchemaVersion], *, is_captured: bool = False
) -> tuple[Refusal, ...]:
    """A schema at a time is in memory: they may be large, and there may be many. The schema of a captured table, which is as wide as the table is, is compared with
    however many there are: nobody could do anything about a refusal."""
    rule, texts = Compatibility(subject.compatibility), versions.order_by("-version").values_list("version", "text")
    older_ones = texts.iterator(chunk_size=10) if rule.is_transitive else iter(texts[:1])
    older = ((number, json.loads(text)) for number, text in older_ones)
    reasons = refusals(rule, schema, older, is_limited=not is_captured)
    try:
        return tuple(islice(reasons, MAX_REASONS))
    except RecursionError:
        raise Refused(
            "The types of the schema name each other in too long a chain to be compared. Put the fields of some of them into the types that name them."
        ) from None
    except TooManyPairs:
        raise Refused(
            f"The schema has too many types to be compared with those of {subject}: more than {MAX_PAIRS:,} pairs of types with one version, or {MAX_PAIRS_OF_ALL:,} with all versions. "
            "If types of a union have the same name in different namespaces, give them different names. If the schema has many fields and the subject many versions, "
            "give the subject a rule that is not transitive."
        ) from None


def _text(reasons: Sequence[Refusal]) -> str:
    more = len(reasons) - _NAMED_REASONS
    return " ".join(map(str, reasons[:_NAMED_REASONS])) + (f" And {more} more." if more > 0 else "")


def schema_of(version: SchemaVersion) -> Any:
    """As JSON."""
    return json.loads(version.text)

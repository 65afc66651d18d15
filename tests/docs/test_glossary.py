"""The glossary names every model and every value that people meet, once, in order, and names no model that is not there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings

from frontend.screens.help.glossary import BadGlossary, GlossaryTerm, parse_glossary, read_glossary
from incidents.channels import CHANNELS
from incidents.domain.alerting.routing import Severity
from incidents.domain.gate.policy_vocabulary import KNOWN_REASONS
from incidents.models import DigestState, FalsePositive, IncidentState, MessageState, PolicyPreset, Resolution
from ingestion.domain.accounting import RowFate
from ingestion.launchers import LAUNCHERS
from ingestion.models import JobKind, JobState
from ingestion.sources import SOURCES
from ingestion.spark.contract.job_kinds import KINDS
from ingestion.spark.indexes import INDEXES
from lakehub.accounts.models import Role
from lakehub.catalog.models import DatasetKind, FeedKind
from lakehub.kernel.outcome import Outcome, Verdict
from lakehub.kernel.partitions import Grain
from quality.checks import CHECKS
from quality.engines import ENGINES
from quality.models import Category, Lane

PROJECT = Path(settings.BASE_DIR)
OUR_PACKAGES = ("lakehub", "ingestion", "quality", "incidents", "frontend")
GROUPS = {group.name: group.terms for group in read_glossary()}
TERMS = [term for terms in GROUPS.values() for term in terms]
A_MODEL = re.compile(r"`([a-z]+\.[A-Z]\w+)`")
PHRASE_AND_QUALIFIER = re.compile(r"(?P<phrase>[^(]+?)(?: \((?P<qualifier>[^)]+)\))?")

VALUES_BY_GROUP: dict[str, Iterable[str]] = {
    "Dataset kinds": DatasetKind.values,
    "Feed kinds": FeedKind.values,
    "Grains": Grain,
    "Row results": RowFate,
    "Job kinds": {*JobKind.values, *KINDS},
    "Job states": JobState.values,
    "Sources": SOURCES,
    "Indexes": INDEXES,
    "Launchers": LAUNCHERS,
    "Categories": Category.values,
    "Verdicts": Verdict,
    "Outcomes": Outcome,
    "Reasons for a verdict": KNOWN_REASONS,
    "Checks": CHECKS,
    "Engines": ENGINES,
    "Lanes": Lane.names,
    "Incident states": IncidentState.values,
    "Resolutions": Resolution.values,
    "Kinds of false positive": FalsePositive.values,
    "Severities": Severity,
    "Message states": {*MessageState.values, *DigestState.values},
    "Channels": CHANNELS,
    "Policy presets": PolicyPreset.values,
    "Roles": Role.values,
}


def names_of(term: GlossaryTerm) -> set[str]:
    """What a term stands for in code: `No data (reason)` for `no_data`, `Whole table (none)` for `none`."""
    matched = PHRASE_AND_QUALIFIER.fullmatch(term.name)
    assert matched is not None, term.name
    return {as_identifier(part) for part in matched.groups() if part}


def as_identifier(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", words.lower())


@pytest.mark.parametrize("group", VALUES_BY_GROUP)
def test_a_group_has_exactly_the_values_of_the_code(group: str) -> None:
    values = {as_identifier(value) for value in VALUES_BY_GROUP[group]}
    names = [names_of(term) for term in GROUPS[group]]
    assert {value for value in values if not any(value in each for each in names)} == set()
    assert [each for each in names if not each & values] == []


def test_every_model_has_a_term_and_every_term_names_a_model_that_exists() -> None:
    ours = [config for config in apps.get_app_configs() if config.name.split(".")[0] in OUR_PACKAGES]
    models = Counter(model._meta.label for config in ours for model in config.get_models())
    named = Counter(label for term in TERMS for label in A_MODEL.findall(term.definition))
    assert named == models


def test_no_term_occurs_twice() -> None:
    assert [name for name, count in Counter(term.name.casefold() for term in TERMS).items() if count > 1] == []
    anchors = Counter([*(term.anchor for term in TERMS), *(group.anchor for group in read_glossary())])
    assert [anchor for anchor, count in anchors.items() if count > 1] == []


@pytest.mark.parametrize("group", GROUPS)
def test_the_terms_of_a_group_are_sorted(group: str) -> None:
    names = [term.name for term in GROUPS[group]]
    assert names == sorted(names, key=str.casefold)


def test_each_definition_is_one_sentence() -> None:
    definitions = {term.name: re.sub(r"`[^`]*`", "code", term.definition) for term in TERMS}
    assert {name: text for name, text in definitions.items() if not re.fullmatch(r"[A-Z][^.!?]*\.", text)} == {}


def test_a_line_that_is_no_term_is_refused() -> None:
    with pytest.raises(BadGlossary, match=r"Write `- \*\*Term\*\*: One sentence\.`"):
        parse_glossary("# Glossary\n\n## Data\n\n- Lake: A place.\n")


def test_the_site_shows_the_file_of_the_application() -> None:
    page = PROJECT / "docs" / "glossary.md"
    assert page.is_symlink()
    assert page.resolve() == PROJECT / "frontend" / "screens" / "help" / "glossary.md"

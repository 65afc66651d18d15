"""The files of a pipeline in a browser: edited, checked, and applied as they were shown, with scripts and without."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from ingestion.models import Pipeline
from ingestion.pipelines.registering import register_pipeline
from lakehub.accounts.models import User
from tests import factories as make
from tests.e2e.conftest import findings
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM


@pytest.fixture
def registered(ines: User) -> Pipeline:
    for name, columns in {"flights": ("id", "day", "carrier", "delay"), "airlines": ("carrier", "name")}.items():
        make.dataset(name, columns=[{"name": column, "type": "string", "nullable": True} for column in columns])
    texts = {"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": TRANSFORM}
    return Pipeline.objects.get(dataset=register_pipeline(texts, actor="omar", now=make.NOW - make.HOUR).dataset)


@pytest.mark.parametrize("scripts", [True, False])
def test_what_was_shown_is_applied(registered: Pipeline, tab: Callable[..., Page], scripts: bool) -> None:
    page = tab("/datasets/flights-by-day/pipeline", java_script_enabled=scripts)
    page.get_by_role("link", name="Change…").click()
    page.get_by_label("pipeline.yaml").fill(PIPELINE.replace("tier: 2", "tier: 9"))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("1 problem.")).to_be_visible()
    page.get_by_label("pipeline.yaml").fill(PIPELINE.replace("tier: 2", "tier: 1"))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("heading", name="No row changes.")).to_be_visible()
    assert findings(page) == [] if scripts else True
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("The pipeline flights-by-day is changed.")).to_be_visible()
    registered.refresh_from_db()
    changed = {"pipeline.yaml": PIPELINE.replace("tier: 2", "tier: 1")}
    assert registered.files == {"table.sql": TABLE, "transform.sql": TRANSFORM} | changed


def test_files_are_uploaded_beside_what_is_typed(registered: Pipeline, tab: Callable[..., Page]) -> None:
    page = tab("/datasets/flights-by-day/pipeline/files")
    changed = TRANSFORM.replace("sum(f.delay)", "max(f.delay)")
    page.get_by_label("Upload files").set_input_files(
        [{"name": "transform.sql", "mimeType": "text/plain", "buffer": changed.encode()}]
    )
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("heading", name="All rows are recomputed in dc1.")).to_be_visible()
    expect(page.get_by_label("transform.sql")).to_have_value(changed)
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("The pipeline flights-by-day is changed.")).to_be_visible()
    registered.refresh_from_db()
    assert registered.files["transform.sql"] == changed

"""The files of a pipeline on the page: what is wrong in them or the plan, and then exactly what was shown is registered."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from frontend.screens.pipeline.files_form import EXAMPLES
from frontend.screens.pipeline.plan_rows import excerpts, size_text
from frontend.ui import words
from ingestion.domain.pipelines.yaml_nodes import MAX_LENGTH
from ingestion.lake.files.table_sizes import TableSize
from ingestion.models import JobKind, JobRun, JobState, Pipeline
from ingestion.pipelines import registering
from ingestion.pipelines.checking import Checked
from ingestion.pipelines.registering import register_pipeline
from ingestion.runs.job_runs import MAX_WAITING_REQUESTS
from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.http.security_headers import POLICY
from tests import factories as given
from tests import hudi_tables
from tests.factories import HOUR, NOW
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE as FILE
from tests.unit.ingestion.pipelines.test_pipeline_files import TABLE, TRANSFORM

pytestmark = pytest.mark.django_db
PAGE = "/datasets/flights-by-day/pipeline/files"
NEW = "/new-pipeline"
PIPELINE = FILE.replace("source: flights", "source: departures").replace("airlines: airlines", "airlines: carriers")
TEXTS = {"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": TRANSFORM}
CHANGED = TRANSFORM.replace("sum(f.delay)", "max(f.delay)")
MOST_QUERIES = 40


@pytest.fixture
def inputs() -> None:
    for name, columns in {"departures": ("id", "day", "carrier", "delay"), "carriers": ("carrier", "name")}.items():
        given.dataset(name, columns=[{"name": column, "type": "string", "nullable": True} for column in columns])


@pytest.fixture
def table(inputs: None) -> DatasetCopy:
    return given.copy_of(register_pipeline(TEXTS, actor="ana", now=NOW - HOUR).dataset)


def text_of(answer: Any) -> str:
    """Without tags, in one line, as it is read."""
    return html.unescape(
        re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", re.sub(r"</?(code|strong)>", "", answer.content.decode())))
    )


def hidden(answer: Any) -> dict[str, str]:
    """What the form carries beside the texts."""
    fields = re.findall(r'type="hidden" name="(opened|planned|basis)" value="([^"]*)"', answer.content.decode())
    return {name: html.unescape(value) for name, value in fields}


def typed(answer: Any) -> dict[str, str]:
    """The texts as a browser has them: it drops the first end of a line."""
    areas = re.findall(r'<textarea[^>]* name="([^"]*)"[^>]*>\n(.*?)</textarea>', answer.content.decode(), re.DOTALL)
    return {name: html.unescape(text) for name, text in areas}


def check(client: Client, where: str = PAGE, **texts: Any) -> HttpResponse:
    return client.post(where, {**TEXTS, **hidden(client.get(where)), **texts})  # type: ignore[return-value]  # as every answer is


def apply(client: Client, checked: Any, where: str = f"{PAGE}/apply", **other: str) -> HttpResponse:
    """Sends the form as it was shown."""
    return client.post(where, {**typed(checked), **hidden(checked), **other})  # type: ignore[return-value]  # as every answer is


def test_the_form_has_the_files_as_they_are_registered(table: DatasetCopy, page: Client) -> None:
    shown = page.get(PAGE)
    assert typed(shown) == TEXTS
    assert f'href="{PAGE}"' in page.get("/datasets/flights-by-day/pipeline").content.decode()
    assert shown.headers["Content-Security-Policy"] == POLICY
    assert not re.search(r"\sstyle=|\son\w+=\"", shown.content.decode())
    assert "Apply" not in text_of(shown)


def test_what_is_wrong_is_told_by_file_and_line_and_nothing_typed_is_lost(table: DatasetCopy, page: Client) -> None:
    wrong = PIPELINE.replace("tier: 2", "tier: 9")
    answer = check(page, **{"pipeline.yaml": wrong, "transform.sql": CHANGED})
    text = text_of(answer)
    assert answer.status_code == 422
    assert "1 problem. Nothing was changed." in text
    assert "pipeline.yaml:3 tier is '9'" in text
    assert "Line 3: tier is '9': it is a number from 0, the highest, to 5. tier: 9" in text
    assert typed(answer) == {**TEXTS, "pipeline.yaml": wrong, "transform.sql": CHANGED}
    assert "Apply" not in text
    assert "transform.sql The file is missing." in text_of(check(page, **{"transform.sql": " \n"}))


def test_the_plan_is_shown_and_then_applied(table: DatasetCopy, page: Client) -> None:
    given.run(table, JobKind.BOOTSTRAP)
    checked = check(page, **{"transform.sql": CHANGED})
    text = text_of(checked)
    assert checked.status_code == 200
    assert "All rows are recomputed in dc1." in text
    assert re.search(r"SELECT .*SUM\(.*MAX\(.* all rows", text)
    assert "Reads departures size unknown Reads carriers" in text
    assert Pipeline.objects.get(dataset=table.dataset).files == TEXTS
    answer = apply(page, checked)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/datasets/flights-by-day/pipeline")
    assert "The pipeline flights-by-day is changed. 1 table is recomputed." in text_of(page.get(answer.headers["Location"]))  # fmt: skip
    registered = Pipeline.objects.get(dataset=table.dataset)
    assert (registered.files, registered.changed_by) == ({**TEXTS, "transform.sql": CHANGED}, "ines")
    assert JobRun.objects.get(state=JobState.QUEUED).params == {"replace": True}
    assert AuditEntry.objects.filter(actor="ines", action="pipeline", subject="dataset:flights-by-day").count() == 1


def test_how_many_rows_would_be_written_is_estimated_by_the_table_as_it_is(
    table: DatasetCopy, page: Client, tmp_path: Path
) -> None:
    rows = {day: pa.table({"day": [day] * 21, "flights": range(21)}) for day in ("2013-01-01", "2013-01-02")}
    uri = hudi_tables.hudi_table(tmp_path / "table", rows, column="day")
    DatasetCopy.objects.filter(pk=table.pk).update(uri=uri)
    bytes_now = sum(file.stat().st_size for file in (tmp_path / "table").rglob("*.parquet"))
    shown = f"Writes about 42 rows, {words.size(bytes_now)} in 2 files: as many as the table holds now, which they replace"  # fmt: skip
    assert shown in text_of(check(page, **{"transform.sql": CHANGED}))
    tier = check(page, **{"pipeline.yaml": PIPELINE.replace("tier: 2", "tier: 1")})
    assert re.search(r"No row changes\. .* Writes 0 rows, 0 B Apply", text_of(tier))
    (tmp_path / "table" / ".hoodie" / f"{hudi_tables.INSTANT}.commit").write_bytes(b"")
    damaged = check(page, **{"transform.sql": CHANGED})
    assert damaged.status_code == 200
    assert f"Writes size unknown. The size of flights-by-day@dc1 cannot be read: The file {tmp_path}/table/.hoodie/" in text_of(damaged)  # fmt: skip


def test_an_empty_table_and_one_that_is_not_there_yet_are_no_estimate(
    table: DatasetCopy, page: Client, tmp_path: Path
) -> None:
    changed = {"transform.sql": CHANGED}
    never = f"Writes size unknown. There is no table at {table.uri} yet: its size is known after its first run."
    assert never in text_of(check(page, **changed))
    empty = hudi_tables.hudi_table(
        tmp_path / "table", {"2013-01-01": pa.table({"day": [], "flights": []})}, column="day"
    )
    DatasetCopy.objects.filter(pk=table.pk).update(uri=empty)
    assert "Writes size unknown. flights-by-day@dc1 holds no rows now, so there is nothing to estimate from." in text_of(check(page, **changed))  # fmt: skip
    new = check(page, NEW, **{"pipeline.yaml": PIPELINE.replace("flights-by-day", "another")})
    assert "Writes size unknown. There is no table yet: its size is known after its first run." in text_of(new)


def test_ends_of_lines_of_browsers_change_nothing(table: DatasetCopy, page: Client) -> None:
    checked = check(page, **{name: text.replace("\n", "\r\n") for name, text in TEXTS.items()})
    assert "Nothing changes: the files say what they said." in text_of(checked)
    assert "there is nothing to apply" in text_of(checked)
    assert "Apply" not in text_of(checked)


def test_what_says_the_same_in_other_words_can_be_applied(table: DatasetCopy, page: Client) -> None:
    worded = PIPELINE + "# mended\n"
    checked = check(page, **{"pipeline.yaml": worded})
    assert "Nothing changes" in text_of(checked)
    assert apply(page, checked).status_code == 302
    assert Pipeline.objects.get(dataset=table.dataset).files["pipeline.yaml"] == worded
    assert not JobRun.objects.filter(copy=table).exists()


def test_files_that_were_edited_after_the_plan_are_planned_again(table: DatasetCopy, page: Client) -> None:
    checked = check(page, **{"transform.sql": CHANGED})
    answer = apply(page, checked, **{"transform.sql": TRANSFORM.replace("sum(f.delay)", "min(f.delay)")})
    assert answer.status_code == 409
    assert "This is the plan for them as they are now." in text_of(answer)
    assert Pipeline.objects.get(dataset=table.dataset).files == TEXTS
    assert apply(page, answer).status_code == 302
    assert "min(f.delay)" in Pipeline.objects.get(dataset=table.dataset).files["transform.sql"]


def test_nothing_is_applied_without_a_plan(table: DatasetCopy, page: Client) -> None:
    answer = page.post(f"{PAGE}/apply", {**TEXTS, "transform.sql": CHANGED})
    assert answer.status_code == 409
    assert Pipeline.objects.get(dataset=table.dataset).files == TEXTS


def test_a_stale_plan_is_refused_and_what_was_typed_is_kept(table: DatasetCopy, page: Client) -> None:
    checked = check(page, **{"transform.sql": CHANGED})
    others = {**TEXTS, "pipeline.yaml": PIPELINE.replace("tier: 2", "tier: 1")}
    register_pipeline(others, actor="omar", now=NOW)
    answer = apply(page, checked)
    assert answer.status_code == 409
    assert "is not as it was when the plan was made. omar changed it last, at 2026-11-17 19:32 UTC. Nothing was changed" in text_of(answer)  # fmt: skip
    assert Pipeline.objects.get(dataset=table.dataset).files == others
    assert typed(answer)["transform.sql"] == CHANGED
    assert re.search(r"tier 1 2 the dataset only", text_of(answer)), "the plan says that it takes back what omar did"
    assert apply(page, answer).status_code == 302


def test_a_form_that_was_opened_before_somebody_changed_the_files_says_so(table: DatasetCopy, page: Client) -> None:
    opened = page.get(PAGE)
    register_pipeline({**TEXTS, "pipeline.yaml": PIPELINE.replace("tier: 2", "tier: 1")}, actor="omar", now=NOW)
    answer = page.post(PAGE, {**typed(opened), **hidden(opened)})
    assert "omar has changed the files since you opened them, at 2026-11-17 19:32 UTC. What you typed is kept" in text_of(answer)  # fmt: skip
    assert re.search(r"tier 1 2 the dataset only", text_of(answer))
    again = page.post(PAGE, {**typed(answer), **hidden(answer)})
    assert "has changed the files since" not in text_of(again)


def test_code_that_was_changed_after_the_plan_is_not_applied(
    table: DatasetCopy, page: Client, tmp_path: Any, settings: Any
) -> None:
    settings.LAKEHUB_TRANSFORMERS = str(tmp_path)
    code = tmp_path / "fares.py"
    code.write_text("def round_fares(rows):\n    return rows\n")
    checked = check(page, **{"pipeline.yaml": PIPELINE + "transformers:\n  - python: fares.py:round_fares\n"})
    code.write_text("def round_fares(rows):\n    return rows.distinct()\n")
    assert apply(page, checked).status_code == 409
    assert Pipeline.objects.get(dataset=table.dataset).files == TEXTS


def test_a_copy_whose_queue_is_full_leaves_the_files_as_they_were(table: DatasetCopy, page: Client) -> None:
    given.run(table, JobKind.BOOTSTRAP)
    for _ in range(MAX_WAITING_REQUESTS):
        given.run(table, JobKind.BACKFILL, JobState.QUEUED, asked_by="ana")
    answer = apply(page, check(page, **{"transform.sql": CHANGED}))
    assert answer.status_code == 409
    assert typed(answer)["transform.sql"] == CHANGED
    assert Pipeline.objects.get(dataset=table.dataset).files == TEXTS


def test_of_two_people_who_register_one_name_at_once_the_second_keeps_the_texts(
    inputs: None, page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = check(page, NEW)
    check_names = registering.check_pipeline

    def check_then_lose(texts: Mapping[str, str]) -> Checked:
        names = check_names(texts)
        monkeypatch.setattr(registering, "check_pipeline", check_names)
        register_pipeline(TEXTS, actor="omar", now=NOW)
        return names

    monkeypatch.setattr(registering, "check_pipeline", check_then_lose)
    answer = apply(page, checked, f"{NEW}/register")
    assert answer.status_code == 409
    assert "omar changed it last" in text_of(answer)
    assert typed(answer) == TEXTS


def test_files_are_uploaded_by_their_names(table: DatasetCopy, page: Client) -> None:
    uploads = [SimpleUploadedFile("transform.sql", CHANGED.encode()), SimpleUploadedFile("tests.yaml", b"\xff")]
    answer = check(page, uploads=uploads)
    assert typed(answer)["transform.sql"] == CHANGED
    assert "All rows are recomputed in dc1." in text_of(answer)
    with_mark = [
        SimpleUploadedFile("transform.sql", b"\xef\xbb\xbf" + CHANGED.encode())
    ]  # as editors of Windows write it
    assert typed(check(page, uploads=with_mark))["transform.sql"] == CHANGED
    wrong = [
        SimpleUploadedFile("<b>.py", b"x"),
        SimpleUploadedFile("table.sql", b"\xff"),
        SimpleUploadedFile("pipeline.yaml", b"x" * (MAX_LENGTH * 4 + 1)),
    ]
    text = text_of(check(page, uploads=wrong))
    assert "<b>.py A pipeline has no such file: upload table.sql, pipeline.yaml, transform.sql." in text
    assert "table.sql It is not UTF-8 text: save the file in UTF-8 and upload it again." in text
    assert "pipeline.yaml It has more than 100,000 characters: shorten it." in text


@pytest.mark.parametrize(("text", "problem"), [("x" * (MAX_LENGTH + 1), "100000"), ("SELECT '\0'", "Null")])
def test_texts_are_bounded_as_those_of_the_api(table: DatasetCopy, page: Client, text: str, problem: str) -> None:
    answer = check(page, uploads=[SimpleUploadedFile("transform.sql", text.encode())])
    assert answer.status_code == 422
    assert problem in text_of(answer)
    assert Pipeline.objects.get(dataset=table.dataset).files == TEXTS


def test_hostile_texts_are_shown_as_text(table: DatasetCopy, page: Client) -> None:
    hostile = "</textarea><script>alert(1)</script>"
    answer = check(page, **{"transform.sql": hostile, "pipeline.yaml": PIPELINE.replace("tier: 2", f"tier: {hostile}")})
    assert "<script>alert" not in answer.content.decode()
    assert typed(answer)["transform.sql"] == hostile


def test_another_name_is_no_change_of_this_pipeline(table: DatasetCopy, page: Client) -> None:
    renamed = PIPELINE.replace("name: flights-by-day", "name: other")
    answer = check(page, **{"pipeline.yaml": renamed})
    assert answer.status_code == 422
    assert "name is other, and this page changes the pipeline flights-by-day" in text_of(answer)
    fresh = check(page, NEW, **{"pipeline.yaml": renamed})
    assert apply(page, fresh).status_code == 422
    assert not Dataset.objects.filter(name="other").exists()


def test_a_team_in_which_the_person_may_not_onboard_is_refused_with_the_text_kept(
    table: DatasetCopy, client: Client
) -> None:
    given.team("others")
    client.force_login(given.member(given.user("olga"), table.dataset.team, Role.OWNER).user)
    given_away = PIPELINE.replace("team: flight-ops", "team: others")
    answer = check(client, **{"pipeline.yaml": given_away})
    assert answer.status_code == 403
    assert "To onboard here you need to be owner or admin of team others." in text_of(answer)
    assert typed(answer)["pipeline.yaml"] == given_away


def test_rows_of_an_input_of_another_team_are_refused_with_the_text_kept(table: DatasetCopy, client: Client) -> None:
    """Where the plan is made, and again where it is applied."""
    Dataset.objects.filter(name="carriers").update(team=given.team("others"))
    olga = given.member(given.user("olga"), table.dataset.team, Role.OWNER).user
    client.force_login(olga)
    refused = check(client, **{"transform.sql": CHANGED})
    assert refused.status_code == 403
    assert "The pipeline reads rows of carriers of team others: for that you need to be viewer" in text_of(refused)
    assert typed(refused)["transform.sql"] == CHANGED
    role = given.member(olga, given.team("others"), Role.VIEWER)
    checked = check(client, **{"transform.sql": CHANGED})
    assert checked.status_code == 200
    role.delete()
    assert apply(client, checked).status_code == 403
    assert Pipeline.objects.get(dataset=table.dataset).files == TEXTS


@pytest.mark.parametrize("role", [Role.VIEWER, Role.ON_CALL, None])
def test_who_may_not_onboard_is_refused(table: DatasetCopy, client: Client, role: Role | None) -> None:
    person = given.user("anna")
    if role is not None:
        given.member(person, table.dataset.team, role)
    client.force_login(person)
    for where in (PAGE, NEW):
        assert client.get(where).status_code == 403
        assert client.post(where, TEXTS).status_code == 403
    for where in (f"{PAGE}/apply", f"{NEW}/register"):
        assert client.post(where, TEXTS).status_code == 403
    assert "Change…" not in text_of(client.get("/datasets/flights-by-day/pipeline"))


def test_a_form_without_its_token_changes_nothing(table: DatasetCopy, page: Client) -> None:
    checked = check(page, **{"transform.sql": CHANGED})
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = page.cookies
    assert apply(strict, checked).status_code == 403
    assert Pipeline.objects.get(dataset=table.dataset).files == TEXTS


def test_a_new_one_is_registered_the_same_way(inputs: None, page: Client) -> None:
    assert f'href="{NEW}"' in page.get("/onboarding").content.decode()
    assert typed(page.get(NEW)) == {"table.sql": "", "pipeline.yaml": "", "transform.sql": ""}
    checked = check(page, NEW)
    assert "A new table is made in dc1." in text_of(checked)
    assert not Pipeline.objects.filter(dataset__name="flights-by-day").exists()
    answer = apply(page, checked, f"{NEW}/register")
    assert answer.headers["Location"] == "/datasets/flights-by-day/pipeline"
    assert "The pipeline flights-by-day is registered: a worker makes its table." in text_of(page.get(answer.headers["Location"]))  # fmt: skip
    assert Pipeline.objects.get(dataset__name="flights-by-day").files == TEXTS


def test_an_empty_form_shows_files_that_can_be_registered(page: Client) -> None:
    Dataset.objects.filter(name="flights").update(columns=[{"name": "day", "type": "string", "nullable": True}])
    shown = page.get(NEW).content.decode()
    for text in EXAMPLES.values():
        assert f'placeholder="{html.escape(text)}"' in shown
    checked = check(page, NEW, **EXAMPLES)
    assert "A new table is made in dc1" in text_of(checked)


def test_of_two_that_register_one_name_the_second_is_shown_what_it_would_change(inputs: None, page: Client) -> None:
    checked = check(page, NEW, **{"transform.sql": CHANGED})
    register_pipeline(TEXTS, actor="omar", now=NOW)
    answer = apply(page, checked, f"{NEW}/register")
    assert answer.status_code == 409
    assert "omar changed it last" in text_of(answer)
    assert "All rows are recomputed in dc1." in text_of(answer)
    assert Pipeline.objects.get(dataset__name="flights-by-day").files == TEXTS


def test_files_of_others_are_kept(table: DatasetCopy, page: Client) -> None:
    register_pipeline({**TEXTS, "README.md": "By hand"}, actor="ana", now=NOW)
    assert apply(page, check(page, **{"transform.sql": CHANGED})).status_code == 302
    assert Pipeline.objects.get(dataset=table.dataset).files["README.md"] == "By hand"


def test_who_reads_the_table_is_told_with_what_would_be_wrong(table: DatasetCopy, page: Client) -> None:
    chained = {
        "table.sql": "CREATE TABLE m (airline STRING, delay DOUBLE)",
        "pipeline.yaml": "name: by-airline\nteam: flight-ops\ntier: 3\nrecord_key: airline\nsource: flights-by-day\n",
        "transform.sql": "SELECT airline, max(delay) AS delay FROM <SRC> GROUP BY airline",
    }
    register_pipeline(chained, actor="ana", now=NOW)
    other = {"table.sql": TABLE.replace("delay", "late"), "transform.sql": TRANSFORM.replace("AS delay", "AS late")}
    text = text_of(check(page, **other))
    assert "Pipelines that read it by-airline Would fail" in text
    assert "No input has a column delay" in text


def test_only_modelled_tables_have_files(table: DatasetCopy, page: Client) -> None:
    assert page.get("/datasets/departures/pipeline/files").status_code == 404
    Dataset.objects.filter(pk=table.dataset_id).update(offboarded_at=NOW)
    assert page.get(PAGE).status_code == 404


def test_queries_are_few_and_do_not_grow_with_who_reads_the_table(table: DatasetCopy, page: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert page.get(PAGE).status_code == 200
        return len([query for query in asked if "clock_clockshift" not in query["sql"]])

    few = queries()
    for number in range(5):
        given.edge(table.dataset, given.dataset(f"next{number}"))
        given.copy(table.dataset, f"dc{number + 2}")
    assert queries() == few <= MOST_QUERIES


def test_sizes_are_in_words() -> None:
    assert size_text(TableSize(336_776, 6_400_000, 365)) == "336,776 rows, 6.4 MB in 365 files"
    assert size_text(None) == "size unknown"


def test_of_long_texts_the_part_that_differs_is_shown() -> None:
    before = (
        "SELECT "
        + ", ".join(f"column_{number}" for number in range(100))
        + ", sum(delay) AS delay FROM t "
        + "x " * 100
    )
    old, new = excerpts(before, before.replace("sum(", "max("))
    assert "sum(delay)" in old
    assert "max(delay)" in new
    assert max(len(old), len(new)) < 120
    assert old.startswith("…")
    assert old.endswith("…")
    assert excerpts("a", "") == ("a", "")
    assert excerpts("x" * 400, "x" * 401)[1].startswith("…xxx")
    assert len(excerpts("", "y" * 5000)[1]) < 400

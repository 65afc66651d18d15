"""A pipeline that is registered: its dataset, what its jobs are expected, when they are due, and how far it has read its inputs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.http import HttpResponse
from django.test import Client

from ingestion.domain.pipelines.problems import BadPipeline
from ingestion.domain.resources.job_resources import JobResources
from ingestion.launchers.configured import configured_launcher
from ingestion.launchers.shared_or_own import SharedOrOwnSession
from ingestion.models import JobKind, JobRun, JobState, Pipeline, ReaderPosition
from ingestion.pipelines.checking import check_pipeline
from ingestion.pipelines.planning import plan_of
from ingestion.pipelines.registering import register_pipeline
from ingestion.pipelines.specs import pipeline_spec_of
from ingestion.pipelines.transformers import transformer_states
from ingestion.runs import feed_schedule, job_runs, run_worker
from ingestion.runs.replicas.setting import replicate
from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.contract.spec import JobSpec
from lakehub.accounts.models import Role, Team
from lakehub.catalog.lineage import edges
from lakehub.catalog.models import Dataset, FeedKind, LineageEdge
from lakehub.kernel.errors import Refused
from tests import factories as given
from tests.factories import MINUTE, NOW
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM
from tests.unit.ingestion.pipelines.test_transformers import jar
from tests.web.ingestion.conftest import FakeLauncher, worker_at

TEXTS = {"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": TRANSFORM}
pytestmark = pytest.mark.django_db


@pytest.fixture
def inputs() -> dict[str, Dataset]:
    columns = {"flights": ("id", "day", "carrier", "delay"), "airlines": ("carrier", "name")}
    return {
        name: given.dataset(name, copies=("dc1", "dc2") if name == "flights" else ("dc1",), columns=[{"name": column, "type": "string", "nullable": True} for column in names])
        for name, names in columns.items()
    }  # fmt: skip


def register(**texts: str) -> Dataset:
    return register_pipeline({**TEXTS, **texts}, actor="ana", now=NOW).dataset


def problems(**texts: str) -> list[str]:
    with pytest.raises(BadPipeline) as refused:
        register_pipeline({**TEXTS, **texts}, actor="ana", now=NOW)
    return [str(problem) for problem in refused.value.problems]


def test_its_target_is_a_dataset_with_a_copy_where_all_inputs_have_one(inputs: dict[str, Dataset]) -> None:
    dataset = register()
    assert (dataset.name, dataset.record_key, dataset.partition_column, dataset.grain) == ("flights-by-day", ["day", "airline"], "day", "day")  # fmt: skip
    assert (dataset.feed.kind, dataset.feed.every, dataset.feed.connection) == (FeedKind.PIPELINE, 30 * MINUTE, None)
    assert [copy.data_center.name for copy in dataset.copies.all()] == ["dc1"]
    assert {edge.upstream.name for edge in dataset.upstream_edges.all()} == {"flights", "airlines"}
    assert [column["name"] for column in dataset.columns] == ["day", "airline", "flights", "delay"]


def test_an_edge_that_events_have_told_of_stays_with_the_pipeline(inputs: dict[str, Dataset]) -> None:
    dataset = register()
    dataset.upstream_edges.update(source="file")
    register(**{"pipeline.yaml": PIPELINE.replace("tier: 2", "tier: 1")})
    edges.rebuild_edges(source="file", now=NOW)
    assert {edge.upstream.name for edge in dataset.upstream_edges.all()} == {"flights", "airlines"}


def test_its_jobs_are_told_the_inputs_of_their_data_center_and_the_queries(inputs: dict[str, Dataset]) -> None:
    register()
    assert [run.kind for run in feed_schedule.request_due_runs(now=NOW)] == ["bootstrap"]
    launcher = FakeLauncher()
    run_worker.run_next(worker_at(NOW, launcher))
    ((spec, secrets),) = launcher.asked
    assert (spec.kind, spec.source, secrets) == ("bootstrap", None, {})
    assert spec.pipeline is not None
    assert {each.name: each.uri for each in spec.pipeline.inputs} == {"flights": "file:///lake/dc1/flights", "airlines": "file:///lake/dc1/airlines"}  # fmt: skip
    assert "lakehub_changed_airlines" in spec.pipeline.inputs[1].affected_keys
    assert spec == JobSpec.from_json(spec.to_json())


def test_a_select_with_a_star_is_read_with_the_columns_of_its_inputs_each_time(inputs: dict[str, Dataset]) -> None:
    """By its jobs too, and where it is registered again."""
    sql = "SELECT f.*, a.name AS airline, 1 AS flights FROM <SRC> f JOIN airlines a ON f.carrier = a.carrier"
    copy = given.copy_of(
        register(**{"transform.sql": sql, "pipeline.yaml": PIPELINE.replace("[day, airline]", "[day]")})
    )
    assert "lakehub_changed_airlines" in pipeline_spec_of(copy).inputs[1].affected_keys
    again = {
        **TEXTS,
        "transform.sql": sql + " WHERE f.delay > 0",
        "pipeline.yaml": PIPELINE.replace("[day, airline]", "[day]"),
    }
    assert register_pipeline(again, actor="ana", now=NOW).remakes_rows


def test_a_select_in_steps_is_checked_and_registered_and_its_jobs_are_given_the_queries(
    inputs: dict[str, Dataset],
) -> None:
    sql = """WITH newest AS (SELECT *, row_number() OVER (PARTITION BY day, id ORDER BY delay) AS place FROM <SRC>),
    late AS (SELECT day, carrier, delay FROM newest WHERE place = 1 UNION ALL SELECT day, carrier, 0 FROM <SRC>)
    SELECT f.day, a.name AS airline, count(*) AS flights, sum(f.delay) AS delay FROM late f JOIN airlines a USING (carrier) GROUP BY f.day, a.name"""
    assert problems(**{"transform.sql": sql.replace("AS place", "AS plce")}) == [
        "transform.sql:2: No input has a column `place`. Did you mean `plce`?"
    ]
    flights, airlines = pipeline_spec_of(given.copy_of(register(**{"transform.sql": sql}))).inputs
    assert flights.affected_keys.count("lakehub_changed_flights") == 2
    assert airlines.affected_keys.count("lakehub_any_flights") == 2


def test_it_can_go_on_without_an_input_that_is_gone(inputs: dict[str, Dataset]) -> None:
    copy = given.copy_of(register())
    Dataset.objects.filter(name="airlines").update(offboarded_at=NOW)
    with pytest.raises(Refused, match=r"The input `airlines` .* has no copy in `dc1` any more"):
        pipeline_spec_of(copy)
    alone = {
        **TEXTS,
        "pipeline.yaml": PIPELINE.partition("inputs:")[0],
        "transform.sql": TRANSFORM.replace("JOIN airlines a ON f.carrier = a.carrier", "").replace(
            "a.name", "f.carrier"
        ),
    }
    assert register_pipeline(alone, actor="ana", now=NOW).remakes_rows
    assert [each.name for each in pipeline_spec_of(copy).inputs] == ["flights"]


def test_it_is_due_an_interval_after_it_ran_last_and_not_while_it_runs(inputs: dict[str, Dataset]) -> None:
    copy = given.copy_of(register())
    given.run(copy, "bootstrap", ended_at=NOW)  # type: ignore[arg-type]  # its value
    assert feed_schedule.request_due_runs(now=NOW + 29 * MINUTE) == []
    assert [run.kind for run in feed_schedule.request_due_runs(now=NOW + 30 * MINUTE)] == ["incremental"]
    assert feed_schedule.request_due_runs(now=NOW + 90 * MINUTE) == []
    JobRun.objects.filter(kind="incremental").update(state=JobState.FAILED, ended_at=NOW + 31 * MINUTE)
    assert feed_schedule.next_request_at(now=NOW + 40 * MINUTE) == NOW + 61 * MINUTE


def test_its_inputs_keep_what_it_has_not_read_yet(inputs: dict[str, Dataset]) -> None:
    register()
    feed_schedule.request_due_runs(now=NOW)
    positions = {"flights": "20261117100000000", "airlines": "20261117110000000"}
    launcher = FakeLauncher(lambda spec: JobReport(spec.run_id, SUCCEEDED, checkpoint={"inputs": positions}))
    run_worker.run_next(worker_at(NOW, launcher))
    read = ReaderPosition.objects.filter(name="pipeline flights-by-day")
    assert {each.copy.dataset.name: each.position for each in read} == positions
    assert {each.copy.data_center.name for each in read} == {"dc1"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("airlines: airlines", "airlines: arlines", "The lake has no dataset `arlines`. Did you mean `airlines`?"),
        ("team: flight-ops", "team: flght-ops", "There is no team `flght-ops`. Did you mean `flight-ops`?"),
        ("name: flights-by-day", "name: planes", "There is a dataset `planes` already, which is no pipeline's"),
    ],
)
def test_names_that_are_not_there_or_taken_are_refused(
    inputs: dict[str, Dataset], old: str, new: str, expected: str
) -> None:
    given.dataset("planes")
    assert expected in " ".join(problems(**{"pipeline.yaml": PIPELINE.replace(old, new)}))
    assert not Pipeline.objects.exists()


def test_a_circle_of_pipelines_is_refused(inputs: dict[str, Dataset]) -> None:
    register()
    given.edge(Dataset.objects.get(name="flights-by-day"), inputs["airlines"])
    assert "The input `airlines` is made from `flights-by-day` itself" in " ".join(problems())


def test_inputs_in_no_common_data_center_are_refused(inputs: dict[str, Dataset]) -> None:
    given.copy_of(inputs["flights"], "dc1").delete()
    assert "No data center has copies of all inputs" in " ".join(problems())


def test_what_was_fixed_when_its_table_was_made_stays(inputs: dict[str, Dataset]) -> None:
    register()
    assert "`grain` was day, and is none now" in " ".join(
        problems(**{"pipeline.yaml": PIPELINE.replace("grain: day\n", "")})
    )


def test_other_files_change_it_and_say_whether_its_rows_are_others(inputs: dict[str, Dataset]) -> None:
    register()
    again = register_pipeline({**TEXTS, "pipeline.yaml": PIPELINE.replace("30m", "1h")}, actor="ana", now=NOW)
    assert (again.is_new, again.remakes_rows, again.dataset.feed.every) == (False, False, 60 * MINUTE)
    other = {**TEXTS, "transform.sql": TRANSFORM.replace("sum(f.delay)", "max(f.delay)")}
    assert register_pipeline(other, actor="ana", now=NOW).remakes_rows


def test_the_command_checks_and_registers_a_folder(
    inputs: dict[str, Dataset], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    call_command("pipelines", "check", str(tmp_path))
    assert "flights-by-day: A new table is made in dc1." in capsys.readouterr().out
    assert not Pipeline.objects.exists()
    call_command("pipelines", "register", str(tmp_path))
    assert "The pipeline flights-by-day is registered." in capsys.readouterr().out
    given.run(given.copy_of(Dataset.objects.get(name="flights-by-day")), "bootstrap")  # type: ignore[arg-type]  # its value
    (tmp_path / "transform.sql").write_text(TRANSFORM.replace("sum(f.delay)", "max(f.delay)"))
    call_command("pipelines", "register", str(tmp_path))
    assert "is changed; 1 of its tables is recomputed" in capsys.readouterr().out
    assert JobRun.objects.get(state=JobState.QUEUED).params == {"replace": True}
    (tmp_path / "table.sql").write_bytes(b"\xff")
    with pytest.raises(CommandError, match=r"table\.sql: It is no text in UTF-8"):
        call_command("pipelines", "check", str(tmp_path))
    with pytest.raises(CommandError, match="There is no folder"):
        call_command("pipelines", "check", str(tmp_path / "x"))


def signed_in(client: Client, role: Role) -> Client:
    given.member(person := given.user(), given.team(), role)
    client.force_login(person)
    return client


def post(client: Client, query: str = "", **texts: str) -> HttpResponse:
    body = {"files": {**TEXTS, **texts}}
    return client.post(f"/api/v1/modelled-tables{query}", body, content_type="application/json")  # type: ignore[return-value]  # as every answer is


def test_the_api_checks_registers_and_shows_it(inputs: dict[str, Dataset], client: Client) -> None:
    signed_in(client, Role.OWNER)
    checked = json.loads(post(client, "?check=1").content)
    assert (checked["dataset"], checked["data_centers"], checked["record_key"]) == ("flights-by-day", ["dc1"], ["day", "airline"])  # fmt: skip
    assert not Pipeline.objects.exists()
    answer = post(client)
    assert (answer.status_code, json.loads(answer.content)) == (201, {"dataset": "flights-by-day", "is_new": True, "rebuilds": 0})  # fmt: skip
    shown = client.get("/api/v1/datasets/flights-by-day/pipeline").json()
    assert shown["files"] == TEXTS
    assert [each["name"] for each in shown["inputs"]] == ["flights", "airlines"]
    lineage = client.get("/api/v1/datasets/flights-by-day/pipeline/lineage").json()
    delay = {"column": "delay", "is_traced": True, "made_from": [{"input": "flights", "dataset": "flights", "column": "delay", "uses": ["AGGREGATION"]}], "more": 0}  # fmt: skip
    assert (lineage["columns"][-1], len(lineage["columns"]), lineage["problem"]) == (delay, 4, "")
    assert {f"{each['dataset']}.{each['column']}": each["uses"] for each in lineage["rows"]} == {
        "airlines.carrier": ["JOIN"],
        "airlines.name": ["GROUP_BY"],
        "flights.carrier": ["JOIN"],
        "flights.day": ["GROUP_BY"],
    }
    for address in ("", "/lineage"):
        assert client.get(f"/api/v1/datasets/flights/pipeline{address}").status_code == 404


def test_the_api_says_what_is_wrong_by_file_and_line(inputs: dict[str, Dataset], client: Client) -> None:
    answer = post(signed_in(client, Role.OWNER), **{"pipeline.yaml": PIPELINE.replace("tier: 2", "tier: 9")})
    assert answer.status_code == 422
    assert "line 3: `tier` is '9'" in answer.content.decode()


def test_who_may_not_onboard_for_the_team_registers_nothing(inputs: dict[str, Dataset], client: Client) -> None:
    assert post(signed_in(client, Role.VIEWER)).status_code == 403
    given.member(stranger := given.user(), given.team("others"), Role.OWNER)
    client.force_login(stranger)
    assert post(client).status_code == 403
    assert not Pipeline.objects.exists()


def test_a_request_that_makes_rows_anew_is_whole_or_not_made(inputs: dict[str, Dataset], client: Client) -> None:
    """The queue of the copy is full, so the files stay as they were."""
    copy = given.copy_of(register())
    given.run(copy, "bootstrap")  # type: ignore[arg-type]  # its value
    for _ in range(job_runs.MAX_WAITING_REQUESTS):
        given.run(copy, "backfill", JobState.QUEUED, asked_by="ana")  # type: ignore[arg-type]  # its value
    answer = post(signed_in(client, Role.OWNER), **{"transform.sql": TRANSFORM.replace("sum(f.delay)", "max(f.delay)")})
    assert answer.status_code == 409
    assert Pipeline.objects.get().files == TEXTS


def test_a_replica_follows_and_is_not_made_anew(inputs: dict[str, Dataset], client: Client) -> None:
    given.copy(inputs["airlines"], "dc2")
    source, replica = register().copies.order_by("data_center__name")
    for copy in (source, replica):
        given.run(copy, JobKind.BOOTSTRAP)
    replicate(replica, source, mib_per_s=None, actor="ana", now=NOW)
    signed_in(client, Role.OWNER)
    other = {"transform.sql": TRANSFORM.replace("sum(f.delay)", "max(f.delay)")}
    plan = json.loads(post(client, "?check=1", **other).content)
    assert (plan["sentence"], plan["data_centers"]) == ("All rows are recomputed in dc1; replicas follow in dc2.", ["dc1"])  # fmt: skip
    assert json.loads(post(client, **other).content)["rebuilds"] == 1
    assert [run.copy for run in JobRun.objects.filter(state=JobState.QUEUED)] == [source]
    assert Pipeline.objects.get().files == {**TEXTS, **other}


def test_the_plan_says_what_changes_and_who_reads_the_table(inputs: dict[str, Dataset], client: Client) -> None:
    def plan(**texts: str) -> dict[str, Any]:
        answer = client.post("/api/v1/modelled-tables?check=1", {"files": {**TEXTS, **texts}}, "application/json")
        assert answer.status_code == 200, answer.content
        return dict(answer.json())

    owner = given.user("owner")
    given.member(owner, Team.objects.get(name="flight-ops"), Role.OWNER)
    client.force_login(owner)
    assert plan()["sentence"] == "A new table is made in dc1."
    register()
    chained = {
        "table.sql": "CREATE TABLE m (airline STRING, delay DOUBLE)",
        "pipeline.yaml": "name: by-airline\nteam: flight-ops\ntier: 3\nrecord_key: airline\nsource: flights-by-day\n",
        "transform.sql": "SELECT airline, max(delay) AS delay FROM <SRC> GROUP BY airline",
    }
    register(**chained)
    last = {
        **chained,
        "pipeline.yaml": chained["pipeline.yaml"].replace("by-airline", "last").replace("flights-by-day", "by-airline"),
    }
    register(**last)
    assert plan()["sentence"] == "Nothing changes: the files say what they said."
    settings = plan(**{"pipeline.yaml": PIPELINE.replace("tier: 2", "tier: 1")})
    assert (settings["sentence"], settings["makes_rows"], settings["reads"]) == ("No row changes.", False, [])
    other = plan(
        **{"table.sql": TABLE.replace("delay", "late"), "transform.sql": TRANSFORM.replace("AS delay", "AS late")}
    )
    assert (other["sentence"], other["makes_rows"]) == ("All rows are recomputed in dc1.", True)
    assert [(each["what"], each["effect"]) for each in other["changes"]] == [("column delay", "all rows"), ("column late", "all rows"), ("SELECT", "all rows")]  # fmt: skip
    assert [each["dataset"] for each in other["reads"]] == ["flights", "airlines"]
    direct, through = other["readers"]
    assert (direct["dataset"], direct["is_direct"], through["dataset"], through["is_direct"], through["problems"]) == ("by-airline", True, "last", False, [])  # fmt: skip
    assert "No input has a column `delay`" in direct["problems"][0]


def test_a_registration_that_names_its_plan_is_refused_where_the_files_have_changed_since(
    inputs: dict[str, Dataset], client: Client
) -> None:
    signed_in(client, Role.OWNER)

    def register_as_planned(basis: str, **texts: str) -> HttpResponse:
        body = {"files": {**TEXTS, **texts}, "basis": basis}
        return client.post("/api/v1/modelled-tables", body, content_type="application/json")  # type: ignore[return-value]  # as every answer is

    of_new = json.loads(post(client, "?check=1").content)["basis"]
    assert register_as_planned(of_new).status_code == 201
    answer = register_as_planned(of_new)
    assert answer.status_code == 409
    assert "is not as it was when the plan was made" in answer.content.decode()
    renamed = {"pipeline.yaml": PIPELINE.replace("tier: 2", "tier: 1")}
    basis = json.loads(post(client, "?check=1", **renamed).content)["basis"]
    assert register_as_planned(basis, **renamed).status_code == 201
    assert register_as_planned(basis, **renamed).status_code == 409
    assert Pipeline.objects.get().files == {**TEXTS, **renamed}


def test_a_time_zone_of_partitions_is_fixed_when_the_table_is_made(inputs: dict[str, Dataset]) -> None:
    register()
    (problem,) = problems(**{"pipeline.yaml": PIPELINE + "partition_tz: Europe/Berlin\n"})
    assert "`partition_tz` was UTC, and is Europe/Berlin now" in problem


def test_its_columns_are_of_the_kinds_that_the_catalog_tells_apart(inputs: dict[str, Dataset]) -> None:
    assert [column["type"] for column in register().columns] == ["string", "string", "integer", "decimal"]


def test_tests_that_cannot_be_read_are_told_before_spark_is_started(inputs: dict[str, Dataset], tmp_path: Path) -> None:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(CommandError, match=r"tests\.yaml: The file is missing"):
        call_command("pipelines", "test", str(tmp_path))
    (tmp_path / "tests.yaml").write_text("late: {given: {flights: [{dely: 1}]}, expect: []}")
    with pytest.raises(CommandError, match=r"tests\.yaml:1: There is no column `dely`\. Did you mean `delay`\?"):
        call_command("pipelines", "test", str(tmp_path))


def test_it_runs_when_an_input_has_a_commit(inputs: dict[str, Dataset]) -> None:
    copy = given.with_table(given.copy_of(register(**{"pipeline.yaml": PIPELINE.replace("30m", "commit")})))
    flights = given.copy_of(inputs["flights"])
    given.run(copy, JobKind.BOOTSTRAP, started_at=NOW - 5 * MINUTE, ended_at=NOW - 4 * MINUTE)
    given.commit(flights, NOW - 6 * MINUTE)
    given.commit(given.copy_of(inputs["flights"], "dc2"), NOW - MINUTE)
    given.commit(flights, NOW - MINUTE, operation="cluster")
    given.commit(flights, NOW - 2 * MINUTE, inserts=0, updates=0, touched_count=0)
    assert not feed_schedule.request_due_runs(now=NOW), "in another data center, or no row is another"
    assert feed_schedule.next_request_at(now=NOW) == NOW + 11 * MINUTE
    given.commit(flights, NOW - 3 * MINUTE)
    (run,) = feed_schedule.request_due_runs(now=NOW)
    JobRun.objects.filter(pk=run.pk).update(state=JobState.FAILED, started_at=NOW, ended_at=NOW)
    assert not feed_schedule.request_due_runs(now=NOW + MINUTE), "not again for the same commit"
    JobRun.objects.filter(pk=run.pk).update(state=JobState.CANCELLED, started_at=None, ended_at=NOW)
    assert not feed_schedule.request_due_runs(now=NOW + MINUTE), "nor where a person did not want it"
    emptied = {"inserts": 0, "updates": 0, "deletes": 0, "touched_count": 1}
    given.commit(given.copy_of(inputs["airlines"]), NOW + MINUTE, **emptied)
    assert [run.kind for run in feed_schedule.request_due_runs(now=NOW + 2 * MINUTE)] == ["incremental"]


def test_commits_of_an_input_whose_changes_are_ignored_start_no_run(inputs: dict[str, Dataset]) -> None:
    ignored = PIPELINE.replace("30m", "commit").replace(
        "airlines: airlines", "airlines: {dataset: airlines, changes: ignored}"
    )
    by_carrier = TRANSFORM.replace("a.name", "f.carrier")
    copy = given.with_table(given.copy_of(register(**{"pipeline.yaml": ignored, "transform.sql": by_carrier})))
    given.run(copy, JobKind.BOOTSTRAP, started_at=NOW - 5 * MINUTE, ended_at=NOW - 4 * MINUTE)
    given.commit(given.copy_of(inputs["airlines"]), NOW - MINUTE)
    assert not feed_schedule.request_due_runs(now=NOW)
    LineageEdge.objects.filter(upstream=inputs["flights"]).update(source="openlineage")
    given.commit(given.copy_of(inputs["flights"]), NOW - MINUTE)
    assert [run.kind for run in feed_schedule.request_due_runs(now=NOW)] == ["incremental"], (
        "whoever has told of the edge"
    )


def test_the_changes_of_the_others_are_not_joined_with_an_input_whose_changes_are_ignored(
    inputs: dict[str, Dataset],
) -> None:
    ignored = PIPELINE.replace("airlines: airlines", "airlines: {dataset: airlines, changes: ignored}")
    assert "comes from `a.name`, of the input `airlines`, whose changes are ignored" in problems(**{"pipeline.yaml": ignored})[0]  # fmt: skip
    by_carrier = TRANSFORM.replace("a.name", "f.carrier")
    copy = given.copy_of(register(**{"pipeline.yaml": ignored, "transform.sql": by_carrier}))
    flights, airlines = pipeline_spec_of(copy).inputs
    assert ("lakehub_changed_flights" in flights.affected_keys, "airlines" in flights.affected_keys) == (True, False)
    assert airlines.affected_keys == ""


def test_other_facts_can_be_changed_where_a_source_has_lost_a_column(inputs: dict[str, Dataset]) -> None:
    register()
    inputs["flights"].columns = [column for column in inputs["flights"].columns if column["name"] != "delay"]
    inputs["flights"].save()
    assert not register_pipeline(
        {**TEXTS, "pipeline.yaml": PIPELINE.replace("tier: 2", "tier: 1")}, actor="ana", now=NOW
    ).remakes_rows
    (problem,) = problems(**{"transform.sql": TRANSFORM.replace("sum(", "max(")})
    assert "`flights` has no column `delay`" in problem


TRANSFORMED = {"pipeline.yaml": PIPELINE + "transformers:\n  - python: fares.py:round_fares\n"}


def test_a_transformer_is_one_of_the_operators_folder_and_its_jobs_are_told_which_file_it_was(
    inputs: dict[str, Dataset], tmp_path: Path, settings: Any
) -> None:
    settings.LAKEHUB_TRANSFORMERS = ""
    (problem,) = problems(**TRANSFORMED)
    assert problem.startswith("pipeline.yaml:12: The transformer `fares.py:round_fares` cannot be used: this instance takes none.")  # fmt: skip
    settings.LAKEHUB_TRANSFORMERS = str(tmp_path)
    (problem,) = problems(**TRANSFORMED)
    assert problem.startswith("pipeline.yaml:12: The transformer `fares.py:round_fares` is not there: the folder")
    assert not Pipeline.objects.exists()
    code = tmp_path / "fares.py"
    code.write_text("def round_fares(rows):\n    return rows\n")
    spec = pipeline_spec_of(given.copy_of(register(**TRANSFORMED)))
    assert (spec.transformers_folder, [each.name for each in spec.transformers]) == (str(tmp_path), ["fares.py:round_fares"])  # fmt: skip
    assert spec.transformers[0].digest == hashlib.sha256(code.read_bytes()).hexdigest()


def test_other_code_of_a_transformer_makes_all_rows_anew_where_it_is_registered_again(
    inputs: dict[str, Dataset], tmp_path: Path, settings: Any
) -> None:
    settings.LAKEHUB_TRANSFORMERS = str(tmp_path)
    code = tmp_path / "fares.py"
    code.write_text("def round_fares(rows):\n    return rows\n")
    register()
    texts = {**TEXTS, **TRANSFORMED}
    assert register_pipeline(texts, actor="ana", now=NOW).remakes_rows, "it has one now"
    assert not register_pipeline(texts, actor="ana", now=NOW).remakes_rows
    before = Pipeline.objects.get().transformer_digests
    code.write_text("def round_fares(rows):\n    return rows.distinct()\n")
    (change,) = plan_of(check_pipeline(texts)).changes
    assert (change.what, str(change.effect)) == ("code of fares.py:round_fares", "all rows")
    settings.LAKEHUB_TRANSFORMERS = str(tmp_path / "on-other-machines-only")
    with pytest.raises(BadPipeline, match="is not on this machine"):
        register_pipeline(texts, actor="ana", now=NOW)
    assert Pipeline.objects.get().transformer_digests == before
    settings.LAKEHUB_TRANSFORMERS = str(tmp_path)
    assert register_pipeline(texts, actor="ana", now=NOW).remakes_rows
    assert Pipeline.objects.get().transformer_digests != before


def test_the_code_of_transformers_is_compared_with_what_was_registered(
    inputs: dict[str, Dataset], tmp_path: Path, settings: Any
) -> None:
    settings.LAKEHUB_TRANSFORMERS = str(tmp_path)
    code = tmp_path / "fares.py"
    code.write_text("def round_fares(rows):\n    return rows\n\n\ndef with_zone(rows):\n    return rows\n")
    two = TRANSFORMED["pipeline.yaml"] + "  - python: fares.py:with_zone\n"
    register(**{"pipeline.yaml": two})
    registered = Pipeline.objects.get()

    def states() -> list[tuple[str, str]]:
        return [(each.name, str(each.state)) for each in transformer_states(registered)]

    both = ["fares.py:round_fares", "fares.py:with_zone"]
    assert states() == [(name, "as registered") for name in both]
    code.write_text("def round_fares(rows):\n    return rows.distinct()\n")
    assert states() == [(both[0], "changed"), (both[1], "gone")]
    assert "fares.py was changed since it was registered, so runs fail." in transformer_states(registered)[0].why
    registered.transformer_digests = {}
    assert states()[0] == (both[0], "not known")
    for folder in ("", str(tmp_path / "elsewhere")):
        settings.LAKEHUB_TRANSFORMERS = folder
        assert states() == [(name, "not known") for name in both]
    registered.files = {"pipeline.yaml": "name: ["}
    assert states() == []


SIZED = {"pipeline.yaml": PIPELINE + "resources:\n  memory: 4g\n  cores: 3\n"}


def test_resources_are_told_to_its_jobs_and_are_about_later_runs(inputs: dict[str, Dataset], settings: Any) -> None:
    settings.LAKEHUB_SPARK_MAX_MEMORY, settings.LAKEHUB_SPARK_MAX_CORES = 4096, 3
    copy = given.copy_of(register())
    assert pipeline_spec_of(copy).resources is None
    assert not register_pipeline({**TEXTS, **SIZED}, actor="ana", now=NOW).remakes_rows
    launcher = FakeLauncher()
    feed_schedule.request_due_runs(now=NOW)
    run_worker.run_next(worker_at(NOW, launcher))
    ((spec, _),) = launcher.asked
    assert spec.needs_own_session
    assert spec.pipeline is not None
    assert spec.pipeline.resources == JobResources(memory_mib=4096, cores=3)


def test_more_than_the_operator_allows_is_refused_by_line_and_by_runs_where_it_was_lowered_since(
    inputs: dict[str, Dataset], settings: Any
) -> None:
    settings.LAKEHUB_SPARK_MAX_MEMORY, settings.LAKEHUB_SPARK_MAX_CORES = 2048, 2
    memory, cores = problems(**SIZED)
    assert memory == "pipeline.yaml:12: `resources` asks for 4g of memory, and this instance allows 2g for a session. Ask for less, or ask its operator to raise LAKEHUB_SPARK_MAX_MEMORY."  # fmt: skip
    assert cores.startswith("pipeline.yaml:13: `resources` asks for 3 cores, and this instance allows 2 for a session.")
    assert not Pipeline.objects.exists()
    settings.LAKEHUB_SPARK_MAX_MEMORY, settings.LAKEHUB_SPARK_MAX_CORES = 4096, 3
    register(**SIZED)
    feed_schedule.request_due_runs(now=NOW)
    settings.LAKEHUB_SPARK_MAX_MEMORY, launcher = 2048, FakeLauncher()
    run = run_worker.run_next(worker_at(NOW, launcher))
    assert run is not None
    assert not launcher.asked
    run.refresh_from_db()
    assert run.error.startswith("The pipeline `flights-by-day` cannot run: `resources` asks for 4g of memory")


def test_a_class_of_a_jar_is_told_to_its_jobs_with_its_properties_and_the_digest_of_its_jars(
    inputs: dict[str, Dataset], tmp_path: Path, settings: Any
) -> None:
    settings.LAKEHUB_TRANSFORMERS = str(tmp_path)
    step = "transformers:\n  - {jvm: fares.jar:com.example.Round, properties: {fares.digits: 2}, jars: [rates.jar]}\n"
    texts = {**TEXTS, "pipeline.yaml": PIPELINE + step}
    jar(tmp_path / "fares.jar", "com.example.Round")
    (problem,) = problems(**texts)
    assert problem.startswith("pipeline.yaml:12: The transformer `fares.jar:com.example.Round` is not there: the folder of LAKEHUB_TRANSFORMERS has no file `rates.jar`.")  # fmt: skip
    jar(tmp_path / "rates.jar", "com.example.Rates")
    (step_spec,) = pipeline_spec_of(given.copy_of(register(**texts))).transformers
    assert (step_spec.is_jvm, step_spec.properties, step_spec.jars) == (True, {"fares.digits": "2"}, ("rates.jar",))
    assert step_spec.digest
    jar(tmp_path / "rates.jar", "com.example.Rates", "com.example.More")
    (change,) = plan_of(check_pipeline(texts)).changes
    assert (change.what, str(change.effect)) == ("code of fares.jar:com.example.Round + rates.jar", "all rows")


def test_the_workers_launcher_has_one_for_sessions_of_their_own(settings: Any) -> None:
    settings.LAKEHUB_LAUNCHER = "warm"
    launcher = configured_launcher.__wrapped__()
    assert isinstance(launcher, SharedOrOwnSession)
    assert (type(launcher._shared).__name__, type(launcher._own).__name__) == ("WarmLauncher", "SparkSubmitLauncher")

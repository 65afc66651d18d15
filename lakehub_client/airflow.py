"""Lakehub in Airflow (2.10): a sensor that holds a DAG back while an input is blocked, two ways to tell that it has finished, and an operator and a
sensor for runs of Lakehub's own ingestion.

The connection `lakehub` has the address as its host and the token as its password, as in
`AIRFLOW_CONN_LAKEHUB='{"conn_type": "http", "host": "https://lakehub.example.org", "password": "lh_..."}'`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from airflow.configuration import conf
from airflow.exceptions import AirflowFailException
from airflow.hooks.base import BaseHook
from airflow.models import BaseOperator
from airflow.notifications.basenotifier import BaseNotifier
from airflow.sensors.base import BaseSensorOperator, PokeReturnValue
from airflow.utils.context import Context

from lakehub_client.client import Client, Input, LakehubError
from lakehub_client.runs import RequestedRun, ask_for_backfill, ask_for_run, look_at

DEFAULT_CONNECTION_ID = "lakehub"
MAX_REQUEST_ID_LENGTH, MAX_RUN_ID_LENGTH = 100, 200
RUN_ID_TEMPLATE = (
    "{{ dag.dag_id }}/{{ run_id }}/{{ ti.task_id }}{% if ti.map_index >= 0 %}[{{ ti.map_index }}]{% endif %}"
    "/{{ ti.try_number }}.{{ dag_run.clear_number }}"
)
"""Of one attempt: Airflow keeps `run_id` when tasks are cleared and run again, and they may have written other data then.
How often the whole was cleared tells the callbacks of a DAG apart, whose `ti` is any of its tasks."""


class LakehubSensor(BaseSensorOperator):
    """Gives its worker back between two looks (`mode="reschedule"`) and looks every minute, unless told otherwise here or by
    `[lakehub] poke_interval` in Airflow's configuration. While Lakehub is out of reach it waits."""

    ui_color = "#dbe7f5"

    def __init__(self, *, lakehub_conn_id: str = DEFAULT_CONNECTION_ID, **kwargs: Any) -> None:
        kwargs.setdefault("mode", "reschedule")
        kwargs.setdefault("poke_interval", conf.getfloat("lakehub", "poke_interval", fallback=60.0))
        super().__init__(**kwargs)
        self.lakehub_conn_id = lakehub_conn_id


class GateSensor(LakehubSensor):
    """Waits until all inputs may be read, asking in one go. What was not checked is not allowed, nor is anything while Lakehub is
    out of reach.

    `inputs`: Input, or {"dataset", "from", "to", "dc"} with templates, such as {"dataset": "flights", "from": "{{ ds }}",
    "to": "{{ macros.ds_add(ds, 1) }}"}.
    """

    template_fields: Sequence[str] = ("inputs",)

    def __init__(self, *, inputs: Sequence[Input | Mapping[str, Any]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.inputs = [_as_mapping(item) for item in inputs]

    def poke(self, context: Context) -> bool:
        try:
            answer = client_of_connection(self.lakehub_conn_id).gate(
                list(map(_as_input, self.inputs)), request_id=_request_id(context)
            )
        except LakehubError as problem:
            if problem.is_transient:
                self.log.warning("Lakehub cannot say: %s", problem)
                return False
            raise AirflowFailException(f"The gate cannot answer that: {problem}") from problem
        if answer.allowed:
            self.log.info("All inputs may be read: %s", answer.verdict)
        else:
            self.log.info("Waits: %s; it may help to ask again in %s s", answer.why, answer.retry_after)
        return answer.allowed


class DatasetRunOperator(LakehubSensor):
    """Asks for a run of a dataset that Lakehub ingests: one that takes in what is new; with `first` and `last`, or `partitions`, a backfill of a modelled table.
    `data_center` is needed where the dataset has several copies.

    Its result is for a DatasetRunSensor, which waits for the run. As long as a run is at work that may have read its inputs before, it waits and asks
    again, so that what its run reads was there when the task began. A run that has not begun yet is not asked for twice.
    """

    template_fields: Sequence[str] = ("dataset", "first", "last", "partitions", "data_center")

    def __init__(
        self,
        *,
        dataset: str,
        first: str = "",
        last: str = "",
        partitions: Sequence[str] = (),
        chunk_size: int | None = None,
        data_center: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dataset = dataset
        self.first = first
        self.last = last
        self.partitions = list(partitions)
        self.chunk_size = chunk_size
        self.data_center = data_center

    def poke(self, context: Context) -> PokeReturnValue | bool:
        try:
            requested = self._ask(client_of_connection(self.lakehub_conn_id))
        except LakehubError as problem:
            if problem.is_transient:
                self.log.warning("Lakehub cannot say: %s", problem)
                return False
            raise AirflowFailException(f"No run of {self.dataset} can be asked for: {problem}") from problem
        if requested is None:
            self.log.info("Another run of %s is at work, or too many wait: asks again", self.dataset)
            return False
        self.log.info("%s is asked for", requested)
        return PokeReturnValue(is_done=True, xcom_value=requested.as_fields())

    def _ask(self, client: Client) -> RequestedRun | None:
        if not (self.first or self.last or self.partitions):
            return ask_for_run(client, self.dataset, data_center=self.data_center)
        return ask_for_backfill(
            client,
            self.dataset,
            first=self.first,
            last=self.last,
            partitions=self.partitions,
            chunk_size=self.chunk_size,
            data_center=self.data_center,
        )


class DatasetRunSensor(LakehubSensor):
    """Waits until what a DatasetRunOperator has asked for (`requested=ask.output`) has ended, and fails with its error where it has failed or was cancelled."""

    template_fields: Sequence[str] = ("requested",)

    def __init__(self, *, requested: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.requested = requested

    def poke(self, context: Context) -> bool:
        try:
            requested = RequestedRun(**self.requested)
        except TypeError as problem:
            raise AirflowFailException(
                f"`requested` is {self.requested!r}: give it the output of a DatasetRunOperator that has succeeded."
            ) from problem
        try:
            outcome = look_at(client_of_connection(self.lakehub_conn_id), requested)
        except LakehubError as problem:
            if problem.is_transient:
                self.log.warning("Lakehub cannot say: %s", problem)
                return False
            raise AirflowFailException(f"{requested} cannot be looked at: {problem}") from problem
        if outcome.error:
            raise AirflowFailException(outcome.error)
        self.log.info("%s: %s", requested, outcome.note)
        return outcome.is_over


class PipelineFinishedOperator(BaseOperator):
    """Tells that this run has written `[start, end)` of a dataset: what it wrote is tested at once.

    Cleared and run again, it tells again. With a `pipeline_run_id` of your own that stays the same it does not.
    """

    template_fields: Sequence[str] = ("dataset", "start", "end", "data_center", "pipeline_run_id", "link")
    ui_color = "#dbe7f5"

    def __init__(
        self,
        *,
        dataset: str,
        start: str = "",
        end: str = "",
        data_center: str = "",
        pipeline_run_id: str = RUN_ID_TEMPLATE,
        link: str = "",
        lakehub_conn_id: str = DEFAULT_CONNECTION_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dataset = dataset
        self.start = start
        self.end = end
        self.data_center = data_center
        self.pipeline_run_id = pipeline_run_id
        self.link = link
        self.lakehub_conn_id = lakehub_conn_id

    def execute(self, context: Context) -> int:
        """How many test runs are due."""
        return report_finished(self, self.log)


class PipelineFinishedNotifier(BaseNotifier):
    """The same as a callback: `on_success_callback=PipelineFinishedNotifier(dataset="delays", start="{{ ds }}", ...)`."""

    template_fields = PipelineFinishedOperator.template_fields

    def __init__(
        self,
        *,
        dataset: str,
        start: str = "",
        end: str = "",
        data_center: str = "",
        pipeline_run_id: str = RUN_ID_TEMPLATE,
        link: str = "",
        lakehub_conn_id: str = DEFAULT_CONNECTION_ID,
    ) -> None:
        super().__init__()
        self.dataset = dataset
        self.start = start
        self.end = end
        self.data_center = data_center
        self.pipeline_run_id = pipeline_run_id
        self.link = link
        self.lakehub_conn_id = lakehub_conn_id

    def notify(self, context: Context) -> None:
        report_finished(self, self.log)


def report_finished(reporter: PipelineFinishedOperator | PipelineFinishedNotifier, log: Any) -> int:
    """How many test runs are due."""
    answer = client_of_connection(reporter.lakehub_conn_id).pipeline_finished(
        reporter.dataset,
        reporter.start,
        reporter.end,
        run_id=shortened_id(reporter.pipeline_run_id, MAX_RUN_ID_LENGTH),
        data_center=reporter.data_center,
        link=reporter.link,
    )
    log.info("%s test runs of %s@%s are due", answer["made_due"], answer["dataset"], answer["data_center"])
    return int(answer["made_due"])


def client_of_connection(connection_id: str = DEFAULT_CONNECTION_ID) -> Client:
    """Of an Airflow connection: its host is the address, its password the token."""
    connection = BaseHook.get_connection(connection_id)
    host = connection.host or ""
    url = host if "://" in host else f"{connection.schema or 'https'}://{host}"
    return Client(f"{url}:{connection.port}" if connection.port else url, connection.password or "")


def _request_id(context: Context) -> str:
    """The same at every look of one run, so that it is counted once."""
    instance = context["ti"]
    return shortened_id(f"{instance.dag_id}/{instance.task_id}/{instance.run_id}", MAX_REQUEST_ID_LENGTH)


def shortened_id(name: str, longest: int) -> str:
    """The name, or its digest where the API takes no name of that length."""
    return name if len(name) <= longest else sha256(name.encode()).hexdigest()


def _as_mapping(item: Input | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(item, Input):
        return {"dataset": item.dataset, "from": item.start, "to": item.end, "dc": item.data_center}
    unknown = set(item) - {"dataset", "from", "to", "dc"}
    if unknown or not {"dataset", "from", "to"} <= set(item):
        raise ValueError(
            f"An input is {{dataset, from, to}}, with dc where the token has none; this one is {dict(item)}."
        )
    return dict(item)


def _as_input(item: Mapping[str, Any]) -> Input:
    return Input(item["dataset"], item["from"], item["to"], item.get("dc", ""))

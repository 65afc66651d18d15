"""The options of a feed: how its jobs read and write. Names, defaults and bounds for every input and for the jobs themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from lakehub.catalog import ports
from lakehub.catalog.models import Dataset
from lakehub.catalog.storages import is_captured
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import MAX_HINTS, did_you_mean
from lakehub.source_topics.begin import BEGIN_FORM, EARLIEST, KEY_IN_VALUE, KEY_OF_MESSAGE, is_begin

_YEAR_S = 366 * 24 * 3600
_KEYS = (KEY_IN_VALUE, KEY_OF_MESSAGE)
_KEY_FORM = (
    "`value` takes the columns of the record key from the fields of the value, `message` from the message's key."
)
OFF, ON = "off", "on"
"""What a switch is called on pages; the API has true and false."""
ON_MISFIT, MISFIT_IS_NULL = "on_misfit", "null"
ON_TRUNCATE, TRUNCATE_IS_APPLIED = "on_truncate", "apply"
ON_DROP, DROP_IS_APPLIED = "on_drop", "apply"
ON_NARROWING, NARROWING_STOPS = "on_narrowing", "stop"
ON_MOVE, KEY_STAYS = "on_move", "stay"
_DROP_FORM = (
    "`stop` ends the capture, and the rows of the lake stay until the dataset is loaded again. `apply` deletes them, and goes on with a table that is made again "
    "under the same name; of tables of MariaDB whose rows are captured, and not of tables of cells."
)
_NARROWING_FORM = (
    "`apply` goes on, and the lake keeps the wider type and the values that it has. `stop` ends the capture until the dataset is loaded again, because the "
    "server may have changed stored values without logging it."
)
_TRUNCATE_FORM = (
    "`stop` ends the capture, and the rows of the lake stay until the dataset is loaded again. `apply` deletes the rows that were there then, and goes on; of "
    "tables of MariaDB whose rows are captured, and not of tables of cells."
)
_MISFIT_FORM = (
    "`reject` puts its row into the error table. `null` applies the row with null in its place, and notes it in the error table; not in a column of the "
    "record key or the partition."
)
_MOVE_FORM = "`move` deletes the row where it was and writes it to the partition that the source says. `stay` changes it where it is: all of its columns but that of the partition, which keeps the value that it has there."
_MAX_SHOWN = 60
"""Characters of a name or a value that an error repeats."""


@dataclass(frozen=True)
class FeedOption:
    """`usable`: the numbers that a job can go by, both bounds included; None: the name of an index, a text that `is_fit` takes, of the form `form`, or true
    or false where the default is one of them.

    `least`: the smallest that people may set, where a smaller one would harm others. `zero_is_none`: 0 may be set as well, and
    means no limit. `limited_by`: the operator's setting of the largest one.
    """

    name: str
    label: str
    text: str
    default: int | str | bool
    usable: tuple[int, int] | None = None
    is_whole: bool = False
    least: int | None = None
    zero_is_none: bool = False
    limited_by: str = ""
    is_fit: Callable[[object], bool] | None = None
    form: str = ""
    is_of_topics: bool = False
    """It says how topics of Kafka are read, and nothing where there are none."""
    is_of_captures: bool = False
    """It is refused where the dataset is not captured."""

    @property
    def is_switch(self) -> bool:
        return isinstance(self.default, bool)

    @property
    def choices(self) -> tuple[str, ...]:
        """Empty where something is typed."""
        if self.is_switch:
            return (OFF, ON)
        return tuple(ports.index_names()) if self.bounds is None and self.is_fit is None else ()

    def concerns(self, *, captured: bool) -> bool:
        """Every dataset of that kind."""
        return captured if self.is_of_captures else not self.is_of_topics

    @property
    def bounds(self) -> tuple[int, int] | None:
        """Of what people may set: all jobs of an instance share its workers."""
        if self.usable is None:
            return None
        least, most = self.usable
        return self.least or least, min(most, getattr(settings, self.limited_by)) if self.limited_by else most

    def in_force(self, options: Mapping[str, Any]) -> Any:
        """The value that was set, else the default, within the bounds of now: a value may have been stored before they were so."""
        value = options.get(self.name, self.default)
        is_none = self.zero_is_none and value == 0
        if self.bounds is None or is_none or not _is_within(self.usable, value):
            return value
        least, most = self.bounds
        return min(max(value, least), most)


_ALL = (
    FeedOption(
        "index", "Index",
        "How a job finds the stored row of a key. `simple` reads the partitions that a batch touches, and the whole table where "
        "the key does not say the partition. `record_index`, and for up to two million rows `memory`, then read only the files that "
        "hold the keys; `hbase` is for the largest tables, and needs an index cluster. Another one is built first, and jobs go on with the former.",
        "simple",
    ),
    FeedOption(ON_MOVE, "Moved rows", f"What becomes of a row whose partition is another one now, where the record key does not say the partition. {_MOVE_FORM}", "move", is_fit=("move", KEY_STAYS).__contains__, form=_MOVE_FORM),
    FeedOption("overlap_s", "Overlap, seconds", "How far behind the watermark to look again, for transactions that commit late.", 120, (0, _YEAR_S)),
    FeedOption("chunk_rows", "Rows read at a time", "How many rows a job holds in memory while it reads.", 20_000, (1, 1_000_000), is_whole=True, least=1000),
    FeedOption("commit_rows", "Rows in a commit", "After about how many rows a job commits and reads on.", 5_000_000, (1, 1_000_000_000), is_whole=True, least=10_000),
    FeedOption("commit_mib", "Data in a commit, MiB", "After about how much data in memory a job commits and reads on.", 8192, (1, 1_048_576), is_whole=True, least=8),
    FeedOption("commit_s", "Reading time of a commit, seconds", "After how long a job commits what it has read and reads on.", 900, (1, _YEAR_S), least=5),
    FeedOption("max_file_mib", "Largest file, MiB", "About how large a file of the lake may get. A changed row writes its whole file anew; a scan reads few large files sooner.", 32, (1, 1024), is_whole=True),
    FeedOption("rows_per_s", "Rows read per second", "How fast a job may read, to spare the source; 0 is as fast as it can.", 0, (0, 1_000_000_000), least=100, zero_is_none=True),
    FeedOption("readers", "Connections of a load", "How many connections read a captured table at once for its first load, each another range of its key. A limit of the connection may leave it fewer.", 1, (1, 16), is_whole=True),
    FeedOption("deadline_s", "Job deadline, seconds", "How long a job may take before it is stopped.", 3600, (30, _YEAR_S), limited_by="LAKEHUB_MAX_DEADLINE_S"),
    FeedOption("inputs_back_s", "Look-back for inputs, seconds", "How far before the last look the inputs of an incremental job must be good.", 0, (0, _YEAR_S)),
    FeedOption("history", "History", "Whether every version of a row is kept, in a table of its own beside the dataset's. It begins with the next changes after it is set to on.", default=False, is_of_captures=True),
    FeedOption("history_days", "Days of history", "For how many days the history tells each row as it was; 0 is for ever.", 0, (0, 36_600), is_whole=True, least=1, zero_is_none=True, is_of_captures=True),
    FeedOption("topic_begin", "Topic: where to begin", f"From where on a topic of Kafka is read, at each load. {BEGIN_FORM}", EARLIEST, is_fit=is_begin, form=BEGIN_FORM, is_of_topics=True),
    FeedOption("topic_key", "Topic: the key of a row", f"Of a topic of Kafka: {_KEY_FORM}", KEY_IN_VALUE, is_fit=_KEYS.__contains__, form=_KEY_FORM, is_of_topics=True),
    FeedOption(ON_TRUNCATE, "TRUNCATE", f"Of a captured dataset: what becomes of its rows when its table is emptied by `TRUNCATE`. {_TRUNCATE_FORM}", "stop", is_fit=("stop", TRUNCATE_IS_APPLIED).__contains__, form=_TRUNCATE_FORM, is_of_captures=True),
    FeedOption(ON_DROP, "DROP TABLE", f"Of a captured dataset: what becomes of its rows when its table is dropped. {_DROP_FORM}", "stop", is_fit=("stop", DROP_IS_APPLIED).__contains__, form=_DROP_FORM, is_of_captures=True),
    FeedOption(ON_NARROWING, "Narrower columns", f"Of a captured dataset: what becomes of it when a column of its table becomes narrower. {_NARROWING_FORM}", "apply", is_fit=("apply", NARROWING_STOPS).__contains__, form=_NARROWING_FORM, is_of_captures=True),
    FeedOption(ON_MISFIT, "Values that do not fit", f"Of a captured dataset: what becomes of a value that does not fit its column. {_MISFIT_FORM}", "reject", is_fit=("reject", MISFIT_IS_NULL).__contains__, form=_MISFIT_FORM, is_of_captures=True),
)  # fmt: skip
FEED_OPTIONS = {option.name: option for option in _ALL}


def takes_feed_options(dataset: Dataset) -> bool:
    """Jobs write its rows; what is only monitored has no job."""
    return dataset.ingested and dataset.feed_or_none is not None


def has_changelog(dataset: Dataset) -> bool:
    """Its rows come from one."""
    feed = dataset.feed_or_none
    return feed is not None and feed.connection is not None and is_captured(feed.connection.plugin)


def effective_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """All of them, as jobs go by them."""
    return {name: option.in_force(options) for name, option in FEED_OPTIONS.items()}


def effective_options_of(dataset: Dataset) -> dict[str, Any]:
    """Empty where the dataset takes none; those of topics are there where they are set, those of captures where it is captured."""
    if not takes_feed_options(dataset):
        return {}
    options, captured = dataset.feed.options, has_changelog(dataset)
    return {
        name: value
        for name, value in effective_options(options).items()
        if name in options or FEED_OPTIONS[name].concerns(captured=captured)
    }


def checked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The effective options of a feed. Raises Refused for one that there is not, and for a value that no job can go by."""
    problems = dict(_problems(options, stored=True))
    if problems:
        raise Refused(" ".join(problems.values()))
    return effective_options(options)


def option_problems(options: Mapping[str, Any], *, captured: bool = True) -> dict[str, str]:
    """Why people cannot set these, by name, each with the value and the remedy. `captured`: the rows of the dataset come from a changelog."""
    of_others = {} if captured else {name: _needs_capture(name) for name in options if _is_of_captures(name)}
    return dict(_problems(options, stored=False)) | of_others


def _is_of_captures(name: str) -> bool:
    return name in FEED_OPTIONS and FEED_OPTIONS[name].is_of_captures


def _needs_capture(name: str) -> str:
    return (
        f"The feed's option `{name}` is for datasets that are captured: other sources do not tell each version of a row. Leave it out, or bring the table "
        "into the lake from a connection with the plug-in `mysql`, `kafka` or `schemaless`."
    )


def _problems(options: Mapping[str, Any], *, stored: bool) -> Iterator[tuple[str, str]]:
    unknown = [name for name in options if name not in FEED_OPTIONS]
    for name in unknown[:MAX_HINTS]:
        yield name, f"A feed has no option `{name:.{_MAX_SHOWN}}`.{did_you_mean(name, FEED_OPTIONS)}"
    for name, option in FEED_OPTIONS.items():
        problem = _value_problem(option, options[name], stored=stored) if name in options else ""
        if problem:
            yield name, problem


def _value_problem(option: FeedOption, value: Any, *, stored: bool) -> str:
    shown = f"The feed's option `{option.name}` is {value!r:.{_MAX_SHOWN}}:"
    if option.is_switch:
        return "" if isinstance(value, bool) else f"{shown} give true or false. Leave it out for false."
    if option.is_fit is not None:
        return "" if option.is_fit(value) else f"{shown} {option.form} Leave it out for {option.default}."
    if option.bounds is None:
        names = ports.index_names()
        return "" if value in names else f"{shown} there is no such index.{did_you_mean(str(value), names)}"
    if _is_within(option.usable if stored else option.bounds, value, is_whole=option.is_whole):
        return ""
    if option.zero_is_none and _is_within((0, 0), value):
        return ""
    least, most = option.bounds
    whole = ", without decimals" if option.is_whole else ""
    zero = "0, or " if option.zero_is_none else ""
    return f"{shown} give {zero}a number from {least} to {most}{whole}. Leave it out for {option.in_force({})}."


def _is_within(bounds: tuple[int, int] | None, value: object, *, is_whole: bool = False) -> bool:
    """NaN and infinity lie within no bounds."""
    if bounds is None or isinstance(value, bool) or not isinstance(value, int | float):
        return False
    least, most = bounds
    return least <= value <= most and (not is_whole or value == int(value))

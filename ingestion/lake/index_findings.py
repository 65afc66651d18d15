"""What a look at the index of a copy has found, in words, and as a finding until a later look finds it right."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ingestion.index_shares.standing import HBASE
from ingestion.lake import findings
from ingestion.models import JobRun
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import EVERYTHING

_WORDS = {
    "doubled": "the table has more than once",
    "missing": "the index does not know",
    "misplaced": "the index has in another place than the table",
}
_REPAIR = "Verify the index with `repairs`, which puts these entries right, or rebuild it."
_WITHOUT_ROW = "the index has without a row in the table, which does no harm"


def judge_index(run: JobRun, output: Mapping[str, Any], *, now: datetime) -> None:
    """`output`: of the job `verify_index`. A look at a sample that finds nothing says nothing of the other keys."""
    problems = {name: keys for name, keys in output["problems"].items() if keys and name in _WORDS}
    if not problems:
        if _share(output) >= 1:
            findings.clear_findings(run.copy, findings.INDEX_WRONG, now=now)
        return
    remedy = "Look for another writer, then load the copy again with `replace`."
    if "doubled" not in problems:
        remedy = "Rebuild the index." if "repaired" in output or output["index"] != HBASE else _REPAIR
    detail = {"run": run.pk, "problems": problems, "examples": output["examples"]}
    message = f"{index_sentence(output)} {remedy}"
    findings.raise_finding(run.copy, findings.INDEX_WRONG, EVERYTHING, message, detail, now=now)


def note_corrected(copy: DatasetCopy, keys: int, instant: str, *, now: datetime) -> None:
    """A job has met entries that led to files without their key: where some are wrong, others may be that no batch has asked for yet."""
    message = (
        f"Commit {instant}: for {_keys(keys)} of the batch the index named a file without the key. They were looked up in the whole table, and their entries put right; "
        f"no row was written twice. Others may be wrong, too. {_REPAIR}"
    )
    detail = {"commit": instant, "corrected": keys}
    findings.raise_finding(copy, findings.INDEX_WRONG, EVERYTHING, message, detail, now=now)


def index_sentence(output: Mapping[str, Any]) -> str:
    """`The index record_index was compared with 30 rows: 2 keys that the index does not know.`"""
    sample = f" ({100 * _share(output):.4g}% of the keys)" if _share(output) < 1 else ""
    compared = f"The index {output['index']} was compared with {output['rows']:,} rows{sample}"
    problems = "; ".join(_key_counts(output["problems"]))
    verdict = f"{compared}: {problems}." if problems else f"{compared}, and is right."
    repaired = "; ".join(_key_counts(output.get("repaired", {})))
    return f"{verdict} Before that, entries were put right: {repaired}." if repaired else verdict


def _key_counts(problems: Mapping[str, int]) -> list[str]:
    named = (*_WORDS.items(), ("without_row", _WITHOUT_ROW))
    return [f"{_keys(problems[name])} that {words}" for name, words in named if problems.get(name)]


def _share(output: Mapping[str, Any]) -> float:
    """Of the keys that were compared."""
    return float(output.get("share", 1.0))


def _keys(count: int) -> str:
    return f"{count:,} key{'' if count == 1 else 's'}"

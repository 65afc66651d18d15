"""What a look at the index of a copy has found, in words, and as a finding until a later look finds it right."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ingestion.lake import findings
from ingestion.models import JobRun
from lakehub.kernel.interval import EVERYTHING

_WORDS = {
    "doubled": "the table has more than once",
    "missing": "the index does not know",
    "misplaced": "the index has in another place than the table",
}
_WITHOUT_ROW = "the index has without a row in the table, which does no harm"


def judge_index(run: JobRun, output: Mapping[str, Any], *, now: datetime) -> None:
    """`output`: of the job `verify_index`."""
    problems = {name: keys for name, keys in output["problems"].items() if keys and name in _WORDS}
    if not problems:
        findings.clear_findings(run.copy, findings.INDEX_WRONG, now=now)
        return
    remedy = "Look for another writer, then load the copy again with `replace`."
    if "doubled" not in problems:
        remedy = "Rebuild the index."
    detail = {"run": run.pk, "problems": problems, "examples": output["examples"]}
    message = f"{index_sentence(output)} {remedy}"
    findings.raise_finding(run.copy, findings.INDEX_WRONG, EVERYTHING, message, detail, now=now)


def index_sentence(output: Mapping[str, Any]) -> str:
    """`The index record_index was compared with 30 rows: 2 keys that the index does not know.`"""
    compared = f"The index {output['index']} was compared with {output['rows']:,} rows"
    problems = [
        f"{output['problems'][name]:,} keys that {words}"
        for name, words in (*_WORDS.items(), ("without_row", _WITHOUT_ROW))
        if output["problems"].get(name)
    ]
    return f"{compared}: {'; '.join(problems)}." if problems else f"{compared}, and is right."

"""The state that a part of a table is in: while it is the same, so are the answers to all measures of it.

Of a Hudi table it is the files of that part, so that a commit to one partition leaves the others as they were; of files
their names, sizes and times. A database does not say what has changed.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping
from hashlib import sha256

from quality.engines.files import files_version
from quality.engines.scan import CannotRead, Files, HudiCopy, One, Part, Target
from quality.engines.slices import Slice, snapshot

log = logging.getLogger(__name__)


def states(target: Target, parts: Collection[Part]) -> Mapping[Part, str]:
    """A digest for each part, in one look at the table; without those that are empty, or whose state is not known."""
    try:
        if isinstance(target, HudiCopy):
            return _of_slices(target, parts)
        found = files_version(target) if isinstance(target, Files) else ""
    except CannotRead:
        return {}  # its measures will say so
    except Exception:
        # Whatever a library raises, it is measured anew then, and no test is without a result.
        log.exception("The state of %s is not known", target)
        return {}
    return dict.fromkeys(parts, found) if found else {}


def _of_slices(target: HudiCopy, parts: Collection[Part]) -> dict[Part, str]:
    (only, *others) = parts
    if not others and isinstance(only, One):
        return _digests({only: snapshot(target.uri, column=only.column, value=only.value, logs=True).slices})
    listed = snapshot(target.uri, logs=True).slices
    by_partition: dict[str | None, list[Slice]] = defaultdict(list)
    for one in listed:
        by_partition[one.partition].append(one)
    return _digests({part: by_partition[part.value] if isinstance(part, One) else listed for part in parts})


def _digests(slices: Mapping[Part, Collection[Slice]]) -> dict[Part, str]:
    """Hudi never writes to a file again: other data has other names."""
    names = {part: [name for one in found for name in (one.path, *one.logs)] for part, found in slices.items()}
    return {part: sha256("\n".join(files).encode()).hexdigest()[:32] for part, files in names.items() if files}

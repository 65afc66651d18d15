"""The state that a part of a table is in: while it is the same, so are the answers to all measures of it.

Of a Hudi table it is the files of that part, so that a commit to one partition leaves the others as they were; of files
their names, sizes and times. A database does not say what has changed.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping
from hashlib import sha256

from quality.engines.scans.targets import CannotRead, Files, HudiCopy, OnePartition, Part, Target
from quality.engines.storage.hudi_snapshot import FileSlice, read_snapshot
from quality.engines.storage.plain_files import files_version

log = logging.getLogger(__name__)


def part_states(target: Target, parts: Collection[Part]) -> Mapping[Part, str]:
    """A digest for each part, in one look at the table; without those that are empty, or whose state is not known."""
    try:
        if isinstance(target, HudiCopy):
            return _states_of_slices(target, parts)
        version = files_version(target) if isinstance(target, Files) else ""
    except CannotRead:
        return {}  # its measures will say so
    except Exception:
        # Whatever a library raises, it is measured anew then, and no test is without a result.
        log.exception("The state of %s is not known", target)
        return {}
    return dict.fromkeys(parts, version) if version else {}


def _states_of_slices(target: HudiCopy, parts: Collection[Part]) -> dict[Part, str]:
    (only, *others) = parts
    if not others and isinstance(only, OnePartition):
        return _digests({only: read_snapshot(target.uri, column=only.column, value=only.value, logs=True).slices})
    listed = read_snapshot(target.uri, logs=True).slices
    by_partition: dict[str | None, list[FileSlice]] = defaultdict(list)
    for file_slice in listed:
        by_partition[file_slice.partition].append(file_slice)
    return _digests({part: by_partition[part.value] if isinstance(part, OnePartition) else listed for part in parts})


def _digests(slices: Mapping[Part, Collection[FileSlice]]) -> dict[Part, str]:
    """Hudi never writes to a file again: other data has other names."""
    names = {
        part: [name for file_slice in file_slices for name in (file_slice.path, *file_slice.log_files)]
        for part, file_slices in slices.items()
    }
    return {part: sha256("\n".join(files).encode()).hexdigest()[:32] for part, files in names.items() if files}

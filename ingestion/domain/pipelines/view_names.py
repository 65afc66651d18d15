"""What a pipeline's jobs call the rows of its inputs in queries, beside the inputs' own names, and how far they have read them in checkpoints."""

from __future__ import annotations

OWN = "lakehub_"
"""No input is called so."""
CHANGED = f"{OWN}changed_"
"""Before the name of an input: its changed rows, as they were and as they are."""
ANY = f"{OWN}any_"
"""All of its rows, and what those that have changed were before."""
INPUTS = "inputs"
"""In the checkpoint: by name of the input the completion of the newest commit that was read."""
READ_AT = "read_at"
"""In the checkpoint: by name of the input the later completions at which backfills have read it, whose rows the target may hold."""
VERSION = "version"
"""In the checkpoint: by which version of the pipeline the rows were made (`PipelineVersion.note`)."""

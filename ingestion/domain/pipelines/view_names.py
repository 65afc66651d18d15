"""What the queries of a pipeline's job call the rows of its inputs, beside the inputs' own names."""

from __future__ import annotations

OWN = "lakehub_"
"""No input is called so."""
CHANGED = f"{OWN}changed_"
"""Before the name of an input: its changed rows, as they were and as they are."""
ANY = f"{OWN}any_"
"""All of its rows, and what those that have changed were before."""

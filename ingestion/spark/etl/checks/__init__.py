"""What a run of a pipeline refuses, or takes as a reason to recompute all rows."""

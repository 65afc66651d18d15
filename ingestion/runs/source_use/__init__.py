"""Who may use a source now: what a person has paused, and what is bounded for all jobs and looks together."""

"""The soak of pipelines: real flights change in every way, jobs die and overtake each other, and each table equals a full recomputation."""

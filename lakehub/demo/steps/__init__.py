"""The steps of the story, in order. Each is a module with a TITLE and `play(stage)`, which raises ClaimFailed."""

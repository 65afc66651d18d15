"""Backfills of modelled tables, chunk by chunk: asked for, paused and ended by people, worked off by the schedule."""

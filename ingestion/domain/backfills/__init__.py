"""Backfills in chunks: which partitions one names, how they are cut, which moves it takes, and how long it still takes."""

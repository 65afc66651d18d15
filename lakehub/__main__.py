"""`python -m lakehub`: the same as the `lakehub` command."""

from __future__ import annotations

from lakehub.cli import entry_point

if __name__ == "__main__":
    entry_point()

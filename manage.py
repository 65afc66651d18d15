#!/usr/bin/env python
"""The command line in a checkout, the same as `lakehub` of an installed package: `python manage.py help` lists the commands."""

from __future__ import annotations

from lakehub.cli import main

if __name__ == "__main__":
    main()

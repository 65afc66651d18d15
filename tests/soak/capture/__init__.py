"""Fault rounds for captured tables: `python -m tests.soak.capture --rounds 3 --seed 7 --changelog segments`.

Four writers change three tables of a MariaDB while processes of the instance and its servers are killed; then the lake must equal the source, row by row.
"""

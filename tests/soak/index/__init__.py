"""The soak of the Global Index: `python -m tests.soak.index --keys 1000000 --batches 30 --seed 7`.

A table whose index is in an HBase of its own gets batches of changes while region servers, Thrift and jobs are killed. docs/soak.md has the whole list.
"""

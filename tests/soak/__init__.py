"""Fault rounds against a running instance: `python -m tests.soak --rounds 5 --seed 7 --database sqlite`.

`stand` is what stands around the instance (source, servers, network, receiver), `faults` what is done to it, `checks` what must
hold once it is at rest again. docs/soak.md has the whole list.
"""

"""A replica whose runs are killed: `python -m tests.soak.replica`."""

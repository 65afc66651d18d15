"""The process `tap`: it reads the binlogs of the servers that it holds leases of, for all datasets that are captured from them."""

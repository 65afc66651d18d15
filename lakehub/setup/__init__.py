"""What the machine must have before anything runs: a Java runtime and the jar of the table format. No Django.

`python -m lakehub.setup` fetches what is missing, and does nothing the second time.
"""

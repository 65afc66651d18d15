"""Random queries, held against databases that run them: what the gate says that they read is all that they read.

Of each query the claim is taken. Then rows outside of the claimed ranges are removed, changed and added, and tables that are not
claimed are dropped: the answer must stay what it was.
"""

"""Modelled tables after a change of their inputs: made anew as a whole, in their last partitions, or by what the change reaches."""

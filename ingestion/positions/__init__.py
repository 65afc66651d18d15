"""Where copies of captured datasets stand in their changelog, and setting that."""

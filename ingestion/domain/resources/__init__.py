"""How large the Spark sessions of jobs are."""

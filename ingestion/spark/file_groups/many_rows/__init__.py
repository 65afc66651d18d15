"""A commit of many rows by Spark's tasks: each writes whole files anew, column by column, and nothing is looked up or merged row by row."""

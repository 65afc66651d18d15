"""What lies in the lake: the table format's timeline and options, and the tables of rows that did not fit."""

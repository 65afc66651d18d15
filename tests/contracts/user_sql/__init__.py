"""People's SQL, written to do harm, and what it is read by."""

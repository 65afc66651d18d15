"""Jobs that look keys up in a real HBase within their allowances, and what its region servers counted of it."""

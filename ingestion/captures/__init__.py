"""What is captured: which datasets, from which servers, to which topics of which changelog, and whose capture was stopped."""

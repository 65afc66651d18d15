"""What a server and its tables lack to be captured: of one table when it is onboarded, of many before anybody confirms."""

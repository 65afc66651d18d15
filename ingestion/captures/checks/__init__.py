"""Can a server be tapped, and tables of it be captured? Asked before anybody waits for the tap."""

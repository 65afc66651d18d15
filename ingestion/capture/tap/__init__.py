"""The tap of a server: one process reads its binlog once, for all tables that are captured, and commits their events to the changelog in order."""

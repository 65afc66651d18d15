"""Pure words of the domain that every app shares. No Django, no clock, no network, no randomness."""

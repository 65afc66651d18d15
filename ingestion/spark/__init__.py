"""Jobs as plain modules: a spec (JSON) comes in, a report (JSON) goes out. No Django here; it also runs from a zip."""

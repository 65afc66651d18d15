"""The files of tables of the lake, as they lie there: how many, how large, and what small queries over them find."""

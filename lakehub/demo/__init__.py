"""The story that `make demo` tells: real flights, moved to today, through every part of Lakehub.

`manage.py demo` prepares an instance folder of its own (`.demo`), starts the real processes in it and plays the steps.
Nothing outside this package knows that there is a demo.
"""

"""One plug-in of each kind, as somebody writes them who has Lakehub installed: storage, source, engine, check, channel."""

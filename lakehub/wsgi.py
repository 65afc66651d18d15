"""The web application, for any WSGI server."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

from lakehub.instance import prepare_instance

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakehub.settings")
prepare_instance()

application = get_wsgi_application()

from incidents.gate import question_log as gate_log  # noqa: E402  # it has models

gate_log.QUESTION_LOG.begin()

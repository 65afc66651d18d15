"""Lakehub's settings for tests: an instance folder that goes away with the run, quick hashing, a broker in memory."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

if "LAKEHUB_HOME" not in os.environ:
    os.environ["LAKEHUB_HOME"] = tempfile.mkdtemp(prefix="lakehub-tests-")
    atexit.register(shutil.rmtree, os.environ["LAKEHUB_HOME"], ignore_errors=True)

if "LAKEHUB_DATABASE_URL" in os.environ:
    # Processes of one test share a database and have folders of their own.
    os.environ.setdefault("LAKEHUB_ENCRYPTION_KEY", "of the tests")

from lakehub.instance import prepare_instance

prepare_instance()

from lakehub.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CELERY_BROKER_URL = os.environ.get("LAKEHUB_BROKER_URL", "memory://")
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, object] = {}
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
# What one test counted is not what the next one finds.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
# Tests ask at one and the same moment.
LAKEHUB_GATE_RATE = LAKEHUB_API_RATE = LAKEHUB_ADDRESS_RATE = 0
# Each client of a test would list all static files when it is made.
WHITENOISE_AUTOREFRESH = True
LAKEHUB_SECURITY_CONTACT = "mailto:security@example.com"
# Tables are made from the models: the migrations take six seconds of the processor for each of some twenty databases. What
# starts an instance as an operator would runs them, on SQLite and on PostgreSQL.
if os.environ.get("LAKEHUB_TEST_MIGRATIONS") != "1":
    MIGRATION_MODULES: dict[str, str | None] = {
        label.rpartition(".")[2]: None
        for label in INSTALLED_APPS  # noqa: F405
    }

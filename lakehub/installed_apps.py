"""Django's apps of Lakehub, apart from the settings: the command line looks for commands in them before it makes an instance."""

from __future__ import annotations

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "lakehub.clock",
    "lakehub.accounts",
    "lakehub.catalog",
    "ingestion",
    "quality",
    "incidents",
    "frontend",
    "lakehub",
]

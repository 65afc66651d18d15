"""Django's settings. What an operator may change is an environment variable: docs/configuration.md lists them.

Reading them makes no file: `lakehub.instance` makes the folder and its keys, before an entry point sets Django up.
"""

from __future__ import annotations

from pathlib import Path

import django_stubs_ext

from lakehub import environment as env
from lakehub import instance, logs
from lakehub.installed_apps import INSTALLED_APPS as INSTALLED_APPS
from lakehub.setup import locations

# Django's generic classes (ModelAdmin[Dataset]) can be written with their type at run time too.
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
LAKEHUB_HOME = locations.home_folder()
"""The instance's own folder: database, broker, staging, keys, and (by default) the lake."""

DEBUG = env.flag("LAKEHUB_DEBUG", False)
SECRET_KEY = instance.read_key("LAKEHUB_SECRET_KEY", LAKEHUB_HOME)
LAKEHUB_ENCRYPTION_KEY = instance.read_key("LAKEHUB_ENCRYPTION_KEY", LAKEHUB_HOME)
ALLOWED_HOSTS = env.words("LAKEHUB_ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("LAKEHUB_TRUSTED_ORIGINS")
LAKEHUB_BASE_URL = env.text("LAKEHUB_BASE_URL", "http://127.0.0.1:8000")

MIDDLEWARE = [
    "lakehub.http.request_id.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "lakehub.http.parsing.RejectNulMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "lakehub.http.csp.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "frontend.ui.viewer_zone.ViewerZoneMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "lakehub.urls"
WSGI_APPLICATION = "lakehub.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "frontend"],
        "APP_DIRS": True,
        "OPTIONS": {
            "libraries": {
                "lakehub": "frontend.ui.tags",
                "scores": "frontend.components.score_tags",
                "records": "frontend.results.record_tags",
            },
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "frontend.ui.page_frame.page_frame",
            ],
        },
    }
]

DATABASES = {"default": env.database(env.text("LAKEHUB_DATABASE_URL", f"sqlite:///{LAKEHUB_HOME / 'lakehub.db'}"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign-in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]
LAKEHUB_PROXIES = env.number("LAKEHUB_PROXIES", 0)
LAKEHUB_TOKEN_DAYS = env.number("LAKEHUB_TOKEN_DAYS", 365, least=1)
LAKEHUB_METRICS = env.choice("LAKEHUB_METRICS", "open", ("open", "token"))
_SECURE = env.flag("LAKEHUB_HTTPS", False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = _SECURE
SECURE_HSTS_SECONDS = 31_536_000 if _SECURE else 0
SESSION_COOKIE_HTTPONLY = True
SECURE_REFERRER_POLICY = "same-origin"

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
STATIC_URL = "static/"
STATIC_ROOT = LAKEHUB_HOME / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "frontend.ui.plotly_finder.PlotlyFinder",
]
WHITENOISE_USE_FINDERS = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

EMAIL_HOST = env.text("LAKEHUB_SMTP_HOST")
EMAIL_PORT = env.number("LAKEHUB_SMTP_PORT", 25)
EMAIL_HOST_USER = env.text("LAKEHUB_SMTP_USER")
EMAIL_HOST_PASSWORD = env.text("LAKEHUB_SMTP_PASSWORD")
EMAIL_USE_TLS = env.flag("LAKEHUB_SMTP_TLS", False)
DEFAULT_FROM_EMAIL = env.text("LAKEHUB_MAIL_FROM", "lakehub@localhost")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "lakehub.accounts.tokens.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["lakehub.accounts.permissions.HasScope"],
    "DEFAULT_SCHEMA_CLASS": "lakehub.http.openapi.ApiSchema",
    "DEFAULT_PARSER_CLASSES": ["lakehub.http.parsing.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "lakehub.http.content_negotiation.SingleRendererNegotiation",
    "DEFAULT_PAGINATION_CLASS": "lakehub.http.pagination.BoundedPagination",
    "PAGE_SIZE": 50,
    "EXCEPTION_HANDLER": "lakehub.http.error_responses.error_response",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Lakehub",
    "DESCRIPTION": "May I read this dataset over this time range now?",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "lakehub.http.openapi.describe_times_of_day",
    ],
    "ENUM_NAME_OVERRIDES": {
        "JobState": "ingestion.models.JobState",
        "JobKind": "ingestion.models.JobKind",
        "IncidentState": "incidents.models.IncidentState",
        "Severity": "incidents.models.alerts.SEVERITY_CHOICES",
    },
}

_BROKER = env.text("LAKEHUB_BROKER_URL", instance.DEFAULT_BROKER)
CELERY_BROKER_URL = _BROKER
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {name: {"queue": "spark"} for name in ("ingestion.tasks.run_job", "ingestion.tasks.check_lineage")}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULE_FILENAME = str(LAKEHUB_HOME / "beat")
CELERY_BEAT_SCHEDULE = {
    name: {"task": task, "schedule": seconds, "options": {"expires": seconds * 5}}
    for name, task, seconds in (
        ("ingest what is due", "ingestion.tasks.start_due_runs", 1.0),
        ("take in what others wrote", "ingestion.tasks.record_lake_commits", 10.0),
        ("look at lineage and tables, once a day", "ingestion.tasks.check_lineage", 60.0),
        ("test what is due", "quality.tasks.run_due", 1.0),
        ("retest what changed", "quality.tasks.claim_changes", 1.0),
        ("look at tables that others write", "quality.tasks.watch", 5.0),
        ("judge what time changed", "quality.tasks.judge_due", 1.0),
        ("let old runs go", "ingestion.tasks.prune_history", 3600.0),
        ("add up and let old results go", "quality.tasks.keep_house", 3600.0),
        ("let old questions go", "incidents.tasks.prune_history", 3600.0),
        ("turn verdicts into incidents", "incidents.tasks.process_flips", 1.0),
        ("send what waits", "incidents.tasks.send_due", 1.0),
        ("make the alerts of new metadata", "incidents.tasks.generate_alerts", 5.0),
        ("tell the owners, once a week", "incidents.tasks.send_weekly_reports", 60.0),
    )
}
if _BROKER.startswith("filesystem"):
    _FOLDER = instance.broker_folder(LAKEHUB_HOME)
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(_FOLDER / "queue"),
        "data_folder_out": str(_FOLDER / "queue"),
        "control_folder": str(_FOLDER / "control"),
        "store_processed": False,
        "polling_interval": 0.02,
    }

LAKEHUB_CLOCK = env.choice("LAKEHUB_CLOCK", "wall", ("wall", "shifted"))
LAKEHUB_LAUNCHER = env.choice("LAKEHUB_LAUNCHER", "warm", ("warm", "spark_submit"))
LAKEHUB_SPARK_MASTER = env.text("LAKEHUB_SPARK_MASTER", "local[2]")
LAKEHUB_SPARK_MEMORY = env.text("LAKEHUB_SPARK_MEMORY", "1g")
LAKEHUB_JAVA_HOME = env.text("LAKEHUB_JAVA_HOME")
LAKEHUB_CACHE = locations.cache_folder()
LAKEHUB_STAGING = Path(env.text("LAKEHUB_STAGING", str(LAKEHUB_HOME / "staging"))).resolve()
LAKEHUB_SOURCE_ROOTS = [Path(root).resolve() for root in env.words("LAKEHUB_SOURCE_ROOTS")]
LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = env.flag("LAKEHUB_ALLOW_PRIVATE_WEBHOOKS", False)
LAKEHUB_PAGERDUTY_URL = env.text("LAKEHUB_PAGERDUTY_URL", "https://events.pagerduty.com/v2/enqueue")
LAKEHUB_ENGINE_LIMITS = env.limits("LAKEHUB_ENGINE_LIMITS", "spark=1,sqlalchemy=4")
LAKEHUB_CONNECTION_LIMIT = env.number("LAKEHUB_CONNECTION_LIMIT", 2, least=1)
LAKEHUB_LINEAGE_SOURCES = {
    "file": "lakehub.catalog.lineage.events:EventFolderSource",
    "spark": "ingestion.spark_lineage:SparkLineageSource",
}
LAKEHUB_LINEAGE = env.choice("LAKEHUB_LINEAGE", "", ("", *LAKEHUB_LINEAGE_SOURCES))
LAKEHUB_LINEAGE_URI = env.text("LAKEHUB_LINEAGE_URI")
LAKEHUB_OFFBOARD_AFTER_DAYS = env.number("LAKEHUB_OFFBOARD_AFTER_DAYS", 14)
LAKEHUB_WEEKLY_REPORT = env.flag("LAKEHUB_WEEKLY_REPORT", True)
LAKEHUB_REUSE_RESULTS = env.flag("LAKEHUB_REUSE_RESULTS", True)
LAKEHUB_GROUPED_KEYS = env.number("LAKEHUB_GROUPED_KEYS", 10_000_000, least=1)
LAKEHUB_GATE_RATE = env.number("LAKEHUB_GATE_RATE", 100)
LAKEHUB_RESULTS_KEPT_DAYS = env.number("LAKEHUB_RESULTS_KEPT_DAYS", 30)
LAKEHUB_RUNS_KEPT_DAYS = env.number("LAKEHUB_RUNS_KEPT_DAYS", 90)
LAKEHUB_HISTORY_KEPT_DAYS = env.number("LAKEHUB_HISTORY_KEPT_DAYS", 400)

LAKEHUB_PORTS = {
    "accounts.DataCenters": "lakehub.catalog.data_centers:data_center_names",
    "ingestion.InputGate": "incidents.gate.input_gate:input_gate",
    "ingestion.RowsInLake": "quality.measuring.lake_rows:rows_in_lake",
    "catalog.SchemaChangeObserver": "ingestion.lake.schema_changes:raise_schema_changed",
    "catalog.OverridesCheck": "quality.state.sla_overrides:override_problems",
    "catalog.RunningJobs": "ingestion.runs.job_runs:running_jobs_held_off",
    "catalog.RetestCopies": "quality.planning.touched_partitions:retest_moved",
    "catalog.RetestComparison": "quality.planning.touched_partitions:retest_comparison",
    "catalog.ChangePreview": "incidents.gate.change_preview:preview_change",
}
"""Which function stands behind each port: `module:attribute`, imported on first use by the `ports` module of its app."""

LAKEHUB_TASK_ON_METADATA_CHANGE = "quality.tasks.claim_changes"
"""Woken when a change of the catalog is committed, so that its tests follow at once."""
LAKEHUB_TASK_ON_COMMIT = "quality.tasks.claim_changes"
"""Woken when commits of the lake were taken in, so that what they touched is tested again."""

LOGGING = logs.logging_config()

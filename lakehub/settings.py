"""Django's settings. What an operator may change is an environment variable: docs/configuration.md lists them.

Reading them makes no file: `lakehub.instance` makes the folder and its keys, before an entry point sets Django up.
"""

from __future__ import annotations

import os
from pathlib import Path

import django_stubs_ext

from lakehub import environment as env
from lakehub import instance, logs
from lakehub.installed_apps import INSTALLED_APPS as INSTALLED_APPS
from lakehub.processes.broker_options import transport_options
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
LAKEHUB_SECURITY_CONTACT = env.text("LAKEHUB_SECURITY_CONTACT")

MIDDLEWARE = [
    "lakehub.http.request_id.RequestIdMiddleware",
    "lakehub.http.security_headers.SecurityHeadersMiddleware",
    "lakehub.http.methods.AllowedMethodsMiddleware",
    "lakehub.http.insecure_api.RefuseInsecureApiMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "lakehub.http.limits.address_limit.AddressLimitMiddleware",
    "lakehub.http.parsing.RejectNulMiddleware",
    "lakehub.http.parsing.ConsoleFilterMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "lakehub.accounts.tokens.authentication.NamedAuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "lakehub.accounts.sign_in.unfinished.UnfinishedSignInMiddleware",
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
AUTH_PASSWORD_VALIDATORS: list[dict[str, object]] = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "lakehub.accounts.sign_in.password_rules.GuessablePasswordValidator"},
    {"NAME": "lakehub.accounts.sign_in.password_rules.OwnNamesValidator"},
]
PASSWORD_RESET_TIMEOUT = 3600
LAKEHUB_LOCAL_PASSWORDS = env.flag("LAKEHUB_LOCAL_PASSWORDS", True)
LAKEHUB_REQUIRE_TOTP = env.choice("LAKEHUB_REQUIRE_TOTP", "nobody", ("nobody", "admins", "everybody"))
LAKEHUB_SESSION_IDLE = env.number("LAKEHUB_SESSION_IDLE", 480, least=1)
LAKEHUB_SESSION_HOURS = env.number("LAKEHUB_SESSION_HOURS", 168, least=1)
SESSION_ENGINE = "lakehub.accounts.sign_in.session_store"
LAKEHUB_OIDC_ISSUER = env.issuer("LAKEHUB_OIDC_ISSUER")
LAKEHUB_OIDC_CLIENT_ID = env.text("LAKEHUB_OIDC_CLIENT_ID")
LAKEHUB_OIDC_CLIENT_SECRET = env.text("LAKEHUB_OIDC_CLIENT_SECRET")
env.require_with("LAKEHUB_OIDC_ISSUER", "LAKEHUB_OIDC_CLIENT_ID", "LAKEHUB_OIDC_CLIENT_SECRET")
LAKEHUB_OIDC_NAME = env.text("LAKEHUB_OIDC_NAME", "single sign-on")
LAKEHUB_OIDC_SCOPES = env.words("LAKEHUB_OIDC_SCOPES", "openid,profile,email")
LAKEHUB_OIDC_HOSTS = env.words("LAKEHUB_OIDC_HOSTS")
LAKEHUB_OIDC_LINK_MAIL = env.flag("LAKEHUB_OIDC_LINK_MAIL", False)
LAKEHUB_OIDC_GROUPS_CLAIM = env.text("LAKEHUB_OIDC_GROUPS_CLAIM", "groups")
LAKEHUB_OIDC_TEAMS = env.roles_by_group("LAKEHUB_OIDC_TEAMS", ("viewer", "owner", "on_call", "admin"))
SESSION_COOKIE_AGE = LAKEHUB_SESSION_HOURS * 3600
LAKEHUB_PROXIES = env.number("LAKEHUB_PROXIES", 0)
LAKEHUB_TOKEN_DAYS = env.number("LAKEHUB_TOKEN_DAYS", 365, least=1)
LAKEHUB_METRICS = env.choice("LAKEHUB_METRICS", "open", ("open", "token"))
if LAKEHUB_PROXIES:
    # The operator says that a proxy stands in front, on this host or another one: it says which scheme the browser used.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
_SECURE = env.flag("LAKEHUB_HTTPS", False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = _SECURE
SECURE_HSTS_SECONDS = 31_536_000 if _SECURE else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = _SECURE
if _SECURE:
    # Browsers take a cookie of such a name from this very host only, over HTTPS.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
# No script of ours reads a token from a cookie: forms carry it.
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
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
WHITENOISE_ALLOW_ALL_ORIGINS = False
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

EMAIL_HOST = env.text("LAKEHUB_SMTP_HOST")
EMAIL_PORT = env.number("LAKEHUB_SMTP_PORT", 25)
EMAIL_HOST_USER = env.text("LAKEHUB_SMTP_USER")
EMAIL_HOST_PASSWORD = env.text("LAKEHUB_SMTP_PASSWORD")
EMAIL_USE_TLS = env.flag("LAKEHUB_SMTP_TLS", False)
EMAIL_TIMEOUT = 10  # seconds, for each answer of the mail server
DEFAULT_FROM_EMAIL = env.text("LAKEHUB_MAIL_FROM", "lakehub@localhost")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "lakehub.accounts.tokens.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["lakehub.accounts.permissions.HasScope"],
    "DEFAULT_THROTTLE_CLASSES": ["lakehub.accounts.tokens.request_throttle.CallerThrottle"],
    "DEFAULT_SCHEMA_CLASS": "lakehub.http.openapi.ApiSchema",
    "DEFAULT_PARSER_CLASSES": ["lakehub.http.parsing.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "lakehub.http.content_negotiation.SingleRendererNegotiation",
    "DEFAULT_PAGINATION_CLASS": "lakehub.http.pagination.BoundedPagination",
    "PAGE_SIZE": 50,
    "EXCEPTION_HANDLER": "lakehub.http.error_responses.error_response",
    "ALLOWED_VERSIONS": ["v1"],  # no other `?version=` gets into the header of the schema
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
        "BackfillState": "ingestion.models.BackfillState",
        "ChunkState": "ingestion.models.ChunkState",
        "IncidentState": "incidents.models.IncidentState",
        "Severity": "incidents.models.alerts.SEVERITY_CHOICES",
    },
}

LAKEHUB_LINEAGE_SOURCES = {
    "file": "lakehub.catalog.lineage.events:EventFolderSource",
    "spark": "ingestion.spark_lineage:SparkLineageSource",
}
LAKEHUB_LINEAGE = env.choice("LAKEHUB_LINEAGE", "", ("", *LAKEHUB_LINEAGE_SOURCES))
LAKEHUB_LINEAGE_URI = env.text("LAKEHUB_LINEAGE_URI")
LAKEHUB_OPENLINEAGE_URL = env.receiver("LAKEHUB_OPENLINEAGE_URL")
LAKEHUB_OPENLINEAGE_KEY = env.bearer("LAKEHUB_OPENLINEAGE_KEY")
LAKEHUB_OPENLINEAGE_NAMESPACE = env.text("LAKEHUB_OPENLINEAGE_NAMESPACE", "lakehub")

_BROKER = env.text("LAKEHUB_BROKER_URL", instance.DEFAULT_BROKER)
CELERY_BROKER_URL = _BROKER
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {
    "ingestion.tasks.run_job": {"queue": "spark"},
    # A job reads it, in the one process that has a Spark session; files are read by any worker.
    "ingestion.tasks.check_lineage": {"queue": "spark" if LAKEHUB_LINEAGE == "spark" else CELERY_TASK_DEFAULT_QUEUE},
    "incidents.tasks.*": {"queue": "incidents"},  # a lane of their own: no source that is slow keeps a message waiting
}
LAKEHUB_TASK_MINUTES = env.number("LAKEHUB_TASK_MINUTES", 60, least=1)
CELERY_TASK_SOFT_TIME_LIMIT = LAKEHUB_TASK_MINUTES * 60
CELERY_TASK_TIME_LIMIT = CELERY_TASK_SOFT_TIME_LIMIT + 60
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_TRANSPORT_OPTIONS = transport_options(_BROKER, LAKEHUB_HOME)

LAKEHUB_CLOCK = env.choice("LAKEHUB_CLOCK", "wall", ("wall", "shifted"))
LAKEHUB_LAUNCHER = env.choice("LAKEHUB_LAUNCHER", "warm", ("warm", "spark_submit"))
LAKEHUB_SPARK_MASTER = env.text("LAKEHUB_SPARK_MASTER", "local[2]")
LAKEHUB_SPARK_MEMORY = env.text("LAKEHUB_SPARK_MEMORY", "1g")
LAKEHUB_SPARK_MAX_MEMORY = env.memory_mib("LAKEHUB_SPARK_MAX_MEMORY", env.memory_mib("LAKEHUB_SPARK_MEMORY", 1024))
LAKEHUB_SPARK_MAX_CORES = env.number("LAKEHUB_SPARK_MAX_CORES", os.cpu_count() or 1, least=1)
LAKEHUB_JAVA_HOME = env.text("LAKEHUB_JAVA_HOME")
LAKEHUB_CACHE = locations.cache_folder()
LAKEHUB_STAGING = Path(env.text("LAKEHUB_STAGING", str(LAKEHUB_HOME / "staging"))).resolve()
LAKEHUB_TRANSFORMERS = str(Path(env.text("LAKEHUB_TRANSFORMERS")).resolve()) if env.text("LAKEHUB_TRANSFORMERS") else ""
LAKEHUB_SOURCE_HOSTS = env.hosts("LAKEHUB_SOURCE_HOSTS")
LAKEHUB_SOURCE_ROOTS = [Path(root).resolve() for root in env.words("LAKEHUB_SOURCE_ROOTS")]
LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = env.flag("LAKEHUB_ALLOW_PRIVATE_WEBHOOKS", False)
LAKEHUB_PAGERDUTY_URL = env.text("LAKEHUB_PAGERDUTY_URL", "https://events.pagerduty.com/v2/enqueue")
LAKEHUB_ENGINE_LIMITS = env.limits("LAKEHUB_ENGINE_LIMITS", "spark=1,sqlalchemy=4")
LAKEHUB_CONNECTION_TRIALS = env.number("LAKEHUB_CONNECTION_TRIALS", 2, least=1)
LAKEHUB_SLOW_SOURCES = env.number("LAKEHUB_SLOW_SOURCES", max(1, env.number("LAKEHUB_WORKERS", 2) // 2), least=1)
LAKEHUB_CONNECTION_LIMIT = env.number("LAKEHUB_CONNECTION_LIMIT", 2, least=1)
LAKEHUB_OFFBOARD_AFTER_DAYS = env.number("LAKEHUB_OFFBOARD_AFTER_DAYS", 14)
LAKEHUB_WEEKLY_REPORT = env.flag("LAKEHUB_WEEKLY_REPORT", True)
LAKEHUB_REUSE_RESULTS = env.flag("LAKEHUB_REUSE_RESULTS", True)
LAKEHUB_GROUPED_KEYS = env.number("LAKEHUB_GROUPED_KEYS", 10_000_000, least=1)
LAKEHUB_GATE_RATE = env.number("LAKEHUB_GATE_RATE", 100)
LAKEHUB_API_RATE = env.number("LAKEHUB_API_RATE", 50)
LAKEHUB_ADDRESS_RATE = env.number("LAKEHUB_ADDRESS_RATE", 500)
LAKEHUB_RESULTS_KEPT_DAYS = env.number("LAKEHUB_RESULTS_KEPT_DAYS", 30)
LAKEHUB_RUNS_KEPT_DAYS = env.number("LAKEHUB_RUNS_KEPT_DAYS", 90)
LAKEHUB_LAKE_RETENTION_HOURS = env.number("LAKEHUB_LAKE_RETENTION_HOURS", 2, least=1)
LAKEHUB_LAKE_READER_HOURS = env.number("LAKEHUB_LAKE_READER_HOURS", 48, least=1)
LAKEHUB_MAX_DEADLINE_S = env.number("LAKEHUB_MAX_DEADLINE_S", 24 * 3600, least=30)
LAKEHUB_CHANGELOG = env.text("LAKEHUB_CHANGELOG", "segments")
LAKEHUB_CHANGELOG_URL = env.text("LAKEHUB_CHANGELOG_URL", (LAKEHUB_HOME / "changelog").as_uri())
LAKEHUB_CHANGELOG_DAYS = env.number("LAKEHUB_CHANGELOG_DAYS", 7, least=1)
LAKEHUB_RAW_DAYS = env.number("LAKEHUB_RAW_DAYS", 7)
LAKEHUB_COMMIT_GATHER_S = env.number("LAKEHUB_COMMIT_GATHER_S", 10)
LAKEHUB_HISTORY_KEPT_DAYS = env.number("LAKEHUB_HISTORY_KEPT_DAYS", 400)

LAKEHUB_PORTS = {
    "accounts.DataCenters": "lakehub.catalog.data_centers:data_center_names",
    "ingestion.AuditCheck": "quality.audits.checking:audit_problem",
    "ingestion.Auditor": "quality.audits.judging:refusals",
    "ingestion.InputGate": "incidents.gate.input_gate:input_gate",
    "ingestion.LagLimit": "quality.state.dataset_slas:lag_limit",
    "ingestion.RowsInLake": "quality.measuring.lake_rows:rows_in_lake",
    "ingestion.SourceTurn": "quality.measuring.slow_sources:connection_turn",
    "catalog.SchemaChangeObserver": "ingestion.lake.schema_changes:raise_schema_changed",
    "catalog.OverridesCheck": "quality.state.sla_overrides:override_problems",
    "catalog.CaptureCheck": "ingestion.captures.checks.single:capture_findings",
    "catalog.CaptureSurveyor": "ingestion.captures.checks.survey:survey_database",
    "catalog.IndexNames": "ingestion.spark.indexes:index_names",
    "catalog.IndexCheck": "ingestion.runs.index_choice.changing:index_problems",
    "catalog.IndexChangeObserver": "ingestion.runs.index_choice.changing:index_changed",
    "catalog.LoopCheck": "ingestion.pipelines.checks.loops:loop_problem",
    "catalog.RunningJobs": "ingestion.runs.job_runs:running_jobs_held_off",
    "catalog.RetestCopies": "quality.planning.touched_partitions:retest_moved",
    "catalog.RetestComparison": "quality.planning.touched_partitions:retest_comparison",
    "catalog.ChangePreview": "incidents.gate.change_preview:preview_change",
}
"""Which function stands behind each port: `module:attribute`, imported on first use by the `ports` module of its app."""

LAKEHUB_AUDIT_SUBJECTS = {
    "team": ("accounts.Team", "name", "pk"),
    "token": ("accounts.Token", "prefix", "team"),
    "consumer": ("accounts.Consumer", "name", "team"),
    "connection": ("catalog.Connection", "name", "team"),
    "dataset": ("catalog.Dataset", "name", "team"),
    "copy": ("catalog.Dataset", "name", "team"),
    "run": ("ingestion.JobRun", "pk", "copy__dataset__team"),
    "schema": ("ingestion.SchemaSubject", "name", "team"),
    "hook": ("quality.PipelineHook", "key", "team"),
    "incident": ("incidents.Incident", "pk", "dataset__team"),
}
"""Whose administrators read a line of the audit log about `dataset:flights`: the model, what finds the row by its name, and the way
to its team. Lines about anything else are for whoever runs the instance."""

LAKEHUB_TASK_ON_METADATA_CHANGE = "quality.tasks.claim_changes"
"""Woken when a change of the catalog is committed, so that its tests follow at once."""
LAKEHUB_TASK_ON_COMMIT = "quality.tasks.claim_changes"
"""Woken when commits of the lake were taken in, so that what they touched is tested again."""

LAKEHUB_WAKEUPS = tuple(f"{app}.wakeups.WAKEUPS" for app in ("ingestion", "quality", "incidents", "lakehub.accounts"))
"""Which tasks the pacemaker sends, and when."""
LAKEHUB_ON_CLOCK_SET_BACK = tuple(
    f"{app}.clock_set_back.put_right" for app in ("lakehub.accounts", "ingestion", "quality", "incidents")
)

LOGGING = logs.logging_config()

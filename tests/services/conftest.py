"""Airflow asks a server of ours."""

from tests.served_database import django_db_modify_db_settings

__all__ = ["django_db_modify_db_settings"]

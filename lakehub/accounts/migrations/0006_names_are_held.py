from django.db import migrations
from django.db.models import Q
from django.db.models.functions import Now

RESERVED = "ingestion"
LONGEST = 63


def hold_names(apps, schema_editor):
    """A name is the team's that has the oldest token of it that lives, or else the oldest of all.

    Whoever asked under the name of Lakehub's own jobs asks under one of the team's from now on.
    """
    tokens, consumers = apps.get_model("accounts", "Token").objects, apps.get_model("accounts", "Consumer").objects
    for token in tokens.filter(consumer=RESERVED).select_related("team"):
        token.consumer = f"{RESERVED}-{token.team.name}"[:LONGEST]
        token.save(update_fields=["consumer"])
    lives = Q(revoked_at=None, expires_at__gt=Now(), created_by__is_active=True)
    holders = {}
    for found in (tokens.filter(lives), tokens.all()):
        for name, team in found.order_by("created_at", "pk").values_list("consumer", "team"):
            holders.setdefault(name, team)
    consumers.bulk_create(consumers.model(name=name, team_id=team) for name, team in holders.items())


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0005_consumers"),
    ]

    operations = [
        migrations.RunPython(hold_names, migrations.RunPython.noop),
    ]

from datetime import timedelta

from django.db import migrations, models
from django.db.models.functions import Now


def give_an_end(apps, schema_editor):
    """Tokens without an end get a year, from now."""
    apps.get_model("accounts", "Token").objects.filter(expires_at=None).update(expires_at=Now() + timedelta(days=365))


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0003_sign_in_tries_by_lock"),
    ]

    operations = [
        migrations.RunPython(give_an_end, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="token",
            name="expires_at",
            field=models.DateTimeField(),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["actor", "-at"], name="audit_by_actor"),
        ),
    ]

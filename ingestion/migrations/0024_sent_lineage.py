from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ingestion', '0023_pipeline_transformers'),
    ]

    operations = [
        migrations.CreateModel(
            name='LineageReceiver',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('leased_until', models.DateTimeField(blank=True, null=True)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(blank=True, null=True)),
                ('last_error', models.TextField(blank=True)),
                ('last_sent_at', models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.AddField(
            model_name='jobrun',
            name='owes_lineage',
            field=models.BooleanField(default=False),
        ),
        migrations.AddIndex(
            model_name='jobrun',
            index=models.Index(condition=models.Q(('owes_lineage', True)), fields=['ended_at', 'id'], name='jobrun_owes_lineage'),
        ),
    ]

"""A comparison that was asked for in the admin can be stopped there."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("loadtest", "0002_swarms")]

    operations = [
        migrations.AddField(
            model_name="trial",
            name="stopped",
            field=models.DateTimeField(
                null=True,
                blank=True,
                help_text="somebody asked for it in the admin: no further strategy is begun",
            ),
        )
    ]

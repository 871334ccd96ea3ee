"""The admin's swarms are trials too: said in the help text of the command."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("loadtest", "0001_trials")]

    operations = [
        migrations.AlterField(
            model_name="trial",
            name="command",
            field=models.CharField(max_length=20, help_text="compare, faults, explore, import, swarm"),
        )
    ]

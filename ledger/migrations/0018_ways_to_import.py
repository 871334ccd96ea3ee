"""An import says how its lines are posted: line by line under the book's strategy, or set-based."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0017_lock_record_counter")]
    operations = [
        migrations.AddField(
            "importrun",
            "way",
            models.CharField(
                choices=[("line-by-line", "line by line, under the strategy"), ("set-based", "set-based")],
                default="line-by-line",
                help_text="how lines are posted",
                max_length=12,
            ),
        ),
    ]

"""Settings of the museum's Django project: one app, one database, one cache, where the environment says."""

import os

from psycopg.conninfo import conninfo_to_dict

SECRET_KEY = "shown to everybody"  # noqa: S105  # pragma: allowlist secret
INSTALLED_APPS = ["museum"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True

REDIS_URL = os.environ["REDIS_URL"]
_database = conninfo_to_dict(os.environ["DATABASE_URL"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _database.get("dbname", "postgres"),
        "USER": _database.get("user", ""),
        "PASSWORD": _database.get("password", ""),
        "HOST": _database.get("host", ""),
        "PORT": _database.get("port", ""),
    }
}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}}

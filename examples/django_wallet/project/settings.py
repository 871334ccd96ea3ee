"""Settings of the example: the database and the cache come from the environment."""

import os

from psycopg.conninfo import conninfo_to_dict

SECRET_KEY = "an example"  # noqa: S105  # pragma: allowlist secret
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "wallet"]
ROOT_URLCONF = "wallet.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ALLOWED_HOSTS = ["testserver"]

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
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": os.environ["REDIS_URL"]}
}

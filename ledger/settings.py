"""Django's settings. Everything that differs between machines comes from the environment."""

from __future__ import annotations

from datetime import timedelta

import environ

from ledger import logs
from ledger.addresses import BASE_DIR, addresses, lab_dir
from ledger.config import mariadb
from ledger.config.look import UNFOLD as UNFOLD
from ledger.config.proxies import client_address, networks
from ledger.config.secret import secret_key

env = environ.Env()
_known = addresses()

DEBUG = env.bool("DEBUG", default=False)
#: PRODUCTION=1 (docker-compose.yml sets it) turns on what `check --deploy` demands
PRODUCTION = env.bool("PRODUCTION", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="") or secret_key(lab_dir(), production=PRODUCTION)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "ledger",  # before unfold: two of its templates are ours (docs/decisions/0006)
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "csp",
    "procrastinate.contrib.django",
    "axes",
    "loadtest",
]

MIDDLEWARE = [
    "ledger.http.metrics_page.MetricsMiddleware",
    "ledger.http.request_id.RequestIdMiddleware",
    "ledger.http.api_errors.JsonErrorsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "ledger.http.wrong_method.WrongMethodMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "ledger.http.visitor_zone.VisitorZoneMiddleware",
    "ledger.http.not_configured.NotConfiguredMiddleware",
    "axes.middleware.AxesMiddleware",
]

# --- who may try to log in how often: somebody who guesses a password is locked out, from there and under that name
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AXES_HANDLER = "ledger.http.login_limits.LoginLimits"
AXES_CLIENT_IP_CALLABLE = client_address
AXES_FAILURE_LIMIT = env.int("LOGIN_ATTEMPTS", default=10)
LOGIN_ATTEMPTS_PER_ADDRESS = env.int("LOGIN_ATTEMPTS_PER_ADDRESS", default=100)
#: addresses or networks whose X-Forwarded-For is believed; empty: nobody's
TRUSTED_PROXIES = networks(env.list("TRUSTED_PROXIES", default=[]))
AXES_COOLOFF_TIME = timedelta(minutes=5)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_HTTP_RESPONSE_CODE = 429
AXES_LOCKOUT_TEMPLATE = "429.html"
AXES_ENABLE_ADMIN = False
AXES_DISABLE_ACCESS_LOG = True

ROOT_URLCONF = "ledger.urls"
WSGI_APPLICATION = "ledger.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# --- servers -------------------------------------------------------------------------------------------------
# Without an address, the engine is a backend whose first use names the command that starts the servers.
DATABASES = {
    "default": {
        **(env.db_url_config(_known["DATABASE_URL"]) if "DATABASE_URL" in _known else {}),
        "ENGINE": "django.db.backends.postgresql" if "DATABASE_URL" in _known else "ledger.no_database",
        "CONN_MAX_AGE": env.int("CONN_MAX_AGE", default=600),
        "CONN_HEALTH_CHECKS": True,
    }
}
if "MARIADB_URL" in _known:
    DATABASES["mariadb"] = mariadb.database(_known["MARIADB_URL"])
DATABASE_ROUTERS = ["ledger.config.routers.LedgerRouter"]

CACHES = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": _known.get("REDIS_URL", "redis://127.0.0.1:0/0"),
        "OPTIONS": {"CONNECTION_POOL_KWARGS": {"retry": None}},
    }
}
REDIS_NODES = [url for url in _known.get("REDIS_NODES", "").split(",") if url]
ZOOKEEPER_HOSTS = _known.get("ZOOKEEPER_HOSTS", "")

# --- the ledger ------------------------------------------------------------------------------------------------
#: bearer token of the HTTP API; empty: open (loopback only). `check --deploy` demands one.
API_TOKEN = env.str("API_TOKEN", default="")
#: bearer token of /metrics; empty: only a caller on this machine is answered, and no proxy's
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
#: host:port on which a background worker serves its /metrics; empty: nowhere
METRICS_LISTEN = env.str("METRICS_LISTEN", default="")
#: none, otlp or console (ledger/traces.py)
OTEL_TRACES_EXPORTER = env.str("OTEL_TRACES_EXPORTER", default="none")
#: third-party locks (`module:callable`) with which the HTTP API may open books; never taken from a request
EXTRA_LOCKS = env.list("EXTRA_LOCKS", default=[])
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000
IMPORT_MAX_BYTES = env.int("IMPORT_MAX_BYTES", default=10_000_000)
IMPORT_MAX_ROWS = env.int("IMPORT_MAX_ROWS", default=100_000)
IMPORT_MAX_FILES = env.int("IMPORT_MAX_FILES", default=20)
#: comparisons that one user may run at the same time in the admin
TRIALS_AT_ONCE = env.int("TRIALS_AT_ONCE", default=3)
#: workers process an import in chunks; if a worker is silent for the lease (seconds), its chunk goes to another
IMPORT_CHUNK_LINES = env.int("IMPORT_CHUNK_LINES", default=50)
IMPORT_LEASE = env.float("IMPORT_LEASE", default=15.0)
#: the interface on which an owner of `single-writer` listens for TCP callers on other hosts; empty: a socket file
#: that only this user can open
OWNER_LISTEN = env.str("OWNER_LISTEN", default="")

# --- web -------------------------------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
FORMAT_MODULE_PATH = ["ledger.formats"]
STATIC_URL = "static/"
# filled by collectstatic when the image is built; without it, whitenoise serves the files from the packages
STATIC_ROOT = env.path("STATIC_ROOT", default=str(BASE_DIR / "staticfiles")) if PRODUCTION else None
WHITENOISE_USE_FINDERS = not PRODUCTION
if PRODUCTION:
    STORAGES = {
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    }
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
SILENCED_SYSTEM_CHECKS: list[str] = []

SESSION_COOKIE_HTTPONLY = True
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if PRODUCTION:
    SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=True)
    SECURE_REDIRECT_EXEMPT = [
        r"^api/",
        r"^health/",
    ]  # a redirected POST loses its body; a token protects these
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", default=31_536_000)
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True

_SELF = "'self'"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [_SELF],
        "script-src": [_SELF],
        "style-src": [_SELF],
        "img-src": [_SELF, "data:"],
        "font-src": [_SELF],
        "connect-src": [_SELF],
        "frame-ancestors": ["'none'"],
        "form-action": [_SELF],
        "base-uri": [_SELF],
        "object-src": ["'none'"],
    }
}

LOGGING = logs.settings(env.str("LOG_FORMAT", default="line"), env.str("LOG_LEVEL", default="WARNING"))

"""The WSGI application that gunicorn serves: `gunicorn ledger.wsgi`."""

import os
from importlib import import_module

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ledger.settings")
application = get_wsgi_application()
import_module(
    "ledger.urls"
)  # now, and with --preload once for all workers; otherwise the first request waits for it

"""The URLs: the admin, the JSON API, the health of the service."""

from django.contrib import admin
from django.urls import include, path

from ledger.http.api import api
from ledger.http.health import live, ready
from ledger.http.metrics_page import metrics_page

urlpatterns = [
    path("", include("loadtest.front.urls")),
    path("admin/", admin.site.urls),
    path("api/", api.urls),
    path("metrics", metrics_page, name="metrics"),
    path("health/live", live, name="live"),
    path("health/ready", ready, name="ready"),
]

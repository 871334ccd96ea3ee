"""The URLs: the admin, the JSON API, the health of the service."""

from django.contrib import admin
from django.urls import include, path

from ledger.http.api import api
from ledger.http.health import live, ready

urlpatterns = [
    path("", include("loadtest.front.urls")),
    path("admin/", admin.site.urls),
    path("api/", api.urls),
    path("health/live", live, name="live"),
    path("health/ready", ready, name="ready"),
]

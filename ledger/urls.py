"""The URLs: the admin, the JSON API, the health of the service."""

from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

from ledger.http.api import api
from ledger.http.health import live, ready

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("api/", api.urls),
    path("health/live", live, name="live"),
    path("health/ready", ready, name="ready"),
]

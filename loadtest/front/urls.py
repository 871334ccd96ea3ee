"""The addresses that need no login. ledger/urls.py includes them by name: the ledger knows nothing of load tests."""

from django.urls import path

from loadtest.front import documents, home, play

urlpatterns = [
    path("", home.home, name="front"),
    path("experiments/", home.start, name="front_experiments"),
    path("experiments/<int:pk>/", home.shown, name="front_experiment"),
    path("strategies/<slug:slug>/", home.strategy, name="front_strategy"),
    path("play", play.play, name="front_play"),
    path("play/<slug:name>.json", play.positions, name="front_positions"),
    path("docs/", documents.index, name="front_documents"),
    path("docs/images/<path:name>", documents.image, name="front_image"),
    path("docs/<path:name>", documents.document, name="front_document"),
]

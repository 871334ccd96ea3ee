"""Two requests give an article the same new tag, by `article.tags.add("sale")`."""

from __future__ import annotations

from lost_update_lab import worker
from museum.packages.package import Package, PackageTrial


def article():
    from django.db import connection, models
    from taggit.managers import TaggableManager

    class Article(models.Model):
        tags = TaggableManager()

        class Meta:
            app_label = "taggit"

    def opened():
        with connection.schema_editor() as editor:
            editor.create_model(Article)
        Article.objects.create()

    return Article, opened


def trials():
    Article, opened = article()

    def add():
        Article.objects.get(pk=1).tags.add("sale")

    two = [worker("Ann", add), worker("Bob", add)]
    return [
        PackageTrial(name="tags.add", workers=two, setup=opened),
        PackageTrial(name="tags.add, a crash", workers=two, setup=opened, faults={"crashes": 1}),
    ]


PACKAGE = Package(
    pins=["django-taggit==6.1.0"], trials=trials, apps=["django.contrib.contenttypes", "taggit"]
)

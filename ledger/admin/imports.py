"""Imports in the admin: start one, watch it, see its outcome, try the refused lines again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST
from unfold.paginator import InfinitePaginator

from ledger.admin.book_pages import SHOWN, title_of
from ledger.admin.import_form import ImportForm
from ledger.admin.readonly import ReadOnlyAdmin, amount, took
from ledger.imports.operations import books_with_imports
from ledger.imports.preview import failed_lines, preview
from ledger.imports.progress import problem_lines, progress
from ledger.imports.retry import try_again
from ledger.imports.stop import stop
from ledger.imports.upload import open_book_for, start_import
from ledger.models import Book, ImportLine, ImportRun

PROBLEMS_SHOWN = 50
AMOUNT = amount("amount")


@admin.register(ImportRun)
class ImportRunAdmin(ReadOnlyAdmin):
    first_step = ("Import files", "ledger_importrun_add")
    list_display = ("__str__", "strategy", "way", "files", "workers", "started_by", "created", "time_taken")
    list_filter = ("book__strategy",)
    list_select_related = ("book", "started_by")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("ledger.add_importrun")

    @admin.display(description="took")
    def time_taken(self, run: ImportRun) -> str:
        return took(run.created, run.finished)

    @admin.display(ordering="book__strategy")
    def strategy(self, run: ImportRun) -> str:
        return title_of(run.book.strategy)

    @admin.display
    def files(self, run: ImportRun) -> str:
        return ", ".join(batch.name for batch in run.batches.all() if batch.kind == batch.Kind.FILE)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("batches")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        retry, end = (view(require_POST(each)) for each in (self.retry_view, self.stop_view))
        return [
            path("<int:run_id>/progress/", view(self.progress_view), name="ledger_importrun_progress"),
            path("<int:run_id>/retry/", retry, name="ledger_importrun_retry"),
            path("<int:run_id>/stop/", end, name="ledger_importrun_stop"),
            path(
                "<int:run_id>/failed/<int:batch_id>.csv",
                view(self.failed_view),
                name="ledger_importrun_failed",
            ),
            *super().get_urls(),
        ]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = ImportForm(request.POST or None, request.FILES or None, book=request.GET.get("book", ""))
        if "look" in request.POST:
            return self._look(request, form)
        if request.method == "POST" and form.is_valid():
            try:
                run = self._start(request, form)
            except ValueError as error:
                form.add_error(None, str(error).split("\n"))
            else:
                return redirect("admin:ledger_importrun_change", run.pk)
        context = {**self.admin_site.each_context(request), "title": "New import", "form": form}
        return TemplateResponse(request, "ledger/import_new.html", context)

    def _look(self, request: HttpRequest, form: ImportForm) -> HttpResponse:
        """What the files hold, and what is wrong with it, before anything is posted. With the page's script only this
        part is exchanged, and the files stay chosen."""
        form.is_valid()
        shown = {"files": [preview(each) for each in form.cleaned_data.get("uploads", ())], "form": form}
        if request.headers.get("HX-Request"):
            return TemplateResponse(request, "ledger/import_preview.html", shown)
        context = {**self.admin_site.each_context(request), "title": "New import", "look": True, **shown}
        return TemplateResponse(request, "ledger/import_new.html", context)

    def failed_view(self, request: HttpRequest, run_id: int, batch_id: int) -> HttpResponse:
        """The lines of one file that were not posted, as they were sent: to mend and to upload again."""
        batch = self._run(request, run_id).batches.filter(pk=batch_id).select_related("file").first()
        if batch is None or batch.file is None:
            raise Http404(f"no file {batch_id} in this import")
        answer = HttpResponse(failed_lines(batch), content_type="text/csv; charset=utf-8")
        answer["Content-Disposition"] = f'attachment; filename="failed-{run_id}-{batch_id}.csv"'
        return answer

    @transaction.atomic  # no new book without its import
    def _start(self, request: HttpRequest, form: ImportForm) -> ImportRun:
        chosen = form.cleaned_data
        if chosen["book"]:
            book = Book.objects.get(pk=chosen["book"])
        else:
            book = open_book_for(
                chosen["uploads"],
                chosen["strategy"],
                chosen["opening"],
                store=chosen["store"],
                name=f"import: {title_of(chosen['strategy'])}",
                values=form.book_settings(),
            )
        return start_import(
            book,
            chosen["uploads"],
            workers=chosen["workers"],
            way=chosen["way"],
            all_or_nothing=chosen["all_or_nothing"],
            scan=chosen["scan"],
            user=request.user,
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        run = self._run(request, object_id)
        context = {
            **self.admin_site.each_context(request),
            **self._seen(request, run),
            "title": f"Import {run.pk}",
        }
        return TemplateResponse(request, "ledger/import.html", context)

    def progress_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """The part of the page that changes while the import runs, for htmx."""
        context = self._seen(request, self._run(request, run_id))
        return TemplateResponse(request, "ledger/import_progress.html", context)

    def retry_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        told = "Trying {} lines again.", "There is nothing to try again."
        return self._change(request, run_id, try_again, *told)

    def stop_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        told = "Stopped. {} lines were not posted.", "There was nothing left to stop."
        return self._change(request, run_id, stop, *told)

    def _change(
        self, request: HttpRequest, run_id: int, change: Callable[[ImportRun], int], some: str, none: str
    ) -> HttpResponse:
        """`change` the import, say how many lines that was, and show its page."""
        run = self._run(request, run_id)
        if not self.has_add_permission(request):
            raise PermissionDenied
        count = change(run)
        messages.info(request, some.format(count) if count else none)
        return redirect("admin:ledger_importrun_change", run.pk)

    def _run(self, request: HttpRequest, run_id: Any) -> ImportRun:
        if not self.has_view_permission(request):  # first: a 404 would tell what is there
            raise PermissionDenied
        run: ImportRun | None = self.get_object(request, str(run_id))
        if run is None:
            raise Http404(f"no import {run_id}")
        return run

    def _seen(self, request: HttpRequest, run: ImportRun) -> dict[str, Any]:
        problems = problem_lines(run)
        seen: dict[str, Any] = {
            "run": run,
            "book": run.book,
            "strategy": title_of(run.book.strategy),
            "progress": progress(run),
            "problems": problems[:PROBLEMS_SHOWN],
            "problem_count": problems.count(),
            "can_start": self.has_add_permission(request),
        }
        if run.finished:
            seen["books"] = books = books_with_imports(run.book)
            seen["accounts"] = sorted(books.accounts, key=lambda each: -each.lost_amount)[:SHOWN]
        return seen


@admin.register(ImportLine)
class ImportLineAdmin(ReadOnlyAdmin):
    first_step = ("Import files", "ledger_importrun_add")
    list_display = ("batch", "number", "seller", "account", AMOUNT, "reference", "state", "problem")
    readonly_fields = (AMOUNT,)
    list_filter = ("state", "batch__kind")
    list_select_related = ("batch",)
    search_fields = ("reference", "account", "seller")
    ordering = ("-batch", "number")
    paginator = InfinitePaginator
    fields = (
        ("batch", "number"),
        ("seller", "reference"),
        ("account", AMOUNT),
        ("state", "attempts"),
        "problem",
        ("key", "entry"),
        ("worker", "started", "ended"),
    )

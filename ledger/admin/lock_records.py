"""A read-only list of the lock table's rows, as the lock-table article pictures them (E16)."""

from __future__ import annotations

from django.contrib import admin
from unfold.paginator import InfinitePaginator

from ledger.admin.readonly import ReadOnlyAdmin
from ledger.models import LockRecord


@admin.register(LockRecord)
class LockRecordAdmin(ReadOnlyAdmin):
    list_before_template = "ledger/parts/lock_records.html"
    list_display = ("name", "status", "deadline", "owner", "count", "updated")
    list_filter = ("status",)
    search_fields = ("name",)
    ordering = ("-updated",)
    paginator = InfinitePaginator
    fields = ("name", ("status", "deadline", "owner"), ("count", "description"), ("created", "updated"))

"""Users and groups in the look of the admin, and read-only background jobs."""

from __future__ import annotations

import json

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from procrastinate.contrib.django import admin as _of_the_queue  # noqa: F401  it registers the models that are unregistered here
from procrastinate.contrib.django import models as queue
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from ledger.admin.readonly import ReadOnlyAdmin

for model in (User, Group, queue.ProcrastinateJob):
    admin.site.unregister(model)

# the sidebar's name for them, also above and below their list
queue.ProcrastinateJob._meta.verbose_name, queue.ProcrastinateJob._meta.verbose_name_plural = (
    "background job",
    "background jobs",
)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):  # type: ignore[type-arg]  # takes none at run time
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    actions = None
    filter_horizontal = ()  # two lists side by side do not fit, and their search field has no label
    readonly_fields = ("last_login", "date_joined")


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):
    actions = None
    filter_horizontal = ()


@admin.register(queue.ProcrastinateJob)
class JobAdmin(ReadOnlyAdmin):
    list_display = ("id", "task_name", "args", "status", "attempts", "scheduled_at")
    list_filter = ("status", "task_name")
    exclude = ("args",)  # unfold would colour it with inline styles
    readonly_fields = ("arguments",)

    @admin.display
    def arguments(self, job: queue.ProcrastinateJob) -> str:
        return json.dumps(job.args, ensure_ascii=False)

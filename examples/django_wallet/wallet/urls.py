"""One view: the voucher is redeemed over HTTP."""

from django.http import HttpRequest, JsonResponse
from django.urls import path

from wallet.services import TooLate, redeem, redeem_locked


def redeem_view(request: HttpRequest, code: str, user: int) -> JsonResponse:
    operation = redeem_locked if "locked" in request.GET else redeem
    try:
        operation(code, user)
    except TooLate:
        return JsonResponse({"detail": "too late"}, status=409)
    return JsonResponse({"detail": "redeemed"})


urlpatterns = [path("redeem/<str:code>/<int:user>/", redeem_view)]

"""A voucher for a single use at two checkouts: `is_available_to_user()`, then `record_usage()`, as Oscar's own checkout
does it. The last item in stock: `net_stock_level`, then `allocate()`."""

from __future__ import annotations

from lost_update_lab import worker
from museum.packages.package import Package, PackageTrial

SHOP = [
    "analytics",
    "checkout",
    "address",
    "shipping",
    "catalogue",
    "catalogue.reviews",
    "communication",
    "partner",
    "basket",
    "payment",
    "offer",
    "order",
    "customer",
    "search",
    "voucher",
    "wishlists",
]
CONTRIB = ["admin", "auth", "contenttypes", "sessions", "messages", "staticfiles", "sites", "flatpages"]
DASHBOARD = ["reports", "users", "orders", "catalogue", "offers", "partners", "pages", "ranges", "reviews"]
DASHBOARD += ["vouchers", "communications", "shipping"]
OTHERS = (
    "oscar.config.Shop",
    "widget_tweaks",
    "haystack",
    "treebeard",
    "sorl.thumbnail",
    "easy_thumbnails",
    "django_tables2",
)


def settings():
    from oscar import defaults

    found = {name: getattr(defaults, name) for name in dir(defaults) if name.startswith("OSCAR")}
    engine = "haystack.backends.simple_backend.SimpleEngine"
    return {**found, "SITE_ID": 1, "SECRET_KEY": "x", "HAYSTACK_CONNECTIONS": {"default": {"ENGINE": engine}}}


def opened():
    from datetime import timedelta

    from django.contrib.auth.models import User
    from django.utils import timezone
    from oscar.core.loading import get_model

    now, Voucher = timezone.now(), get_model("voucher", "Voucher")
    Voucher.objects.create(
        name="Xmas",
        code="XMAS",
        usage=Voucher.SINGLE_USE,
        start_datetime=now - timedelta(days=1),
        end_datetime=now + timedelta(days=3650),
    )
    for number, name in enumerate(("Ann", "Bob"), 1):
        user = User.objects.create(username=name)
        order = {"number": str(number), "currency": "EUR", "total_incl_tax": 1, "total_excl_tax": 1}
        get_model("order", "Order").objects.create(user=user, **order)
    kind = get_model("catalogue", "ProductClass").objects.create(name="lamps")
    product = get_model("catalogue", "Product").objects.create(title="lamp", product_class=kind)
    partner = get_model("partner", "Partner").objects.create(name="us")
    stock = {"product": product, "partner": partner, "partner_sku": "1", "num_in_stock": 1, "price": 1}
    get_model("partner", "StockRecord").objects.create(**stock)


def redeem(name):
    from django.contrib.auth.models import User
    from oscar.core.loading import get_model

    voucher = get_model("voucher", "Voucher").objects.get(code="XMAS")
    user = User.objects.get(username=name)
    available, _ = voucher.is_available_to_user(user)
    if available:
        voucher.record_usage(get_model("order", "Order").objects.get(user=user), user)
    return available


def reserve():
    from oscar.core.loading import get_model

    stock = get_model("partner", "StockRecord").objects.get(partner_sku="1")
    if stock.net_stock_level < 1:
        return "sold out"
    stock.allocate(1)
    return "sold"


def used_once():
    from oscar.core.loading import get_model

    return get_model("voucher", "VoucherApplication").objects.count() <= 1


def sold_once(one, other):
    return [one, other].count("sold") <= 1


def trials():
    return [
        PackageTrial(
            name="a voucher for a single use",
            workers=[worker("Ann", redeem, "Ann"), worker("Bob", redeem, "Bob")],
            setup=opened,
            invariant=(used_once, "a voucher for a single use was used twice"),
        ),
        PackageTrial(
            name="the last item in stock",
            workers=[worker("Ann", reserve), worker("Bob", reserve)],
            setup=opened,
            invariant=(sold_once, "one lamp was sold twice"),
        ),
    ]


PACKAGE = Package(
    pins=["django-oscar[sorl-thumbnail,easy-thumbnails]==4.2.1"],
    trials=trials,
    apps=[
        *(f"django.contrib.{each}" for each in CONTRIB),
        *OTHERS,
        "oscar.apps.dashboard.apps.DashboardConfig",
        *(f"oscar.apps.dashboard.{each}.apps.{each.title()}DashboardConfig" for each in DASHBOARD),
        *(
            f"oscar.apps.{each}.apps.{''.join(part.title() for part in each.split('.'))}Config"
            for each in SHOP
        ),
    ],
    settings=settings,
    others="the registry has no newer one; 3.2.6 breaks in both trials too. Reported: django-oscar/django-oscar#4612",
)

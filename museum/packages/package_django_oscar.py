"""A voucher for a single use at two checkouts: `is_available_to_user()`, then `record_usage()`, as Oscar's own checkout
does it. The last item in stock: `is_purchase_permitted()`, then `allocate()`."""

from __future__ import annotations

from lost_update_lab import worker
from museum.packages.package import Package, Trial

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
    "dashboard",
    "dashboard.reports",
    "dashboard.users",
    "dashboard.orders",
    "dashboard.catalogue",
    "dashboard.offers",
    "dashboard.partners",
    "dashboard.pages",
    "dashboard.ranges",
    "dashboard.reviews",
    "dashboard.vouchers",
    "dashboard.communications",
    "dashboard.shipping",
]
CONTRIB = ["admin", "auth", "contenttypes", "sessions", "messages", "staticfiles", "sites", "flatpages"]
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


def trials():
    from datetime import timedelta

    from django.contrib.auth.models import User
    from django.utils import timezone
    from oscar.core.loading import get_model

    Voucher, Order = get_model("voucher", "Voucher"), get_model("order", "Order")
    StockRecord, Product = get_model("partner", "StockRecord"), get_model("catalogue", "Product")

    def opened():
        now = timezone.now()
        Voucher.objects.create(
            name="Xmas",
            code="XMAS",
            usage=Voucher.SINGLE_USE,
            start_datetime=now - timedelta(days=1),
            end_datetime=now + timedelta(days=3650),
        )
        for number, name in enumerate(("Ann", "Bob"), 1):
            user = User.objects.create(username=name)
            Order.objects.create(
                number=str(number), user=user, currency="EUR", total_incl_tax=1, total_excl_tax=1
            )
        kind = get_model("catalogue", "ProductClass").objects.create(name="lamps")
        product = Product.objects.create(title="lamp", product_class=kind)
        partner = get_model("partner", "Partner").objects.create(name="us")
        StockRecord.objects.create(product=product, partner=partner, partner_sku="1", num_in_stock=1, price=1)

    def redeem(name):
        voucher, user = Voucher.objects.get(code="XMAS"), User.objects.get(username=name)
        available, _ = voucher.is_available_to_user(user)
        if available:
            voucher.record_usage(Order.objects.get(user=user), user)
        return available

    def reserve():
        stock = StockRecord.objects.get(partner_sku="1")
        if stock.net_stock_level < 1:
            return "sold out"
        stock.allocate(1)
        return "sold"

    def both(operation, *arguments):
        return [worker(name, operation, *(name for _ in arguments)) for name in ("Ann", "Bob")]

    def used():
        return Voucher.objects.get().applications.count() <= 1

    def sold(one, other):
        return [one, other].count("sold") <= 1

    return [
        Trial(
            name="a voucher for a single use",
            workers=both(redeem, "name"),
            setup=opened,
            invariant=(used, "a voucher for a single use was used twice"),
        ),
        Trial(
            name="the last item in stock",
            workers=both(reserve),
            setup=opened,
            invariant=(sold, "one lamp was sold twice"),
        ),
    ]


PACKAGE = Package(
    pins=["django-oscar[sorl-thumbnail,easy-thumbnails]==4.2.1"],
    trials=trials,
    apps=[
        *(f"django.contrib.{each}" for each in CONTRIB),
        *OTHERS,
        *(
            f"oscar.apps.{each}.apps.{''.join(part.title() for part in each.split('.'))}Config"
            for each in SHOP
        ),
    ],
    settings=settings,
    newer="still open in the newest: django-oscar/django-oscar#4612",
)

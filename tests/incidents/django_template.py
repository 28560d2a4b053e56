# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Django: a template calls a property of each row, which computes a total again and again."""
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.template import engines
from django.urls import path

from lib import incident

MANIFEST = {
    "title": "Django: a property that computes, called by a template for each row",
    "cause": "cpu",
    "words": [["CPU", "GIL"]],
    "clock": "waits",
    "packages": ["django", "gunicorn"],
}
waits = incident.Clock("waits")
settings.configure(ROOT_URLCONF=__name__, SECRET_KEY="x", ALLOWED_HOSTS=["*"], DEBUG=False,
                   TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}])
PAGE = "<table>{% for o in orders %}<tr><td>{{ o.number }}</td><td>{{ o.total }}</td><td>{{ o.name|upper }}</td></tr>{% endfor %}</table>"


class Order:
    def __init__(self, number):
        self.number, self.name = number, f"customer {number}"
        self.lines = [(i % 7, i % 97) for i in range(1500)]

    @property
    def total(self):
        with waits:
            return sum(count * price for count, price in self.lines if price > 3)  # cause (total)


orders = [Order(i) for i in range(60)]


def page(request):
    return HttpResponse(engines["django"].from_string(PAGE).render({"orders": orders}))


urlpatterns = [path("orders", page)]
app = get_wsgi_application()


def main():
    port = incident.gunicorn(__file__, 1, 2)
    incident.load(port, "/orders", 2, 5)
    incident.serve(__file__)


if __name__ == "__main__":
    main()

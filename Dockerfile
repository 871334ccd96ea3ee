# The image of all of the lab's own services: web, background workers, scan, Locust.
FROM python:3.13.15-slim-bookworm

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN useradd --create-home --uid 10001 lab
WORKDIR /app

COPY requirements/base.txt requirements/base.txt
RUN python -m pip install --require-hashes -r requirements/base.txt

COPY manage.py pyproject.toml ./
COPY locks locks
COPY ledger ledger
COPY loadtest loadtest
COPY lost_update_lab lost_update_lab
# the front page shows the documentation and what was measured
COPY docs docs
COPY README.md ./
# collectstatic needs settings, and settings in production need a key: this one is used by nothing else
RUN SECRET_KEY=only-for-collectstatic PRODUCTION=1 python manage.py collectstatic --noinput \
    && mkdir -p /app/.lab && chown lab /app/.lab

USER 10001
EXPOSE 8000
CMD ["gunicorn", "ledger.wsgi", "--config", "ledger/http/gunicorn.py"]

"""docker-compose.yml and the Dockerfile, as far as they can be tried without an engine: the compose schema, the
linter, and the very same commands with the very same environment as plain processes."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
import yaml
from procrastinate.contrib.django.models import ProcrastinateJob
from tenacity import Retrying, retry_if_exception_type, retry_if_not_result, stop_after_delay, wait_fixed

from ledger.models import Entry
from lost_update_lab.embedded.ports import free_port

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SECRETS = {
    "SECRET_KEY": "k" * 60 + "0123456789",
    "API_TOKEN": "t0ken",
    "POSTGRES_PASSWORD": "pa55",  # pragma: allowlist secret
    "METRICS_TOKEN": "scrape",
}


def compose() -> dict[str, Any]:
    """The file with its variables filled in, as `docker compose` would."""
    text = (ROOT / "docker-compose.yml").read_text()
    filled = re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: SECRETS[found[1]], text)
    filled = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", filled)
    assert "${" not in filled
    return dict(yaml.safe_load(filled))


def environment(service: str) -> dict[str, str]:
    """What the service's process sees, but for the addresses: here they are those of the session's servers."""
    given = dict(compose()["services"][service]["environment"])
    here = {name: os.environ[name] for name in ("DATABASE_URL", "REDIS_URL", "LAB_DIR")}
    here["METRICS_LISTEN"] = f"127.0.0.1:{free_port()}"
    return {"PATH": f"{BIN}:{os.environ['PATH']}", **given, **here}


def run(command: list[str], **extra: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=280, **extra)


def test_the_file_follows_the_compose_schema() -> None:
    done = run(
        [str(BIN / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"]
    )
    assert done.returncode == 0, done.stdout


def test_a_broken_file_is_seen(tmp_path: Path) -> None:
    broken = tmp_path / "docker-compose.yml"
    broken.write_text(
        (ROOT / "docker-compose.yml").read_text().replace("services:", "services: 1\nx-was:", 1)
    )
    assert run(
        [str(BIN / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec", str(broken)]
    ).returncode


def test_the_dockerfile_has_no_complaint() -> None:
    done = run([str(BIN / "hadolint"), "Dockerfile"])
    assert (done.returncode, done.stdout) == (0, "")


def test_nothing_is_published_beyond_loopback_and_nothing_of_ours_runs_as_root() -> None:
    services = compose()["services"]
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert re.search(r"^USER 10001$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("service", compose()["services"])
def test_each_container_is_an_exact_release_that_starts_without_root(service: str) -> None:
    """The image's documentation of its user was read by a person: there is no container engine here."""
    found = compose()["services"][service]
    image = found["image"]
    if found.get("build"):
        (image,) = re.findall(r"^FROM (\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    else:
        assert int(found["user"].split(":")[0]) > 0
    assert re.search(r":v?\d+\.\d+(\.\d+)?(-\w+)*$", image), image
    assert found["cap_drop"] == ["ALL"]
    assert found["security_opt"] == ["no-new-privileges:true"]


def test_the_proxy_serves_a_name_that_browsers_send_and_the_ledger_trusts() -> None:
    """For an address they send none, and caddy has no certificate for the container's own address."""
    services = compose()["services"]
    origin = re.search(r"^(https://\S+) \{$", (ROOT / "deploy" / "Caddyfile").read_text(), re.MULTILINE)
    assert origin
    assert origin[1] == services["web"]["environment"]["CSRF_TRUSTED_ORIGINS"] == "https://localhost:8443"


def test_postgres_is_ready_when_it_can_be_asked_from_other_containers() -> None:
    assert "-h 127.0.0.1" in compose()["services"]["postgres"]["healthcheck"]["test"][1]


def test_locust_is_given_the_token_of_the_api_and_no_other_secret() -> None:
    services = compose()["services"]
    for name in ("locust-master", "locust-worker"):
        assert services[name]["environment"].keys() == {"API_TOKEN"}


def test_only_the_services_of_the_ledger_reach_the_servers_that_keep_money_and_locks() -> None:
    found = compose()
    services = found["services"]
    on = {name: set(each.get("networks", ["default"])) for name, each in services.items()}
    servers = {"postgres", "valkey", "valkey-replica", "sentinel", "mariadb", "zookeeper"}
    servers |= {f"valkey-node-{number}" for number in (1, 2, 3)}
    assert {name for name, networks in on.items() if networks == {"data"}} == servers | {
        "migrate",
        "migrate-mariadb",
    }
    assert {name for name, networks in on.items() if networks == {"data", "default"}} == {
        *("web", "worker", "scan", "swarm")
    }
    assert found["networks"] == {"data": {"internal": True}}
    assert not any(services[name].get("ports") for name in servers)


def test_a_service_that_is_scaled_has_no_name_and_no_port_of_its_own() -> None:
    services = compose()["services"]
    for name in ("web", "worker", "locust-worker", "valkey-replica", "sentinel"):
        assert not services[name].keys() & {"container_name", "ports", "hostname"}
    assert "name web\n" in (ROOT / "deploy" / "Caddyfile").read_text()  # the balancer asks for all of them


@pytest.mark.parametrize(
    "profiles", [(), ("observe",), ("faults",), ("observe", "faults")], ids=lambda each: "+".join(each) or "-"
)
def test_compose_itself_reads_every_profile_as_these_tests_do(profiles: tuple[str, ...]) -> None:
    told = run(["docker", "compose", "version"]) if shutil.which("docker") else None
    if told is None or told.returncode:
        pytest.skip("docker compose does not work here: install Docker with its compose plug-in")
    words = [word for name in profiles for word in ("--profile", name)]
    done = run(
        ["docker", "compose", *words, "config", "--format", "json"],
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **SECRETS},
    )
    assert done.returncode == 0, done.stderr
    found, ours = json.loads(done.stdout)["services"], compose()["services"]
    assert found.keys() == {
        name for name, each in ours.items() if {*profiles} >= {*each.get("profiles", profiles)}
    }
    assert {name: each["image"] for name, each in found.items()} == {
        name: ours[name]["image"] for name in found
    }
    assert {name for name, each in found.items() if "healthcheck" in each} == {
        name for name in found if "healthcheck" in ours[name]
    }
    published = [port["published"] for each in found.values() for port in each.get("ports", [])]
    assert len(published) == len({*published}) >= 2


@pytest.mark.parametrize(
    ("profile", "members"),
    [
        ("observe", {"prometheus", "grafana"}),
        (
            "faults",
            {"valkey-replica", "sentinel", "valkey-node-1", "valkey-node-2", "valkey-node-3"}
            | {"mariadb", "migrate-mariadb", "zookeeper"},
        ),
    ],
)
def test_a_profile_starts_what_it_is_for(profile: str, members: set[str]) -> None:
    found = {name for name, each in compose()["services"].items() if profile in each.get("profiles", [])}
    assert found == members


def test_every_server_says_whether_it_answers_and_is_waited_for_until_it_does() -> None:
    services = compose()["services"]
    # the proxy is waited for by nothing, and `migrate` comes to its end
    servers = {name for name in services if not name.startswith("migrate")} - {"proxy"}
    assert {name for name in servers if "healthcheck" not in services[name]} == set()
    waited_for = {
        other
        for each in services.values()
        for other, on in (each["depends_on"].items() if isinstance(each.get("depends_on"), dict) else ())
        if on["condition"] == "service_healthy"
    }
    assert {"postgres", "valkey", "web", "mariadb", "prometheus", "locust-master"} <= waited_for
    assert {name for name in waited_for if "healthcheck" not in services[name]} == set()


def test_every_file_that_is_mounted_exists() -> None:
    mounts = [each for service in compose()["services"].values() for each in service.get("volumes", [])]
    files = [each.split(":")[0] for each in mounts if each.startswith("./")]
    assert len(files) >= 5
    assert [name for name in files if not (ROOT / name).is_file()] == []


def test_prometheus_scrapes_every_container_that_counts() -> None:
    jobs = yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_text())["scrape_configs"]
    found = {(name, sd["port"]) for job in jobs for sd in job["dns_sd_configs"] for name in sd["names"]}
    services = compose()["services"]
    port = int(services["worker"]["environment"]["METRICS_LISTEN"].split(":")[1])
    assert found == {("web", 8000), *((name, port) for name in ("worker", "scan", "swarm"))}


def test_the_dashboard_shows_metrics_that_exist() -> None:
    board = json.loads((ROOT / "deploy" / "grafana" / "dashboard.json").read_text())
    shown = {
        name
        for panel in board["panels"]
        for t in panel["targets"]
        for name in re.findall(r"lab_\w+", t["expr"])
    }
    page = (ROOT / "docs" / "operating.md").read_text()
    known = set(
        re.findall(r"^\| `(lab_\w+)`", page, re.MULTILINE)
    )  # tests/ledger/test_metrics.py: all of them
    assert {name.removesuffix("_bucket") for name in shown} == known


def test_check_deploy_is_clean_under_the_environment_of_compose() -> None:
    done = run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"], env=environment("web")
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("without", ["API_TOKEN", "SECRET_KEY"])
def test_check_deploy_complains_when_a_secret_is_missing(without: str) -> None:
    env = {name: value for name, value in environment("web").items() if name != without}
    done = run([sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"], env=env)
    assert done.returncode != 0
    assert without in done.stderr


@pytest.mark.parametrize(
    "service", ["migrate", "web", "worker", "scan", "swarm", "locust-master", "locust-worker"]
)
def test_each_command_names_a_program_and_files_that_exist(service: str) -> None:
    command = shlex.split(compose()["services"][service]["command"])
    assert (BIN / command[0]).exists()
    files = [word for word in command[1:] if word.endswith(".py")]
    assert all((ROOT / name).exists() for name in files), files


@pytest.fixture
def web(committed_db: None, tmp_path: Path) -> Iterator[str]:
    """The web service's own command and environment, as a plain process."""
    static = {"STATIC_ROOT": str(tmp_path / "static")}
    bind = f"unix:{tmp_path / 'web.sock'}"
    env = {**environment("web"), **static, "BIND": bind, "WEB_WORKERS": "2"}
    collected = run([sys.executable, "manage.py", "collectstatic", "--noinput", "-v0"], env=env)
    assert collected.returncode == 0, collected.stderr
    command = shlex.split(compose()["services"]["web"]["command"])
    with (tmp_path / "web.log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log)
    try:
        yield str(tmp_path / "web.sock")
    finally:
        process.terminate()
        process.wait(100)


def get(socket_path: str, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """One request over the service's unix socket; waits for the service to come up."""
    for attempt in Retrying(stop=stop_after_delay(150), wait=wait_fixed(0.1), reraise=True):
        with attempt:
            link = HTTPConnection("127.0.0.1", timeout=20)
            link.sock = socket.socket(socket.AF_UNIX)
            link.sock.connect(socket_path)
    link.request("GET", path, headers=headers)
    answer = link.getresponse()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


@pytest.mark.whole_command
def test_the_web_service_of_compose_serves_behind_its_proxy(web: str) -> None:
    assert get(web, "/health/ready")[0] == 200
    status, headers, _ = get(web, "/admin/login/")
    assert (status, headers["location"]) == (301, "https://127.0.0.1/admin/login/")
    status, headers, body = get(web, "/admin/login/", **{"X-Forwarded-Proto": "https"})
    assert status == 200
    assert "max-age=" in headers["strict-transport-security"]
    assert "default-src 'self'" in headers["content-security-policy"]
    static = re.findall(rb'"(/static/[^"]+\.css)"', body)
    assert static
    assert get(web, static[0].decode(), **{"X-Forwarded-Proto": "https"})[0] == 200
    assert get(web, "/api/strategies")[0] == 401
    assert get(web, "/api/strategies", Authorization=f"Bearer {SECRETS['API_TOKEN']}")[0] == 200


def healthy(name: str, *here: tuple[str, str]) -> bool:
    """Whether the service's own health check is content. `here`: an address in it → what it is on this machine."""
    command = compose()["services"][name]["healthcheck"]["test"][1:]
    for there, mine in here:
        assert any(there in word for word in command)
        command = [word.replace(there, mine) for word in command]
    return run(command, env={"PATH": f"{BIN}:{os.environ['PATH']}"}).returncode == 0


@contextmanager
def service(name: str, folder: Path, **changed: str) -> Iterator[Path]:
    """The service's own command with its environment, until the block ends; SIGTERM must end it. Yields its log.

    Only names of hosts are others here: `web` and `locust-master` are this machine.
    """
    env = {**environment(name), **changed}
    command = shlex.split(compose()["services"][name]["command"].replace("locust-master", "127.0.0.1"))
    command = [changed.get("WEB", word) if word == "http://web:8000" else word for word in command]
    command = ["127.0.0.1" if word == "0.0.0.0" else word for word in command]
    log = folder / f"{name}.log"
    with log.open("w") as file:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=file, stderr=file)
    try:
        yield log
    finally:
        process.terminate()
        process.wait(100)


def wait_until(ask: Callable[[], Any], seconds: float = 200) -> Any:
    """Ask until the answer is true; returns it."""
    patient = Retrying(
        stop=stop_after_delay(seconds),
        wait=wait_fixed(0.2),
        retry=retry_if_not_result(bool) | retry_if_exception_type(),
    )
    return patient(ask)


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize(
    ("name", "queue"),
    [("worker", "imports"), ("swarm", "swarms"), pytest.param("scan", "scan", marks=pytest.mark.deep)],
)
def test_the_background_services_of_compose_work_on_their_queue(
    name: str, queue: str, tmp_path: Path
) -> None:
    task = {"imports": "sweep_imports", "scan": "scheduled_scan", "swarms": "advance_measured"}[queue]
    jobs = ProcrastinateJob.objects.filter(task_name=task)
    last = max(jobs.values_list("pk", flat=True), default=0)
    metrics = f"127.0.0.1:{free_port()}"
    asked = ("127.0.0.1:9101", metrics)
    assert not healthy(name, asked)
    with service(name, tmp_path, METRICS_LISTEN=metrics):  # its own periodic task comes every few seconds
        wait_until(lambda: jobs.filter(pk__gt=last, status="succeeded").exists())
        assert healthy(name, asked)


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_the_swarm_services_of_compose_attack_the_web_service(tmp_path: Path) -> None:
    port, ui, link = (str(free_port()) for _ in range(3))
    web = f"http://127.0.0.1:{port}"
    ports = {
        "WEB": web,
        "LOCUST_WEB_PORT": ui,
        "LOCUST_MASTER_BIND_PORT": link,
        "LOCUST_MASTER_NODE_PORT": link,
    }
    static = {"STATIC_ROOT": str(tmp_path / "static"), "BIND": f"127.0.0.1:{port}", "WEB_WORKERS": "2"}
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "staticfiles.json").write_text('{"version": "1.1", "paths": {}, "hash": ""}')
    with ExitStack() as services:
        services.enter_context(service("web", tmp_path, **static))
        wait_until(lambda: urlopen(f"{web}/health/ready").status == 200)
        services.enter_context(service("locust-master", tmp_path, **ports))
        wait_until(lambda: healthy("locust-master", ("127.0.0.1:8089", f"127.0.0.1:{ui}")))
        heard = ("locust-master:8089", f"127.0.0.1:{ui}")
        assert not healthy("locust-worker", heard)
        services.enter_context(service("locust-worker", tmp_path, **ports))
        wait_until(lambda: healthy("locust-worker", heard))
        form = urlencode({"user_count": 2, "spawn_rate": 2, "strategy": "select-for-update", "host": web})
        page = f"http://127.0.0.1:{ui}"
        assert json.load(urlopen(Request(f"{page}/swarm", form.encode(), {"Origin": page})))["success"]
        before = Entry.objects.count()
        wait_until(lambda: Entry.objects.count() > before)

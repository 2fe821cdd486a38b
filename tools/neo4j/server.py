"""A real Neo4j Community server without Docker: its jars from Maven Central, a home, a process.

    server.py start HOME         bring and start it on loopback, and say how to reach it
    server.py stop HOME
    server.py home HOME          only bring it and lay out the home, to import into
    server.py admin HOME ARG…    neo4j-admin on the home of a stopped server

Needs Java 17 or later, and Maven once a machine. The data stay in HOME when the server stops.
"""

import argparse
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
POM = HERE / "pom.xml"
SERVER = "org.neo4j.server.CommunityEntryPoint"
ADMIN = "org.neo4j.server.startup.Neo4jAdminCommand"
READY_S = 120
STOP_S = 60
TRIES = 3  # a port that was free may be taken when the server comes to it
PASSWORD = "TELLER_NEO4J_PASSWORD"
OPENED = (
    "java.nio",
    "java.io",
    "sun.nio.ch",
    "java.util.concurrent",
)  # as the server's own starter
CONF = """\
server.default_listen_address=127.0.0.1
server.default_advertised_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{bolt}
server.http.enabled={has_http}
server.http.listen_address=127.0.0.1:{http}
server.memory.pagecache.size={pages}
db.checkpoint.interval.time=5m
db.tx_log.rotation.retention_policy=1 files
dbms.security.allow_csv_import_from_file_urls=false
dbms.usage_report.enabled=false
"""


def main() -> int:
    """Do what the command line asks."""
    given = _arguments()
    home = Path(given.home).expanduser().resolve()
    try:
        if given.verb == "start":
            started = start(home, given)
            sys.stdout.write(json.dumps(started) + "\n" if given.json else _told(home, started))
        elif given.verb == "stop":
            sys.stdout.write("stopped\n" if stop(home) else "it was not running\n")
        elif given.verb == "home":
            lay_out(home)
        elif given.verb == "watch":
            watch(home, given.server, given.alive)
        else:
            lay_out(home)
            return subprocess.run(
                [*_java(home, "1g"), ADMIN, *given.rest], env=_env(home)
            ).returncode
    except Trouble as err:
        sys.stderr.write(f"server.py: {err}\n")
        return 3
    return 0


class Trouble(Exception):
    """Why there is no server; the text says what to do."""


def start(home: Path, given: argparse.Namespace) -> dict[str, object]:
    """Start the server of a home, or find it running; give how to reach it."""
    if (pid := running(home)) is not None:
        return {**_reach(home), "pid": pid}
    lay_out(home)
    for left in reversed(range(TRIES)):
        ports = _configure(home, given)
        pid = _launch(home, given)
        if _answers(home, ports["bolt"], pid):
            return {**_reach(home), "pid": pid}
        said = _tail(home / "logs" / "console.log")
        stop(home)
        if given.bolt and "already in use" in said:
            raise Trouble(
                f"port {given.bolt} or {given.http} is in use; name others by --bolt and --http"
            )
        if not left or "already in use" not in said:
            raise Trouble(f"the server did not start; {home}/logs/console.log ends with\n{said}")
        (home / "conf" / "neo4j.conf").unlink()
    raise AssertionError("the loop returns or raises")


def stop(home: Path) -> bool:
    """End the server of a home; tell whether it was running."""
    pid = running(home)
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    if not _gone(home, STOP_S):
        os.kill(pid, signal.SIGKILL)
        _gone(home, STOP_S)
    return True


def running(home: Path) -> int | None:
    """Give the process of a home's server."""
    try:
        pid = int((home / "run" / "neo4j.pid").read_text())
    except (FileNotFoundError, ValueError):
        return None
    said = subprocess.run(
        ["ps", "-o", "stat=,args=", "-ww", "-p", str(pid)], capture_output=True, text=True
    ).stdout  # fmt: skip
    alive = f"-Dbasedir={home} " in said and not said.startswith("Z")
    return pid if alive else None


def lay_out(home: Path) -> None:
    """Make the folders of a home and set its password, where that is not done."""
    jars = _jars()
    for name in ("conf", "data", "logs", "plugins", "import", "run", "licenses", "certificates"):
        (home / name).mkdir(parents=True, exist_ok=True)
    lib = home / "lib"
    lib.unlink(missing_ok=True)
    lib.symlink_to(jars)
    kept = home / "conf" / "password"
    if kept.exists():
        return
    password = os.environ.get(PASSWORD) or secrets.token_hex(12)
    # by standard input it would be asked for; the machine's other users may see an argument
    # for a second, and the server listens on loopback alone
    done = subprocess.run(
        [*_java(home, "256m"), ADMIN, "dbms", "set-initial-password", "--", password],
        capture_output=True, text=True, env=_env(home),
    )  # fmt: skip
    if done.returncode:
        raise Trouble(f"no password could be set: {done.stderr.strip()}")
    kept.touch(mode=0o600)
    kept.write_text(password)


def _jars() -> Path:
    """Give the folder with the server's jars, brought by Maven the first time."""
    version = re.search(r"<neo4j.version>([\d.]+)<", POM.read_text())
    assert version, "pom.xml names the version"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "teller"
    jars = cache / f"neo4j-{version[1]}"
    if not shutil.which("java"):
        raise Trouble("Java 17 or later is needed (Debian: openjdk-17-jre-headless)")
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if not maven:
        raise Trouble("Maven is needed to bring the server's jars (Debian: maven)")
    sys.stderr.write(f"bringing Neo4j {version[1]} from Maven Central, 125 MB, once a machine\n")
    scratch = cache / f"bringing-{secrets.token_hex(4)}"
    scratch.mkdir(parents=True)
    try:
        done = subprocess.run(
            [maven, "-B", "-q", "-f", str(POM), "dependency:copy-dependencies",
             "-DincludeScope=runtime", f"-DoutputDirectory={scratch}"],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise Trouble(f"Maven did not bring the server: {done.stdout[-2000:].strip()}")
        with contextlib.suppress(OSError):  # somebody else was first
            scratch.rename(jars)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)  # a scratch folder: what stays is no harm
    return jars


def _configure(home: Path, given: argparse.Namespace) -> dict[str, int]:
    file = home / "conf" / "neo4j.conf"
    if not file.exists() or given.bolt:
        ports = {"bolt": given.bolt or _free_port(), "http": given.http or _free_port()}
        text = CONF.format(pages=given.pages, has_http=str(bool(given.http)).lower(), **ports)
        file.write_text(text)
    found = re.findall(r"^server\.(bolt|http)\.listen_address=.*:(\d+)$", file.read_text(), re.M)
    return {name: int(port) for name, port in found}


def _launch(home: Path, given: argparse.Namespace) -> int:
    """Start the server in the background; with `--while` it ends soon after that process."""
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED]
    command = [
        *_java(home, given.heap), *given.jvm.split(), *opened, SERVER,
        f"--home-dir={home}", f"--config-dir={home}/conf",
    ]  # fmt: skip
    with (home / "logs" / "console.log").open("w") as log:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    (home / "run" / "neo4j.pid").write_text(str(server.pid))
    if given.alive:
        said = ["--server", str(server.pid), "--while", str(given.alive)]
        subprocess.Popen(
            [sys.executable, __file__, "watch", str(home), *said], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    return server.pid


def watch(home: Path, server: int, alive: int) -> None:
    """End the server as soon as the other process is gone."""
    while running(home) == server:
        if not _is_there(alive):
            stop(home)
            return
        time.sleep(0.5)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _answers(home: Path, port: int, pid: int) -> bool:
    """Wait until the server takes connections; tell whether it does."""
    until = time.monotonic() + READY_S
    while time.monotonic() < until and running(home) == pid:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port), 1),
        ):  # not yet
            return True
        time.sleep(0.2)
    return False


def _gone(home: Path, within_s: float) -> bool:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if running(home) is None:
            return True
        time.sleep(0.1)
    return False


def _reach(home: Path) -> dict[str, object]:
    conf = (home / "conf" / "neo4j.conf").read_text()
    ports = dict(re.findall(r"^server\.(bolt|http)\.listen_address=(.*)$", conf, re.M))
    has_pages = "server.http.enabled=true" in conf
    return {
        "uri": f"bolt://{ports['bolt']}",
        "user": "neo4j",
        "password_file": str(home / "conf" / "password"),
        "browser": f"http://{ports['http']}" if has_pages else "",
    }


def _told(home: Path, started: dict[str, object]) -> str:
    uri, kept = started["uri"], started["password_file"]
    browser = f"in a browser: {started['browser']}\n" if started["browser"] else ""
    return (
        f"Neo4j runs at {uri} as process {started['pid']}; its data are in {home}\n"
        f"user {started['user']}, password in {kept}\n"
        f"{browser}next:\n"
        f"  export TELLER_NEO4J_URI={uri} TELLER_NEO4J_USER={started['user']}\n"
        f"  export {PASSWORD}=$(cat {kept})\n"
        "  teller migrate --store $TELLER_NEO4J_URI\n"
        "  teller push RUN --store $TELLER_NEO4J_URI    # RUN as in teller runs list\n"
        f"stop it, and keep its data:\n"
        f"  {sys.executable} {Path(__file__).resolve()} stop {home}\n"
    )


def _java(home: Path, heap: str) -> list[str]:
    return ["java", f"-Xmx{heap}", f"-Dbasedir={home}", "-cp", f"{home}/lib/*"]


def _env(home: Path) -> dict[str, str]:
    return {**os.environ, "NEO4J_HOME": str(home), "NEO4J_CONF": str(home / "conf")}


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _tail(file: Path) -> str:
    return file.read_text(errors="replace")[-2000:] if file.exists() else ""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=("start", "stop", "home", "admin", "watch"))
    parser.add_argument("home")
    parser.add_argument("--bolt", type=int, default=0, metavar="PORT", help="else a free one")
    parser.add_argument("--http", type=int, default=0, metavar="PORT", help="else no browser")
    parser.add_argument("--heap", default="1g", help="of the server")
    parser.add_argument("--pages", default="256m", help="of the store that are kept in memory")
    parser.add_argument("--jvm", default="-XX:+UseG1GC", metavar="OPTIONS", help="of the server")
    parser.add_argument("--json", action="store_true", help="say it to a program")
    parser.add_argument("--while", type=int, default=0, metavar="PID", dest="alive",
                        help="stop when that process is gone")  # fmt: skip
    parser.add_argument("--server", type=int, default=0, help=argparse.SUPPRESS)
    given, rest = parser.parse_known_args()
    if rest and given.verb != "admin":
        parser.error(f"not known: {' '.join(rest)}")
    given.rest = rest
    return given


if __name__ == "__main__":
    sys.exit(main())

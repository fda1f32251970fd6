"""`tidemark model serve` and `export`: the pages on loopback, or as files."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import click

from tidemark.core.errors import ConfigError
from tidemark.core.text import counted
from tidemark_lab.model.pages.site import INDEX, file_names, render_file

HOST: Final = "127.0.0.1"
_SECONDS: Final = 10.0
_TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class _Handler(BaseHTTPRequestHandler):
    """Answers GET for the files, and nothing else."""

    timeout = _SECONDS

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].removeprefix("/") or INDEX
        known = name in file_names()
        body = render_file(name) if known else b"There is no such page.\n"
        kind = _TYPES[name.rpartition(".")[2]] if known else "text/plain"
        self.send_response(HTTPStatus.OK if known else HTTPStatus.NOT_FOUND)
        for header, value in _HEADERS.items():
            self.send_header(header, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """No line for each request."""


def create_server(port: int) -> ThreadingHTTPServer:
    """Raises ConfigError where the port is taken."""
    try:
        return ThreadingHTTPServer((HOST, port), _Handler)
    except OSError as error:
        raise ConfigError(f"--port {port}: {error.strerror}. Choose another one.") from None


@click.command()
@click.option("--port", type=click.IntRange(0, 65_535), default=8080, show_default=True)
def serve(port: int) -> None:
    """Serve the stories as pages on 127.0.0.1, until Ctrl-C."""
    with create_server(port) as server:
        click.echo(f"http://{HOST}:{server.server_address[1]}/")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def export(folder: Path) -> None:
    """Write the stories as files that a browser opens without a server or a network."""
    names = file_names()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).write_bytes(render_file(name))
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}.") from None
    click.echo(f"{counted(len(names), 'file')}: open {folder / INDEX}")

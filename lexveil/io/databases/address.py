"""Addresses (URLs) of databases. An address must not contain a password, because addresses end up
in shell histories, lexveil.toml and lineage records.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from lexveil.base.errors import RequestError
from lexveil.io.formats.messages import shown

ENGINES = {"postgresql": "postgresql", "postgres": "postgresql", "sqlite": "sqlite"}
FORMS = "postgresql://host/database or sqlite:///path"
SECRETS = ("password", "passwd", "pwd", "sslpassword", "oauth_client_secret")
WHERE_PASSWORDS_ARE = "~/.pgpass, PGPASSFILE, PGPASSWORD or a service of PGSERVICEFILE"


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a database.

    Attributes:
        text: the address for the driver, without a password.
        engine: postgresql or sqlite.
        path: file of an SQLite database; None for PostgreSQL.
    """

    text: str
    engine: str
    path: Path | None = None

    @property
    def shown(self) -> str:
        """The address as shown in messages, without PostgreSQL's options, because a misspelt option
        may be a password.
        """
        return shown(self.text if self.path else self.text.partition("?")[0])


def is_address(text: object) -> bool:
    """Return whether a value is the address of a database, even a malformed address, and not a
    path.
    """
    return (
        isinstance(text, str)
        and re.match(rf"({'|'.join(ENGINES)})://", text, re.IGNORECASE) is not None
    )


def read_address(text: str) -> Address:
    """Parse an address. A relative SQLite path starts from the current folder.

    Raises:
        RequestError: if the text is not an address, or contains a password. The message does not
            quote an address with a password.
    """
    scheme, _, rest = text.partition("://")
    engine = ENGINES.get(scheme.lower())
    if engine is None:
        raise RequestError(f"the value is not the address of a database; write {FORMS}")
    if engine == "sqlite":
        return _sqlite(rest)
    try:
        # PostgreSQL's addresses have no fragments
        query = urlsplit(text, allow_fragments=False).query
        options = [key.lower() for key, _ in parse_qsl(query, keep_blank_values=True)]
    except ValueError:
        raise RequestError(f"the address of the database cannot be read; write {FORMS}") from None
    # Look for a : before an @ anywhere, because clients split an address differently from the
    # standard library.
    if ":" in rest.rpartition("@")[0] or set(options) & set(SECRETS):
        # A password in the address would end up in the shell's history, in lexveil.toml or in
        # lineage.
        raise RequestError(
            "the address has a password, or a : before an @ (%40); put the password into "
            f"{WHERE_PASSWORDS_ARE}"
        )
    return Address(text, engine)


def _sqlite(rest: str) -> Address:
    host, slash, name = rest.partition("/")
    if host or not slash or not name:
        raise RequestError(
            "an address of SQLite is sqlite:///relative/path or sqlite:////absolute/path"
        )
    path = Path(unquote(name))
    if not path.exists() and Path("/", path).exists():
        raise RequestError(
            f"{shown(path)}: there is no such file; a path from the root has four slashes: "
            "sqlite:////..."
        )
    path = path.absolute()
    return Address(f"sqlite:///{path}", "sqlite", path)

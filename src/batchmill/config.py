"""Settings. This is the only module that reads the environment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AliasGenerator, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from batchmill.errors import ConfigurationError

MEGABYTE = 1_048_576
# The largest `integer` of Postgres. Its timeouts are integers, in milliseconds.
MOST = 2_147_483_647
LONGEST_TIMEOUT = MOST // 1_000
YEAR = 31_536_000

Pooler = Literal["auto", "none", "transaction"]


def _parts(given: Any) -> Any:
    if isinstance(given, str):
        return tuple(part.strip() for part in given.split(",") if part.strip())
    return given


def _without_slash(url: str) -> str:
    return url.rstrip("/")


# A description completes the sentence "Set it to …" of an error message.
Flag = Annotated[bool, Field(description="true or false")]
Count = Annotated[int, Field(ge=1, le=MOST, description=f"a whole number from 1 to {MOST}")]
CountOrZero = Annotated[int, Field(ge=0, le=MOST, description=f"a whole number from 0 to {MOST}")]
Bytes = Annotated[int, Field(ge=1, description="a whole number of bytes, 1 or more")]
Seconds = Annotated[
    float, Field(ge=0.001, le=YEAR, description=f"a number of seconds from 0.001 to {YEAR}")
]
# Below one millisecond the timeout would be 0, which means no timeout.
StatementSeconds = Annotated[
    float,
    Field(
        ge=0.001,
        le=LONGEST_TIMEOUT,
        description=f"a number of seconds from 0.001 to {LONGEST_TIMEOUT}",
    ),
]
Parts = Annotated[
    tuple[str, ...], BeforeValidator(_parts), Field(description="text with commas between parts")
]
Url = Annotated[str, AfterValidator(_without_slash)]


def variables(prefix: str) -> AliasGenerator:
    """The variable of a field is its name in capitals after the prefix."""
    return AliasGenerator(validation_alias=lambda name: f"{prefix}{name.upper()}")


class EnvironmentSettings(BaseSettings):
    """Values given in code take precedence over the environment, and that over the default. An
    empty variable counts as not set. The value of a field with `repr=False` is a secret: no message
    shows it."""

    model_config = SettingsConfigDict(
        frozen=True,
        alias_generator=variables("BATCHMILL_"),
        populate_by_name=True,
        # Fields can be given by name, so pydantic-settings also looks for their own names in the
        # environment. With the prefix and the case, these are names that are not used otherwise.
        env_prefix="BATCHMILL_",
        case_sensitive=True,
        env_ignore_empty=True,
        enable_decoding=False,
        defer_build=True,
    )

    def __init__(self, **given: Any):
        try:
            super().__init__(**given)
        except ValidationError as invalid:
            wrong = (self._explain(error) for error in invalid.errors())
            raise ConfigurationError(" ".join(wrong)) from None

    @classmethod
    def read(cls) -> Self:
        """The same as without arguments, for code that makes the origin of the values explicit."""
        return cls()

    @classmethod
    def _explain(cls, error: Mapping[str, Any]) -> str:
        name = error["loc"][0]
        fields = cls.model_fields.items()
        field = next((it for own, it in fields if name in (own, it.validation_alias)), None)
        if field is None:
            return f"{cls.__name__} has no setting {name}."
        value = f'"{error["input"]}"' if field.repr else "not valid"
        wanted = f"Set it to {field.description}" if field.description else error["msg"]
        return f"{name} is {value}. {wanted}."


class Settings(EnvironmentSettings):
    """`dsn` None means the embedded server, whose data are in `home`. `artifacts` is the path or
    the URL of the artifact store; None means a directory in `home`."""

    dsn: str | None = Field(default=None, validation_alias="DATABASE_URL", repr=False)
    home: Annotated[Path, AfterValidator(Path.expanduser)] | None = None
    pooler: Pooler = Field(default="auto", description="auto, none or transaction")
    artifacts: str | None = None

    @classmethod
    def read(cls, dsn: str | None = None, home: str | Path | None = None) -> Self:
        """None and an empty text count as not given."""
        given = {"dsn": dsn, "home": home}
        return cls(**{name: value for name, value in given.items() if value})


class CommandSettings(EnvironmentSettings):
    """`app` is where commands find the mill: `module:name`."""

    app: str | None = None


class ServiceSettings(EnvironmentSettings):
    """What the service accepts, and whom it trusts. Sizes are in bytes.

    With `require_key`, every request needs a key. Without it, requests from this machine need none
    until the first key is made. A proxy on this machine that does not forward the addresses of its
    clients makes all of them look local.
    `trusted_proxies` are the networks whose X-Forwarded-For is used. `public_url` is where clients
    reach the service, for links in mails and webhooks. `cors_origins` are the pages that may call
    it from a browser. A stream sends something every `keep_alive` seconds, and a client that reads
    nothing for `patience` seconds is dropped. A statement of a request is ended after
    `statement_timeout` seconds; one that changes a whole batch, after `long_statement_timeout`.

    An address may try `wrong_keys_per_minute`; then it has to wait. There are at most
    `connections`, and `connections_per_address` from an address that is no trusted proxy. The
    headers of a request have to arrive within `header_seconds`. In every `body_seconds` of a body,
    `body_rate` bytes have to arrive for each second. A connection without a request is closed
    after `idle_seconds`.
    """

    require_key: Flag = False
    trusted_proxies: Parts = ()
    public_url: Url | None = None
    cors_origins: Parts = ()
    max_body: Bytes = 16 * MEGABYTE
    max_file: Bytes = 5_120 * MEGABYTE
    max_request: Bytes = 10_240 * MEGABYTE
    max_parts: Count = 1_000
    link_seconds: Seconds = 3_600
    session_seconds: Seconds = 7 * 86_400
    keep_alive: Seconds = 15
    patience: Seconds = 30
    streams_per_process: CountOrZero = 10_000
    streams_per_tenant: CountOrZero = 5_000
    wrong_keys_per_minute: Count = 30
    connections: Count = 12_000
    connections_per_address: Count = 500
    header_seconds: Seconds = 10
    body_seconds: Seconds = 20
    body_rate: CountOrZero = 1_000
    idle_seconds: Seconds = 30
    downloads_per_process: CountOrZero = 200
    downloads_per_tenant: CountOrZero = 50
    statement_timeout: StatementSeconds = 10
    long_statement_timeout: StatementSeconds = 60


class NotifySettings(EnvironmentSettings):
    """How people and programs that wait for a batch are notified. Mail is sent only if `smtp_url`
    and `mail_from` are set.

    `public_url` is where people find their batches, for links. `allowed` are the addresses that may
    be called although they are not public. Mails are limited in any hour: `mails_per_address` to
    one address for all tenants together, and `mails_per_tenant` for one tenant.
    """

    smtp_url: str | None = Field(default=None, repr=False)
    mail_from: str | None = None
    public_url: Url | None = None
    allowed: Parts = Field(default=(), validation_alias="BATCHMILL_ALLOWED_ADDRESSES")
    mails_per_address: CountOrZero = 20
    mails_per_tenant: CountOrZero = 500


def app_reference() -> str | None:
    """Where the command line finds the mill: `module:name`."""
    return CommandSettings().app

"""Everything that can be chosen, where it may be set, and where files are kept.

A value comes from a flag, else an environment variable (QUOTEWRIGHT_MODEL=...), else settings.toml in the
data folder, else the profile. Files written at run time lie below `data` and `cache` only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from app.setup.profiles import PROFILES, Profile
from indexes.errors import SettingError


@dataclass(frozen=True, slots=True)
class Paths:
    """The user's folders, or those below QUOTEWRIGHT_HOME."""

    data: Path
    cache: Path

    @property
    def indexes(self) -> Path:
        """One folder per index."""
        return self.data / "indexes"

    @property
    def datastores(self) -> Path:
        """One folder per datastore."""
        return self.data / "datastores"

    @property
    def uploads(self) -> Path:
        """Files uploaded on the chat page, and their private indexes."""
        return self.data / "uploads"

    @property
    def conversations(self) -> Path:
        """What was asked and answered on the chat page."""
        return self.data / "conversations.sqlite"

    @property
    def users(self) -> Path:
        """Who may log in to the chat page."""
        return self.data / "users"

    @property
    def models(self) -> Path:
        """Models unpacked from model wheels."""
        return self.cache / "models"

    @property
    def verify_costs(self) -> Path:
        """Measured times of forward passes, one file per model and machine."""
        return self.cache / "verify-costs"


def paths() -> Paths:
    """Where this user's files lie."""
    if home := os.environ.get("QUOTEWRIGHT_HOME"):
        root = Path(os.path.expanduser(home)).absolute()
        return Paths(root / "data", root / "cache")
    return Paths(platformdirs.user_data_path("quotewright"), platformdirs.user_cache_path("quotewright"))


def _split(value: Any) -> Any:
    """Texts between commas as a list."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Secrets = Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(_split)]
SECRET = ("api_key", "api_keys")


class Settings(BaseSettings):
    """All settings; None means that the profile decides."""

    model_config = SettingsConfigDict(env_prefix="QUOTEWRIGHT_", extra="forbid", env_ignore_empty=True)

    profile: str = "laptop"
    model: str | None = None
    encoder: str | None = None
    reranker: str | None = None
    top_k: int | None = Field(default=None, ge=1, le=100)
    chunk_chars: int | None = Field(default=None, ge=100, le=20_000)
    device: str = "auto"
    dtype: str = "auto"
    target: Literal["auto", "lean", "pytorch", "general"] = "auto"
    exact: bool = False
    drafter: str = "blend"
    datastore: str | None = None
    draft_model: str | None = None
    max_nodes: int | None = Field(default=None, ge=0, le=1024)
    node_budget: Literal["adaptive", "fixed"] = "adaptive"
    max_new_tokens: int = Field(default=160, ge=1)
    temperature: float = 0.0  # this and what follows up to the seed: decoding.sampling says what is allowed
    top_p: float = 1.0
    sample_top_k: int = Field(default=0, ge=0)  # top_k is a number of passages
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    min_relevance: float = Field(default=0.25, ge=0, le=1)
    candidates: int = Field(default=100, ge=1, le=10_000)
    min_span_words: int = Field(default=3, ge=1)
    stop_repeats: bool = True
    share_answers: bool = False
    prefix_cache_mb: int = Field(default=512, ge=0)
    index: str = "python-docs"
    finder: str | None = None
    engine: Literal["local", "openai"] = "local"
    base_url: str | None = None
    api_key: SecretStr | None = None
    remote_model: str | None = None
    remote_timeout_s: float = Field(default=300, gt=0, allow_inf_nan=False)
    api_keys: Secrets = ()  # this and what follows: for `serve`
    allowed_hosts: Names = ()
    cors_origins: Names = ()
    max_body_mb: int = Field(default=4, ge=1, le=1024)
    most_new_tokens: int = Field(default=4096, ge=1)  # the longest answer that a request may ask for
    queue_length: int = Field(default=16, ge=0, le=10_000)  # requests that may wait for the model
    request_timeout_s: float = Field(default=600, gt=0, allow_inf_nan=False)  # waiting included
    auth: bool = False
    vllm_python: Path | None = None  # for `serve-vllm`

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], *sources: PydanticBaseSettingsSource, **named: PydanticBaseSettingsSource
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then the environment, then settings.toml."""
        file = TomlConfigSettingsSource(settings_cls, paths().data / "settings.toml")
        return named["init_settings"], named["env_settings"], file

    def resolved(self) -> Profile:
        """The profile with this person's choices in it. Raises SettingError for an unknown profile."""
        if self.profile not in PROFILES:
            raise SettingError(f"unknown profile {self.profile!r}; choose one of {', '.join(PROFILES)}")
        remote = self.engine != "local"  # then another server's model answers, whatever it is
        return PROFILES[self.profile].with_choices(
            model=(self.remote_model or "the server's model") if remote else self.model,
            note="" if remote else None,
            encoder=self.encoder,
            reranker=self.reranker,
            top_k=self.top_k,
            chunk_chars=self.chunk_chars,
        )


def load_settings(**flags: Any) -> Settings:
    """Read all sources; flags that are None do not count. Raises SettingError naming what is wrong."""
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, item['loc']))} = {_shown(item['loc'], item['input'])}: {item['msg']}"
            for item in error.errors()
        )
        raise SettingError(f"a setting cannot be used: {problems}") from None  # the cause would show secrets
    except (ValueError, OSError) as error:
        raise SettingError(f"{paths().data / 'settings.toml'} cannot be read: {error}") from error


def _shown(location: tuple[int | str, ...], value: object) -> str:
    return "***" if location and location[0] in SECRET else repr(value)

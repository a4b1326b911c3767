"""What can go wrong with another server, said so that somebody can do something about it."""

from __future__ import annotations

from collections.abc import Sequence

from indexes.errors import ModelError, PromptTooLongError, QuotewrightError, SettingError

CHAT = "chat"


def choose_model(served: Sequence[tuple[str, str]]) -> str:
    """The model to ask for, of (id, kind) pairs: the only one that chats. Raises SettingError."""
    chatting = [name for name, kind in served if kind == CHAT]
    if len(chatting) != 1:
        known = ", ".join(chatting[:20]) or "none"
        raise SettingError(f"the server has {len(chatting)} models ({known}); choose one with --remote-model")
    return chatting[0]


def explained(error: BaseException, base_url: str) -> QuotewrightError:
    """The error of the client as one of ours."""
    import openai

    server = f"the server at {base_url}"
    match error:
        case QuotewrightError():
            return error
        case openai.APITimeoutError():
            return ModelError(f"{server} said nothing for too long; see whether it is well, or raise remote_timeout_s")
        case openai.APIConnectionError():
            why = error.__cause__ or error
            return ModelError(f"{server} cannot be reached ({why}); start it, or correct --base-url")
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return SettingError(f"{server} refuses the key ({_said(error)}); set QUOTEWRIGHT_API_KEY to one it knows")
        case openai.NotFoundError():
            return SettingError(f"{server} does not know this ({_said(error)}); see --remote-model and --base-url")
        case openai.RateLimitError():
            return ModelError(f"{server} has no time ({_said(error)}); ask again later, or fewer questions at once")
        case openai.APIError(code="context_length_exceeded"):
            return PromptTooLongError(f"{server} cannot read so much ({_said(error)}); use fewer passages: --top-k")
        case openai.APIStatusError(status_code=code) if code < 500:
            return SettingError(f"{server} refuses the request with {code} ({_said(error)})")
        case openai.APIError():
            return ModelError(f"{server} failed ({_said(error)}); its log may say why")
        case _:
            return ModelError(f"{server} does not speak OpenAI's protocol ({type(error).__name__}: {error})")


def _said(error: BaseException) -> str:
    """What the server said itself, if it did."""
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, dict) else None
    return str(said or error)[:500]

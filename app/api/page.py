"""The chat page on the server of the API: beside its routes, or alone."""

from __future__ import annotations

from fastapi import FastAPI

from app.answering.engine import Engine
from app.api.access import Access, Gate


def mount_page(application: FastAPI, engine: Engine) -> None:
    """Serve the chat page at /, beside whatever routes there are. Raises SettingError if nobody could log in."""
    import gradio as gr

    from app.page.layout import build_page
    from app.page.serving import page_arguments

    gr.mount_gradio_app(application, build_page(engine), "/", **page_arguments(engine))


def page_alone(engine: Engine, access: Access) -> FastAPI:
    """An application of the page and nothing else."""
    application = FastAPI(openapi_url=None, telemetry={"tracing": False, "metrics": False, "logs": False})
    application.add_middleware(Gate, access=access, most_bytes=0)  # of paths that are not the page's
    application.state.stop = lambda: None
    mount_page(application, engine)
    return application

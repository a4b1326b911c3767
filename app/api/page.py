"""The chat page in the same application as the routes."""

from __future__ import annotations

from fastapi import FastAPI

from app.engine import Engine


def mount_page(application: FastAPI, engine: Engine) -> None:
    """Serve the chat page at /, beside the routes."""
    import gradio as gr

    from app.page.layout import build_page
    from app.page.serving import page_arguments

    gr.mount_gradio_app(application, build_page(engine), "/", **page_arguments(engine))

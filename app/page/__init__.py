"""The chat page (Gradio): conversations over documents, with every copied span shown in its place."""

"""What people touch: the command line and the chat page, and the engine behind both."""

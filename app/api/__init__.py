"""The HTTP API: OpenAI's protocol, answers with their passages and spans, and the chat page in the same process."""

"""The exceptions that callers are meant to catch, all in one tree.

QuotewrightError
├── SettingError        an argument, flag or setting has a value that cannot be used
├── ModelError          a model cannot be found, trusted or used
│   └── UnsupportedModelError   its architecture cannot verify draft trees
├── PromptTooLongError  a question does not fit the model's context, whatever is left out
├── DraftTreeError      the arrays of a draft tree do not describe a tree
├── DocumentError       one file cannot be read; building an index lists it and goes on
├── NothingToIndexError none of the given files could be read
├── FinderError         somebody's own finder of passages failed, or gave what are no passages
├── ClusterError        a Ray cluster cannot be had, or was lost with work undone
├── ConversationError   a kept conversation is not there, or the file that holds them cannot be used
└── IndexStoreError     an index is missing, locked, of another encoder, or cannot be written
    ├── IndexFormatError    an index was written by another version
    └── DamagedIndexError   a file of an index is not what was written

Each message says what was wrong with which value, and what to do.
"""


class QuotewrightError(ValueError):
    """Base class: shown to people as one message, never as a traceback."""


class SettingError(QuotewrightError):
    """An argument, flag or setting has a value that cannot be used."""


class ModelError(QuotewrightError):
    """A model cannot be found, trusted or used."""


class UnsupportedModelError(ModelError):
    """The model's architecture cannot verify draft trees."""


class PromptTooLongError(QuotewrightError):
    """A question does not fit the model's context, whatever is left out."""


class DraftTreeError(QuotewrightError):
    """The arrays of a draft tree do not describe a tree."""


class DocumentError(QuotewrightError):
    """One file cannot be read; the message is the reason."""


class NothingToIndexError(QuotewrightError):
    """None of the given files could be read."""


class FinderError(QuotewrightError):
    """Somebody's own finder of passages failed, or gave what are no passages."""


class ClusterError(QuotewrightError):
    """A Ray cluster cannot be had, or was lost with work undone."""


class ConversationError(QuotewrightError):
    """A kept conversation is not there, or the file that holds them cannot be used."""


class IndexStoreError(QuotewrightError):
    """An index is missing, locked, of another encoder, or cannot be written."""


class IndexFormatError(IndexStoreError):
    """An index was written by another version, and must be built again."""


class DamagedIndexError(IndexStoreError):
    """A file of an index is not what was written."""

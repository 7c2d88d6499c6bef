"""The provider `local`: Whisper on this machine, offline.

Modules that need the extra `calls` are imported only by an operation.
"""

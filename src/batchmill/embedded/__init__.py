"""The embedded PostgreSQL: a real server in the user's own directory, for users who run none.

Every process that uses a home holds a shared lock in it; the last one to leave stops the server.
The locks are flocks, which end with their process in every case, so none can become stale:

    start.lock    held while starting or stopping, so that these happen one at a time
    users.lock    shared by every process that uses the server
    running.lock  inherited by the server's own processes: held as long as one of them lives

PostgreSQL refuses to run as root, so for root it runs as an unprivileged user. That user owns
the data and the socket. Root owns the rest of the home, and writes nothing into that user's part.
"""

from batchmill.embedded.server import EmbeddedServer, default_home

__all__ = ["EmbeddedServer", "default_home"]

"""The local PostgreSQL: a real server in a directory of the user's own, for those who run none.

Every process that uses a home holds a shared lock in it; whoever leaves last stops the server.
The locks are flocks, which end with their process however it ends, so none can go stale:

    start.lock    held while starting or stopping, so that these happen one at a time
    users.lock    shared by every process that uses the server
    running.lock  inherited by the server's own processes: held as long as one of them lives

PostgreSQL refuses to run as root, so for root it runs as an unprivileged user. That user owns
the data and the socket; the rest of the home is root's, and root writes nothing into theirs.
"""

from batchmill.embedded.server import EmbeddedServer, default_home

__all__ = ["EmbeddedServer", "default_home"]

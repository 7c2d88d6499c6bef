"""Fetches untrusted URLs: only from public addresses, and never more than the limits allow.

    url → addresses of its name, all checked → a connection pinned to one of them → response
     ▲                                                                                 │
     └──────────────────────── a redirect, checked from scratch ◄─────────────────────┘

The owner of a name or a server controls its answers, and may answer differently the next time. So
the fetcher looks up a name once for each connection, and connects only to an address that it has
checked. A session sends several requests over one connection.
"""

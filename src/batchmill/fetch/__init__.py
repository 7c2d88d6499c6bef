"""Fetching URLs that strangers give: only public addresses, and never more than the limits.

    url → addresses of its name, all judged → a connection pinned to one of them → answer
     ▲                                                                                │
     └──────────────────────── a redirect, judged from scratch ◄─────────────────────┘

Whoever controls a name or a server controls what it answers, and may answer differently the next
time. So a name is looked up once, by us, and the connection goes to what was judged.
"""

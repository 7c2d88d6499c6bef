"""A soak: many kinds of abuse at once, for a long time, beside a tenant who behaves.

`make soak` starts the servers, the abusers in a process of their own, and the normal tenant here.
It measures what the normal tenant notices, and what the servers need.
"""

"""A soak test: many kinds of abuse at the same time, together with a normal tenant.

`make soak` starts the servers, the abusers in a separate process, and the normal tenant in this
process. It measures the latency for the normal tenant and the resources of the servers.
"""

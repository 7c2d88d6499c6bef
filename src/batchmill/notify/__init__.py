"""Telling those who wait for a batch.

    finish_batches ──► a job for each notification ──► webhook: signed POST
    (one transaction)  (batchmill.webhook, .email) └─► email: SMTP

Delivery is a job like any other: claimed, retried by its policy, fenced, seen in `status`. A worker
that dies between delivery and record delivers again, under the same id.
"""

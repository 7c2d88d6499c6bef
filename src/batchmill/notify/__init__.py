"""Notifies people and programs when a batch finishes.

    finish_batches ──► a job for each notification ──► webhook: signed POST
    (one transaction)  (batchmill.webhook, .email) └─► email: SMTP

Delivery is an ordinary job: claimed, retried by its policy, fenced, visible in `status`. If a
worker dies between the delivery and its record, the notification is delivered again, with the same
id.
"""

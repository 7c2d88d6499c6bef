"""Learns what a business's website says about itself, and how AI answers mention the business."""

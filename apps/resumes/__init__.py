"""JSON Resume documents → PDFs."""

"""Files: where their bytes lie, and how they go in and come out."""

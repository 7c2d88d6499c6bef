"""Files: where their bytes are stored, and how they are uploaded and read."""

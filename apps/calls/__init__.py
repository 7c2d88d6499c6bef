"""Call recordings → transcripts → analyses."""

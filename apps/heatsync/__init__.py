"""HeatSync finds a swimmer in heat sheets, and returns one schedule."""

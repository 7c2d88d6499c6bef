"""HeatSync: a swimmer's name and heat sheets in, one schedule out."""

"""Where the time of training and of stepping goes, stage by stage."""

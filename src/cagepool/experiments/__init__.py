"""Many trainings at a time, in processes or on a Ray cluster, for searches and studies."""

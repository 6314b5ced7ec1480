"""What the experiments of `heedful reproduce` are made with: desk, canvas, claims, tasks, models and their training."""

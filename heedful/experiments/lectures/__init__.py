"""What the lectures show."""

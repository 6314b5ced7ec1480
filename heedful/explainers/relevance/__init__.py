"""Methods that run one modified or recorded backward pass through the attention layers."""

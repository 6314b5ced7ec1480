"""The mathematics as pure tensor functions; nothing here knows a model, so each can check one."""

"""The mathematics as pure tensor functions; they do not depend on models, so they can check them."""

"""Programs that train and measure models which heedful explains; no part of the package."""

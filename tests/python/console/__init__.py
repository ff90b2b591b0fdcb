"""The console in a real browser, over real servers."""

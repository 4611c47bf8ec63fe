"""Pages for people: Markdown and HTML, made of what the answers say."""

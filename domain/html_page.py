"""The frame of a page for a browser. It loads nothing and runs nothing."""

STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.4rem}h2{font-size:1.2rem;margin-top:2rem}h3{font-size:1rem}"
    "dt{font-weight:600}dd{margin:0 0 .3rem;overflow-wrap:anywhere}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1rem}table{border-collapse:collapse;width:100%}"
    "th,td{border-bottom:1px solid #8886;padding:.25rem .6rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}"
    ".wide{overflow-x:auto}.wide th,.wide td{overflow-wrap:normal}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}td.n.some{font-weight:700}"
    ".verdict{border-left:.5rem solid;padding:.6rem 1rem}.verdict strong{text-transform:uppercase}"
    ".clean{border-color:#2a8a3e}.drift{border-color:#c62828}.inconclusive{border-color:#b26a00}"
    "article{margin:1rem 0;padding:.6rem 1rem;border:1px solid #8886;border-radius:.4rem}"
    "article h3{margin:0 0 .5rem;overflow-wrap:anywhere}article p{margin:.4rem 0}code{overflow-wrap:anywhere}"
    "pre{overflow-x:auto;padding:.6rem 1rem;border:1px solid #8886;border-radius:.4rem}pre code{overflow-wrap:normal}"
    "@media print{pre,pre code{white-space:pre-wrap;overflow-wrap:anywhere}.wide{overflow-x:visible}}"
)


def html_page(title: str, body: str) -> str:
    """A whole document. Both are HTML already: what others wrote in them has been escaped."""
    view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f'<meta charset="utf-8">\n{view}\n<title>{title}</title>\n<style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'

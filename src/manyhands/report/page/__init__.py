"""The page: one HTML file with its style, its script and the data of the run.

page_rendering  `render_page`: panels -> HTML
fragment        `panels_html`: panels for a notebook
embedding       the run's data as JSON inside the page, and back
report.html, head.html, panels.html, style.css, chart.css, script.js   templates, styles and script
fragment.html, notebook.css   what a notebook has in their place
"""

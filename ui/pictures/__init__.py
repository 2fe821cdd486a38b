"""Pictures of a run as SVG text that follows the page's colours, light or dark."""

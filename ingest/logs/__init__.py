"""Text logs of services, libraries and kernels: lines, headers, templates, and what they mean."""

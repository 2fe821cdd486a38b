"""One module a format; `teller.ingest.formats` lists them."""

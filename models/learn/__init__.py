"""Training of the root-cause model: needs the extra `learn`; scoring does not come here."""

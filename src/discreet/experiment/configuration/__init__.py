"""An experiment's TOML file and the records that it is read into."""

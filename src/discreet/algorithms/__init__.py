"""How the parts meet in a round, and the algorithms of the papers as compositions of parts."""

"""A checker that doesn't trust the accountants: it proves or refutes a card's ε by ball arithmetic.

It imports nothing else of this package, and runs alone: python -m discreet.verify CARD
"""

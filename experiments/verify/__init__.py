"""Random cards of our accountants, given to the checker that does not trust them."""

"""What the papers prove, in the form in which it is true; a file's prefix names its paper.

pfl_ is PFL (Bhaskar et al. 2025), kim_ Kim, Günlü & Schaefer 2021, heikkila_ Heikkilä 2025, fu_ Fu et al. 2021, and
dp_fedsam_ DP-FedSAM (Shi et al. 2023). Each file says what is proved, what is printed wrongly, and what we use.
"""

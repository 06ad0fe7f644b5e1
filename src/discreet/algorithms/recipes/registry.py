"""The catalog of recipes: a new one is a function in a file of this folder, and one line here.

Its name then works in experiment files, in `discreet algorithms` and as `discreet.NAME`. The example is what
`discreet algorithms` shows, and what tests run.
"""

from typing import Any

from discreet.algorithms.recipes.recipe import Recipe

PFL = "PFL (Bhaskar et al. 2025)"
KIM = "Kim, Günlü & Schaefer 2021"
HEIKKILA = "Heikkilä 2025"
FU = "Fu et al. 2021"
DP_FEDSAM = "DP-FedSAM (Shi et al. 2023)"

LOCAL: dict[str, Any] = {"learning_rate": 0.1, "batch_size": 32, "epochs": 1}
CENTRAL = LOCAL | {"clip_norm": 0.5, "sampling_rate": 0.1}
CONVEX: dict[str, Any] = {"learning_rate": 2.0, "clip_norm": 0.5, "feature_bound": 3.0, "batch_size": 4}
SAMPLED: dict[str, Any] = {"learning_rate": 0.5, "sampling_rate": 0.1, "clip_norm": 1.0}
PASSES: dict[str, Any] = {"learning_rate": 0.3, "clip_norm": 1.0, "batch_size": 64, "epochs": 1}
TURNS: dict[str, Any] = {"learning_rate": 0.1, "gradient_bound": 1.0, "local_iterations": 5, "cohort": 2}

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("fedavg", "fedavg", example=LOCAL),
        Recipe("fedavg", "fedsgd", example={"learning_rate": 0.5}),
        Recipe("fedavg", "fedprox", example=LOCAL | {"strength": 0.1}),
        Recipe("pfl", "pfl", PFL, PASSES),
        Recipe("fl_sgd_gaussian", "fl_sgd_gaussian", KIM, SAMPLED),
        Recipe("ddp_fedavg", "ddp_fedavg", HEIKKILA, SAMPLED | {"local_steps": 2}),
        Recipe("linear_models", "convex_local", example=CONVEX),
        Recipe("linear_models", "proximal_local", example=CONVEX | {"passes": 2, "strength": 0.1}),
        Recipe("local_schemes", "denoised_release", example=SAMPLED | {"local_steps": 2}),
        Recipe("local_schemes", "shards", example=LOCAL | {"shards": 2, "clip_norm": 0.5}),
        Recipe("ddp_fedavg", "ddp_fedavg_client", HEIKKILA, LOCAL | {"clip_norm": 0.5}),
        Recipe("ldp_fedavg", "ldp_fedavg", FU, TURNS),
        Recipe("dp_fedavg", "dp_fedavg", DP_FEDSAM, CENTRAL),
        Recipe("dp_fedavg", "dp_fedavg_blur", DP_FEDSAM, CENTRAL | {"strength": 0.1}),
        Recipe("dp_fedavg", "dp_fedavg_blurs", DP_FEDSAM, CENTRAL | {"strength": 0.1, "fraction": 0.4}),
        Recipe("fed_smp", "fed_smp_rand", DP_FEDSAM, CENTRAL | {"fraction": 0.4}),
        Recipe("fed_smp", "fed_smp_top", DP_FEDSAM, CENTRAL | {"fraction": 0.4}),
        Recipe("dp_fedsam", "dp_fedsam", DP_FEDSAM, CENTRAL | {"rho": 0.5}),
        Recipe("dp_fedsam", "dp_fedsam_top", DP_FEDSAM, CENTRAL | {"rho": 0.5, "fraction": 0.4}),
    )
}

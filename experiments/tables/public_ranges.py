"""Public ranges of the tables of this page, written without the data.

Every range says what a column can hold by its definition (an age is from 0 to 120, a week has 168 hours), never what it
holds here. The label is the last column of each.
"""

from typing import Any, TypeAlias

from discreet.data.tasks.acs_income import BIRTHPLACES, OCCUPATIONS
from discreet.data.tasks.lending_club import CATEGORIES

PublicRanges: TypeAlias = dict[str, dict[str, Any]]


def number(low: float, high: float) -> dict[str, Any]:
    return {"min": low, "max": high}


def values(*listed: object) -> dict[str, Any]:
    return {"values": [str(value) for value in listed]}


AGE, SCHOOLING, HOURS = number(0, 120), number(0, 24), number(0, 168)
INCOME_RANGES = {
    "age": AGE,
    "worker_class": values(*range(1, 9)),
    "schooling": SCHOOLING,
    "marital_status": values(*range(1, 6)),
    "occupation": values(*range(len(OCCUPATIONS.starts))),
    "birthplace": values(*range(len(BIRTHPLACES.starts))),
    "relationship": values(*range(18)),
    "hours": HOURS,
    "sex": values(1, 2),
    "race": values(*range(1, 10)),
    "income": values(0, 1),
}
FOUR_RANGES = {"age": AGE, "schooling": SCHOOLING, "hours": HOURS, "income": number(0, 1), "sex": values(1, 2)}
UNEQUAL_RANGES = {name: known for name, known in INCOME_RANGES.items() if name != "birthplace"}
LOANS_RANGES = {
    "loan_amnt": number(0, 40_000),
    "term": values(36, 60),
    "annual_inc": number(0, 1_000_000),
    "dti": number(0, 100),
    "delinq_2yrs": number(0, 50),
    "inq_last_6mths": number(0, 50),
    "open_acc": number(0, 100),
    "pub_rec": number(0, 50),
    "revol_bal": number(0, 1_000_000),
    "revol_util": number(0, 200),
    "total_acc": number(0, 200),
    "emp_length": number(0, 10),
    **{name: values(*listed) for name, listed in CATEGORIES.items()},
    "int_rate": number(0, 40),
}
CREDIT_RANGES = {
    "loan_amnt": number(0, 40_000),
    "term": values(36, 60),
    "annual_inc": number(0, 1_000_000),
    "verification_status": values("Not Verified", "Source Verified", "Verified"),
    "issue_year": values(2012, 2013, 2014),
    "dti": number(0, 100),
    "delinq_2yrs": number(0, 50),
    "fico_range_low": number(300, 850),
    "inq_last_6mths": number(0, 50),
    "revol_util": number(0, 200),
    "initial_list_status": values("f", "w"),
    "acc_open_past_24mths": number(0, 100),
    "avg_cur_bal": number(0, 1_000_000),
    "bc_util": number(0, 300),
    "mo_sin_old_il_acct": number(0, 1_000),
    "mo_sin_old_rev_tl_op": number(0, 1_000),
    "mo_sin_rcnt_rev_tl_op": number(0, 1_000),
    "mo_sin_rcnt_tl": number(0, 1_000),
    "mort_acc": number(0, 100),
    "mths_since_recent_bc": number(0, 1_000),
    "mths_since_recent_inq": number(0, 25),
    "num_accts_ever_120_pd": number(0, 100),
    "num_il_tl": number(0, 200),
    "num_rev_tl_bal_gt_0": number(0, 100),
    "num_tl_op_past_12m": number(0, 100),
    "pct_tl_nvr_dlq": number(0, 100),
    "percent_bc_gt_75": number(0, 100),
    "pub_rec_bankruptcies": number(0, 20),
    "total_il_high_credit_limit": number(0, 2_000_000),
    "int_rate": number(0, 40),
}
HOUSING_RANGES = {
    "MedInc": number(0, 100),
    "HouseAge": number(0, 100),
    "AveRooms": number(0, 50),
    "AveBedrms": number(0, 50),
    "Population": number(0, 50_000),
    "AveOccup": number(0, 50),
    "Latitude": number(32, 43),
    "Longitude": number(-125, -114),
    "value": number(0, 10),
}


def _size_ranges() -> PublicRanges:
    """What the ten measures of a cell nucleus can be: lengths in a picture of a few hundred pixels, and shares."""
    limits = {"radius": 50, "texture": 100, "perimeter": 400, "area": 5_000}
    shares = ("smoothness", "compactness", "concavity", "concave points", "symmetry", "fractal dimension")
    limits |= dict.fromkeys(shares, 1)
    return {f"{kind} {name}": number(0, high) for kind in ("mean", "error", "worst") for name, high in limits.items()}


CANCER_RANGES = {**_size_ranges(), "benign": values(0, 1)}
WINE_LIMITS = {
    "alcohol": 20,
    "malic_acid": 10,
    "ash": 10,
    "alcalinity": 50,
    "magnesium": 300,
    "phenols": 10,
    "flavanoids": 10,
    "nonflavanoids": 5,
    "proanthocyanins": 10,
    "colour": 20,
    "hue": 3,
    "od280_od315": 10,
    "proline": 3_000,
}
WINE_RANGES = {**{name: number(0, high) for name, high in WINE_LIMITS.items()}, "cultivar": values(0, 1, 2)}


def pixel_ranges(columns: int) -> PublicRanges:
    return {**{f"p{place:03}": number(0, 255) for place in range(columns)}, "class": values(*range(10))}

from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg as ddp_fedavg
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg_client as ddp_fedavg_client
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg as dp_fedavg
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg_blur as dp_fedavg_blur
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg_blurs as dp_fedavg_blurs
from discreet.algorithms.recipes.dp_fedsam import dp_fedsam as dp_fedsam
from discreet.algorithms.recipes.dp_fedsam import dp_fedsam_top as dp_fedsam_top
from discreet.algorithms.recipes.fed_smp import fed_smp_rand as fed_smp_rand
from discreet.algorithms.recipes.fed_smp import fed_smp_top as fed_smp_top
from discreet.algorithms.recipes.fedavg import fedavg as fedavg
from discreet.algorithms.recipes.fedavg import fedprox as fedprox
from discreet.algorithms.recipes.fedavg import fedsgd as fedsgd
from discreet.algorithms.recipes.fl_sgd_gaussian import fl_sgd_gaussian as fl_sgd_gaussian
from discreet.algorithms.recipes.ldp_fedavg import ldp_fedavg as ldp_fedavg
from discreet.algorithms.recipes.linear_models import convex_local as convex_local
from discreet.algorithms.recipes.linear_models import proximal_local as proximal_local
from discreet.algorithms.recipes.local_schemes import denoised_release as denoised_release
from discreet.algorithms.recipes.local_schemes import shards as shards
from discreet.algorithms.recipes.pfl import pfl as pfl
from discreet.api.run_attack import attack as attack
from discreet.api.run_audit import audit_run as audit_run
from discreet.api.run_result import Run as Run
from discreet.api.run_result import load as load
from discreet.api.training_session import session as session
from discreet.api.training_session import train as train
from discreet.data.tables.table_task import clients_from_csv as clients_from_csv
from discreet.data.tables.table_task import clients_from_parquet as clients_from_parquet
from discreet.data.tasks.from_arrays import clients_from_arrays as clients_from_arrays
from discreet.data.tasks.from_datasets import clients_from_datasets as clients_from_datasets
from discreet.experiment.loop.callbacks import Callback as Callback
from discreet.experiment.loop.session import Session as Session
from discreet.experiment.loop.tracker import tracker as tracker
from discreet.experiment.promise.promise import Privacy as Privacy
from discreet.privacy.release import Person as Person

__all__: list[str]
__version__: str

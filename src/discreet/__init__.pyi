from discreet.algorithms import convex_local as convex_local
from discreet.algorithms import ddp_fedavg as ddp_fedavg
from discreet.algorithms import denoised_release as denoised_release
from discreet.algorithms import dp_fedavg as dp_fedavg
from discreet.algorithms import dp_fedavg_blur as dp_fedavg_blur
from discreet.algorithms import dp_fedavg_blurs as dp_fedavg_blurs
from discreet.algorithms import dp_fedsam as dp_fedsam
from discreet.algorithms import dp_fedsam_top as dp_fedsam_top
from discreet.algorithms import fed_smp_rand as fed_smp_rand
from discreet.algorithms import fed_smp_top as fed_smp_top
from discreet.algorithms import fedavg as fedavg
from discreet.algorithms import fedprox as fedprox
from discreet.algorithms import fedsgd as fedsgd
from discreet.algorithms import fl_sgd_gaussian as fl_sgd_gaussian
from discreet.algorithms import ldp_fedavg as ldp_fedavg
from discreet.algorithms import pfl as pfl
from discreet.algorithms import proximal_local as proximal_local
from discreet.algorithms import shards as shards
from discreet.experiment.api import Run as Run
from discreet.experiment.api import load as load
from discreet.experiment.api import train as train
from discreet.experiment.promise import Privacy as Privacy
from discreet.tasks import clients_from_arrays as clients_from_arrays
from discreet.tasks import clients_from_csv as clients_from_csv
from discreet.tasks import clients_from_datasets as clients_from_datasets
from discreet.tasks import clients_from_parquet as clients_from_parquet

__version__: str

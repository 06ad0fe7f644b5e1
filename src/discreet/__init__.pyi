from discreet.algorithms import dp_fedavg as dp_fedavg
from discreet.algorithms import fedavg as fedavg
from discreet.algorithms import pfl as pfl
from discreet.experiment.api import Run as Run
from discreet.experiment.api import load as load
from discreet.experiment.api import train as train
from discreet.experiment.promise import Privacy as Privacy
from discreet.tasks import clients_from_arrays as clients_from_arrays
from discreet.tasks import clients_from_csv as clients_from_csv
from discreet.tasks import clients_from_datasets as clients_from_datasets

__version__: str

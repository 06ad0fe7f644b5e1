"""Every image data set that features can be computed from, and whose test examples can be merged with the others."""

from typing import TypeAlias

from discreet.data.tasks.cifar10 import Cifar10
from discreet.data.tasks.cifar100 import Cifar100
from discreet.data.tasks.emnist import Emnist
from discreet.data.tasks.fashion_mnist import FashionMnist
from discreet.data.tasks.femnist import Femnist
from discreet.data.tasks.mnist import Mnist

AnyImageTask: TypeAlias = Mnist | FashionMnist | Cifar10 | Cifar100 | Emnist | Femnist

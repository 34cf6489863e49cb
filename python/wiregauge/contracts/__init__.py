"""Contracts of the streams of one place: read from a file, learnt from a good capture, and judged."""

from wiregauge.contracts.contract import Contract, ContractError, Expected
from wiregauge.contracts.judging import judge
from wiregauge.contracts.learning import learnt
from wiregauge.contracts.of_test import contract_of_test
from wiregauge.contracts.reading import read_contract

__all__ = ["Contract", "ContractError", "Expected", "contract_of_test", "judge", "learnt", "read_contract"]

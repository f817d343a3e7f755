from pointsman.errors import Fault
from pointsman.kernel.definition import Definition


def faults(definition: Definition) -> tuple[Fault, ...]:
    return ()

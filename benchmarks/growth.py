"""How an amount grows with a size: the exponent of a power law with an offset, and how far off a straight line it is.

A step has a part that no context changes, so the slope in log-log axes alone would call a linear series almost
constant. Errors are relative ones: on a logarithmic axis every size counts alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from indexes.errors import SettingError

EXPONENTS = np.arange(0.2, 3.005, 0.01)
FITTED_SIZES = 3  # an offset, a factor and an exponent need as many


@dataclass(frozen=True, slots=True)
class Growth:
    """What was fitted to amounts y at sizes x.

    exponent  p of y = a + b x^p with a, b >= 0; None for fewer than three sizes, or where nothing grows
    slope     of log y over log x
    base      a of the straight line y = a + b x
    per_unit  b of it
    misfit    the greatest |line / y - 1|
    """

    exponent: float | None
    slope: float
    base: float
    per_unit: float
    misfit: float


def fit_growth(sizes: Sequence[float], amounts: Sequence[float]) -> Growth:
    """Fit both, by least squares of relative errors. Raises SettingError unless there are two sizes, all above zero."""
    x, y = np.array(sizes, float), np.array(amounts, float)
    if len(x) != len(y) or len(set(sizes)) < 2 or not (np.all(x > 0) and np.all(y > 0)):
        raise SettingError(f"sizes are {list(sizes)}, amounts {list(amounts)}; give two sizes at least, all above zero")
    base, per_unit = np.linalg.lstsq(_relative(x, y), np.ones(len(x)), rcond=None)[0]
    misfit = float(np.abs((base + per_unit * x) / y - 1).max())
    slope = float(np.polyfit(np.log(x), np.log(y), 1)[0])
    return Growth(_exponent(x, y), slope, float(base), float(per_unit), misfit)


def _relative(x: Any, y: Any) -> Any:
    """The columns of an offset and of x (N, 2), over y."""
    return np.stack([np.ones(len(x)), x], 1) / y[:, None]


def _exponent(x: Any, y: Any) -> float | None:
    if len(set(x)) < FITTED_SIZES:
        return None
    best, found = np.inf, None
    for exponent in EXPONENTS:
        columns = _relative((x / x.max()) ** exponent, y)
        weights = np.linalg.lstsq(columns, np.ones(len(x)), rcond=None)[0]
        if weights[0] < 0:  # without an offset then
            weights = np.array([0.0, columns[:, 1].sum() / (columns[:, 1] ** 2).sum()])
        error = float(((columns @ weights - 1) ** 2).sum())
        if weights[1] > 0 and error < best - 1e-12:
            best, found = error, float(exponent)
    return found if found is None else round(found, 2)

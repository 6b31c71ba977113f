"""Writes quantiles.csv: quantiles of the normal, t and beta distributions to 60 digits, with mpmath. That takes half an hour
with gmpy2 beside it, and much longer without.

    pip install mpmath gmpy2
    python quantiles.py > quantiles.csv

The incomplete beta function is summed from its power series, whose terms are all positive, on the side of the mean where
they fall; Newton's method in ln(x / (1 - x)) finds where it has a probability. None of this is how the library does it.
A line is the function, its arguments, the nearest binary64 number, and what the exact value is above that number.
"""

import sys
from fractions import Fraction
from math import lgamma
from random import Random
from mpmath import mp, mpf

PROBABILITIES = [1e-300, 1e-12, 1e-5, 0.01, 0.1, 0.3, 0.5, 0.5 + 1e-9, 0.7, 0.9, 0.999, 1 - 1e-12]
SHAPES = [1e-3, 0.1, 0.5, 1.0, 1.5, 2.0, 3.7, 10.0, 30.5, 100.0, 1e3, 12345.6, 1e5, 1e6, 1e8]
# Beyond 1e8 the methods are others.
LARGE = [(0.3, 2e8, 5e9), (1 - 1e-5, 3e9, 2e8), (1e-12, 2e8, 1e8), (0.3, 5.0, 1e10)]
try:
    from gmpy2 import mpz as integer
except ImportError:
    integer = int


def series(a, b, x):
    """sum over n of the product over k < n of (a+b+k) x / (a+1+k), to the working precision."""
    bits = mp.prec + 40
    top, bottom = Fraction(a) + Fraction(b), Fraction(a) + 1
    unit = top.denominator * bottom.denominator
    top, bottom = integer(top * unit), integer(bottom * unit)
    exponent = bits - int(mp.floor(mp.log(x, 2)))
    if exponent > 100_000:
        return mpf(1)
    x = integer(int(mp.floor(mp.ldexp(x, exponent))))
    one = integer(1) << bits
    term, total, n = one, one, 0
    while term > 0:
        term = (term * (top + n * unit) * x // (bottom + n * unit)) >> exponent
        total += term
        n += 1
        assert n < 30_000_000
    return mp.ldexp(mpf(int(total)), -bits)


def length(a, b, x):
    """About how many terms that takes."""
    ln_x, bits = float(mp.log(x)), mp.prec + 40

    def ln_term(n):
        return lgamma(a + b + n) - lgamma(a + b) - lgamma(a + 1 + n) + lgamma(a + 1) + n * ln_x

    n = 1.0
    while n < 1e12 and ln_term(n) > -0.7 * bits:
        n *= 1.5
    return n


class Beta:
    def __init__(self, a, b):
        self.a, self.b = a, b
        with mp.workprec(2600):
            a, b = mpf(a), mpf(b)
            self.ln_beta = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)

    def ln_below(self, v):
        """ln I at ln(x / (1 - x)) = v, and its derivative."""
        a, b = mpf(self.a), mpf(self.b)
        with mp.workprec(mp.prec + 1300):
            grown = mp.exp(-abs(v))
            near, far = grown / (1 + grown), 1 / (1 + grown)
            x, y = (near, far) if v < 0 else (far, near)
            density = a * mp.log(x) + b * mp.log(y) - self.ln_beta
        ln = None
        if length(self.b, self.a, y) < length(self.a, self.b, x) / 3:
            # One less the other side, with the digits that takes; where it takes too many, they can be summed.
            for more in (60, 400, 1200):
                with mp.workprec(mp.prec + more):
                    below = 1 - mp.exp(b * mp.log(y) + a * mp.log(x) - self.ln_beta - mp.log(b)) * series(self.b, self.a, y)
                    if below > mpf(2) ** (20 - more):
                        ln = mp.log(below)
                        break
        if ln is None:
            ln = density - mp.log(a) + mp.log(series(self.a, self.b, x))
        return ln, mp.exp(density - ln)

    def solve(self, ln_target, guess):
        """The log odds where ln I is the target."""
        v = guess
        # Rising from the left: coarse, then finer.
        for bits, steps in ((150, 400), (400, 8)):
            with mp.workprec(bits):
                for _ in range(steps):
                    ln, slope = self.ln_below(v)
                    step = (ln_target - ln) / slope
                    v = v + step
                    if abs(step) < mpf(2) ** (-bits // 2 + 10) * min(1, 1 / slope):
                        break
        return v


_betas = {}


def beta_of(a, b):
    if (a, b) not in _betas:
        _betas[a, b] = Beta(a, b)
    return _betas[a, b]


def normal(p):
    with mp.workprec(1400):
        p = mpf(p)
        return mp.sqrt(2) * mp.erfinv(2 * p - 1) if p > mpf("1e-20") else _tail(p)


def _tail(p):
    z = -mp.sqrt(-2 * mp.log(p))
    for _ in range(20):
        below = mp.erfc(-z / mp.sqrt(2)) / 2
        z -= mp.log(below / p) * below / mp.npdf(z)
    return z


def log_odds(p, a, b):
    """ln(x / (1 - x)) of the beta quantile for the exact rational p."""
    with mp.workprec(2600):
        p, q = mpf(p), 1 - mpf(p)
        if p > q and (mp.log(p) + mp.log(a) + beta_of(a, b).ln_beta) / a > -30:
            mirrored = log_odds_low(q, b, a)
            if mirrored is not None:
                return -mirrored
        return log_odds_low(p, a, b)


def log_odds_low(p, a, b):
    beta = beta_of(a, b)
    ln_p = mp.log(p)
    with mp.workprec(200):
        if min(a, b) >= 30:
            z = -mp.sqrt(-2 * ln_p) if p < 1e-20 else mp.sqrt(2) * mp.erfinv(2 * mpf(p) - 1)
            guess = mp.log(mpf(a) / b) + z * mp.sqrt(1 / mpf(a) + 1 / mpf(b))
        else:
            guess = (ln_p + mp.log(a) + beta.ln_beta) / a
    if guess > 50:
        return None
    if guess < -800:
        return None
    v = beta.solve(ln_p, guess)
    return v


def beta(p, a, b):
    v = log_odds(p, a, b)
    if v is None:
        return None
    with mp.workprec(600):
        return 1 / (1 + mp.exp(-v))


def student(p, degrees):
    with mp.workprec(2600):
        p = mpf(p)
        if p == 0.5:
            return None
        tail = p if p < 0.5 else 1 - p
        half = degrees / 2
        middle = 1 - 2 * tail
        if tail > 0.25:
            # By the middle; where t^2 is not small against the degrees the other side is as good at this precision.
            v = log_odds_low(middle, 0.5, half) if middle < 0.999 else None
            odds = None if v is None else -v
        else:
            odds = log_odds_low(2 * tail, half, 0.5)
        if odds is None:
            return None
        t = mp.sqrt(mpf(degrees)) * mp.exp(-odds / 2)
        return -t if p < 0.5 else t


def line(name, arguments, value):
    if value is None or not mpf("1e-307") < abs(value) < mpf("1e308"):
        return
    nearest = float(value)
    if name == "beta" and nearest == 1.0 and 1 - value < mpf("1e-17"):
        return
    rest = float(value - mpf(nearest))
    print(",".join([name] + [repr(x) for x in arguments] + [repr(nearest), f"{rest:.3e}"]), flush=True)


def main():
    only = sys.argv[1:]
    if not only or "normal" in only:
        for p in PROBABILITIES:
            if p != 0.5:
                line("normal", [p], normal(p))
    if not only or "t" in only:
        for degrees in SHAPES:
            for p in PROBABILITIES:
                line("t", [p, degrees], student(p, degrees))
    if not only or "beta" in only:
        for a in SHAPES:
            for b in SHAPES:
                for p in PROBABILITIES:
                    line("beta", [p, a, b], beta(p, a, b))
    if not only or "large" in only:
        for p, a, b in LARGE:
            line("beta", [p, a, b], beta(p, a, b))
    if not only or "random" in only:
        random = Random(21)

        def shape():
            return 10 ** random.uniform(-3, 4)

        for _ in range(200):
            p = random.choice([random.random(), 10 ** random.uniform(-30, 0), 1 - 10 ** random.uniform(-12, 0)])
            degrees, a, b = shape(), shape(), shape()
            line("t", [p, degrees], student(p, degrees))
            line("beta", [p, a, b], beta(p, a, b))
            line("normal", [p], normal(p))


main()

"""The workloads of `peers.py` in torch, whose calls are evaluated one by one: `torch.compile` wants a compiler of C++ on the machine."""

import torch
from subjects import price


def b1(a, b, c):
    return a * b + c


def b4(x):
    return torch.sigmoid(x)


def b5(s, k, t):
    return price(s, k, t, torch.exp, torch.log, torch.sqrt, torch.abs, torch.where)


def a1(x, y):
    return torch.where(x > 0.0, x * y, 0.0).sum()


def a2(x):
    there = ~torch.isnan(x)
    count = there.sum()
    mean = torch.nansum(x) / count
    return (x - mean) / torch.sqrt(torch.where(there, (x - mean) ** 2, 0.0).sum() / (count - 1))


def sums(ids, count, values):
    """The sum of the values of each group; a group of -1 is none."""
    return torch.zeros(count + 1, dtype=values.dtype).index_add_(0, ids, values)[:count]


def a3(x, w, by):
    ids = torch.where(by.ids < 0, by.count, by.ids)
    total, rows = sums(ids, by.count, x * w), sums(ids, by.count, torch.ones_like(x))
    return total, total / rows, rows


def a4(x, by):
    most = torch.segment_reduce(x, "max", offsets=by.points)
    e = torch.exp(x - most[by.ids])
    return e / sums(by.ids, by.count, e)[by.ids]


def a5(x):
    gaps = torch.isnan(x)
    total, peak = torch.where(gaps, 0.0, x).cumsum(0), torch.where(gaps, -torch.inf, x).cummax(0).values
    return torch.where(gaps, torch.nan, total), torch.where(gaps, torch.nan, peak)


def a6(x, by):
    starts, sizes = by.points[:-1], torch.diff(by.points)
    order = torch.argsort(x)
    order = order[torch.argsort(by.ids[order], stable=True)]
    ordered = x[order]
    p90 = starts + torch.ceil(torch.tensor(0.9) * sizes.float()).long() - 1
    return order[by.points[1:] - 1] - starts, ordered[starts + (sizes - 1) // 2], ordered[p90]


def a7(x, k, c):
    s = torch.sigmoid(x * k + c)
    return s.sum(dtype=torch.float64), s.mean(dtype=torch.float64)


def a8(x, by):
    rows = sums(by.ids, by.count, torch.ones_like(x))
    d = x - (sums(by.ids, by.count, x) / rows)[by.ids]
    std = torch.sqrt(sums(by.ids, by.count, d * d) / (rows - 1.0))
    return torch.count_nonzero(torch.abs(d) > (2.0 * std)[by.ids])


def logistic(x, y, w):
    w = w.detach().requires_grad_()
    z = x @ w
    loss = torch.mean(torch.log1p(torch.exp(z)) - y * z)
    loss.backward()
    return loss.detach(), w.grad


def mlp(x, y, w1, b1, w2, b2, rate):
    weights = [weight.detach().requires_grad_() for weight in (w1, b1, w2, b2)]
    one, two, three, four = weights
    z = torch.relu(x @ one + two) @ three + four
    loss = -(y * torch.log_softmax(z, 1)).sum(1).mean()
    loss.backward()
    return loss.detach(), *(weight.detach() - rate * weight.grad for weight in weights)

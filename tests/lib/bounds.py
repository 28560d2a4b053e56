# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Bounds for checks of figures that are estimated, computed from the number of samples.

Each function makes one check and prints its TAP line, with the found and the true value, the bound and the number of
samples. A check whose program is right fails with a probability of at most ALARM, as far as chance is concerned. What is
not chance (a probe's cost, the length of a clock's tick) is the argument `systematic`, and `why` states its reason.
"""
import math
import statistics

from tap import ok

ALARM = 1e-6
Z = statistics.NormalDist().inv_cdf(1 - ALARM / 2)  # 4.89 standard deviations


def _tails(log_probability, mode, deviation, last, alarm=ALARM):
	"""The numbers (low, high) between which a count lies but for alarm / 2 on each side. log_probability(k) is that of k."""
	reach = int(15 * deviation) + 60
	low, high, sum_low, sum_high = max(0, mode - reach), min(last, mode + reach), 0.0, 0.0
	while low < mode and sum_low + math.exp(log_probability(low)) <= alarm / 2:
		sum_low += math.exp(log_probability(low))
		low += 1
	while high > mode and sum_high + math.exp(log_probability(high)) <= alarm / 2:
		sum_high += math.exp(log_probability(high))
		high -= 1
	return low, high


def binomial(samples, share, alarm=ALARM):
	"""(fewest, most) of this many samples that have a property of this share (0 to 1)"""
	if share <= 0 or share >= 1:
		return (0, 0) if share <= 0 else (samples, samples)

	def log_probability(k):
		return (math.lgamma(samples + 1) - math.lgamma(k + 1) - math.lgamma(samples - k + 1) +
			k * math.log(share) + (samples - k) * math.log1p(-share))
	return _tails(log_probability, int(samples * share), math.sqrt(samples * share * (1 - share)), samples, alarm)


def poisson(mean):
	"""(fewest, most) events of which this many are expected"""
	if mean <= 0:
		return 0, 0
	return _tails(lambda k: k * math.log(mean) - mean - math.lgamma(k + 1), int(mean), math.sqrt(mean), 1 << 62)


def _detail(found, true, low, high, samples, systematic, why):
	return (f"found {found:.6g}, true {true:.6g}, allowed {low:.6g} to {high:.6g}, {samples} samples" +
		(f", {systematic:.6g} of it because {why}" if systematic else ""))


def _judge(name, found, true, low, high, samples, systematic, why, *details):
	if systematic and not why:
		raise ValueError(f"{name}: a systematic error needs its reason")
	low, high = low - systematic, high + systematic
	return ok(low <= found <= high, name, _detail(found, true, low, high, samples, systematic, why), *details)


def share(name, found, true, samples, *details, systematic=0.0, why=""):
	"""A share (0 to 1) of independent samples, against one that is known exactly"""
	fewest, most = binomial(samples, true)
	return _judge(name, found, true, fewest / max(1, samples), most / max(1, samples), samples, systematic, why, *details)


# A share that is not known better than this proves little
WIDEST = 0.05


def distribution(name, found, true, *details):
	"""
	The shares of several kinds at once: found is {kind: independent samples}, true {kind: weight} with all kinds that there are. The
	probability of an alarm is that of one check. Too few samples are a fault, too.
	"""
	samples, total, widest = sum(found.values()), sum(true.values()), 0
	wrong = [f"{kind}: no such kind, {n} samples" for kind, n in found.items() if n and not true.get(kind)]
	for kind, weight in true.items():
		fewest, most = binomial(samples, weight / total, ALARM / len(true))
		widest = max(widest, (most - fewest) / 2 / max(1, samples))
		if not fewest <= found.get(kind, 0) <= most:
			wrong.append(f"{kind}: {found.get(kind, 0)} samples, allowed {fewest} to {most}, a share of {weight / total:.4f}")
	return ok(samples and widest <= WIDEST and not wrong, name, f"{samples} samples, which show each share within {widest:.3f}", *wrong, *details)


def shares(name, found, samples, other, other_samples, *details, systematic=0.0, why=""):
	"""A share (0 to 1) of independent samples, against another estimate from samples of its own"""
	both = (found * samples + other * other_samples + 1) / (samples + other_samples + 2)
	bound = Z * math.sqrt(both * (1 - both) * (1 / samples + 1 / other_samples))
	return _judge(name, found, other, other - bound, other + bound, f"{samples} and {other_samples}", systematic, why, *details)


def count(name, found, expected, *details, systematic=0.0, why=""):
	"""A number of independent events (samples at intervals), of which this many are expected"""
	return _judge(name, found, expected, *poisson(expected), f"{expected:.0f} expected", systematic, why, *details)


def mean(name, values, true, *details, systematic=0.0, why=""):
	"""The mean of independent values, by their own standard deviation (Student's t); at least 30 values"""
	n, free = len(values), len(values) - 1
	if n < 30:
		return ok(False, name, f"{n} values: a mean is judged from 30 on", *details)
	# Quantile of Student's t by the Cornish-Fisher expansion (Abramowitz and Stegun 26.7.5): below 1% off from 30
	# values on
	t = (Z + (Z**3 + Z) / (4 * free) + (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * free**2) +
	     (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / (384 * free**3))
	bound = t * statistics.stdev(values) / math.sqrt(n)
	return _judge(name, statistics.fmean(values), true, true - bound, true + bound, n, systematic, why, *details)


def between(name, found, least, most, *details):
	"""A value that other readings of the same enclose: nothing is left to chance, and no number is needed"""
	return ok(least <= found <= most, name, f"found {found:.9g}, allowed {least:.9g} to {most:.9g}", *details)


def within(name, found, true, bound, why, *details):
	"""A value that is measured once and exactly: nothing is left to chance, and `why` states what the bound allows for"""
	return _judge(name, found, true, true, true, 1, bound, why, *details)

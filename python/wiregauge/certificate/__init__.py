"""Checks a certificate of bounds: every step again, in exact fractions, with no code of the analyses.

The folder needs nothing but the standard library of Python 3.11, so it can be copied, read and run alone:

    python -m certificate CERTIFICATE [TEST]

Exit code 0: everything claimed is proved. 1: a step does not hold. 2: a file is not readable. 4: nothing is refuted,
and something rests on a theorem that is not checked here; it is listed.

An arrival curve is a minimum of leaky buckets (burst b, rate r), a service curve a maximum of rate-latency curves (rate
R, latency T). A step holds if its value is at least what follows from the premises and the values before. So values may
be greater than necessary, and never less. What each step rests on:

- Delay and backlog of a server: horizontal and vertical deviation; in arbitrary order the busy period (Le Boudec,
  Thiran: "Network calculus", 2001, theorems 1.4.1 and 1.4.2).
- What leaves: the arrivals, earlier by the delay; or one bucket, earlier by the latency of the left-over service, if
  that is as fast as the flow. Left-over: FIFO (R - r, T + b/R) for each piece and bucket (there, proposition 6.4.1),
  arbitrary order of a strict service (R - r, (R T + b) / (R - r)) (there, section 6.2.1).
- The traffic of one link: at most its rate times time, and one longest frame where frames are received completely.
- Strict priority: one frame of the classes below first (Bouillard, Boyer, Le Corronc: "Deterministic network calculus",
  2018, static priorities). Windows of a schedule: the bucket of a period (Zhao, Pop, Li, Chen, Xiong: Real-Time Systems
  53, 2017). Frames that cut others: 24 bytes more on the line (IEEE Std 802.3-2022, clause 99).
- Credit-based shapers: the idle slope after the time for which credit may grow (IEEE Std 802.1Q-2022, 8.6.8.2;
  Daigmorte, Boyer, Zhao: "Modelling in network calculus a TSN architecture mixing time-triggered, credit based shaper
  and best-effort queues", 2018, theorem 2; strict classes and windows above take their traffic from the line).
- A path: left-over services, one after another, as one server (Le Boudec, Thiran, theorem 1.4.6).
- Cycles: let s be the true shifts of the arrivals at all hops of a cycle, for sources that stop at some time. They are
  finite, and s <= h(s) by the steps above (Thomas, Le Boudec, Mifdaoui: "On cyclic dependencies and regulators in
  time-sensitive networks", RTSS 2019). h is monotone, concave and not negative. Let u > 0 be the stated shifts, with
  h(u) <= u, and for each i h_i(0) > 0 or h_i(u) < u_i. Then s <= u. Else let x > 1 be the greatest s_i / u_i. By
  concavity h_i(x u) <= x h_i(u) - (x - 1) h_i(0), so x u_i = s_i <= h_i(s) <= h_i(x u) < x u_i. That does not depend
  on when sources stop.
"""

from .checking import Checked, check, check_bytes
from .reading import RefutedError, UnreadableError

__all__ = ["Checked", "RefutedError", "UnreadableError", "check", "check_bytes"]

"""Clock synchronisation by external programs: starts, watches and stops linuxptp; queries chrony.

There is no PTP of our own: agents start the programs of their hosts; here their output is read, and it is decided
whether the clocks are fit for a run.
"""

"""The lab: the hosts that run tests, who may control them, and their interfaces."""

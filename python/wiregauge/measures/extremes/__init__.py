"""Store of the extremes that figures draw: exact minimum, maximum and count of each interval of every flow.

It is built from the message table in one pass, stored in the run directory while the run is judged, and answers any
window in any number of columns; docs/reference/run-directory.md has its layout.
"""

from wiregauge.measures.extremes.courses import Course, Courses, CourseShape, courses, measures_of
from wiregauge.measures.extremes.hops import HopShare, hop_shares
from wiregauge.measures.extremes.keeping import keep
from wiregauge.stats.pyramid import Values

__all__ = [
    "Course",
    "CourseShape",
    "Courses",
    "HopShare",
    "Values",
    "courses",
    "hop_shares",
    "keep",
    "measures_of",
]

"""What several rooms read of the raw plan, the JSON form of `wg_plan::Campaign`: each thing has one reader, here."""

from wiregauge.plan.flows import receivers

__all__ = ["receivers"]

//! Compatibility of a testmaster with this agent.
//!
//! Two schemas have to agree: of plans, written by the testmaster, and of segments, written by the agent. Releases that
//! changed neither work together. The testmaster compares as well: either side may be the older one, without this
//! check.

use wg_plan::PLAN_SCHEMA;
use wg_record::segment::SEGMENT_SCHEMA;

use crate::proto;

/// Accepts a testmaster with the agent's schemas, or without stated ones.
///
/// # Errors
/// Both versions and which side has to be changed, in one line.
pub(super) fn agree(request: &proto::HelloRequest) -> Result<(), String> {
    let (own, theirs) = ((PLAN_SCHEMA, SEGMENT_SCHEMA), (request.plan_schema, request.record_schema));
    if theirs == own || theirs == (0, 0) {
        return Ok(());
    }
    let cure = if own < theirs {
        format!("install {} on the agent's host", request.master_version)
    } else {
        format!("install {} for the testmaster", env!("CARGO_PKG_VERSION"))
    };
    Err(format!(
        "it is version {} ({}), and the testmaster is {} ({}), which do not work together; {cure}",
        env!("CARGO_PKG_VERSION"),
        described(own),
        request.master_version,
        described(theirs)
    ))
}

fn described((plan, record): (u32, u32)) -> String {
    format!("plan schema {plan}, record schema {record}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(plan_schema: u32, record_schema: u32) -> Result<(), String> {
        agree(&proto::HelloRequest {
            master_version: "9.9.9".into(),
            plan_schema,
            record_schema,
            ..proto::HelloRequest::default()
        })
    }

    #[test]
    fn releases_of_one_schema_work_together_whatever_they_are_called() {
        assert_eq!(of(PLAN_SCHEMA, SEGMENT_SCHEMA), Ok(()));
        assert_eq!(of(0, 0), Ok(()), "testmasters that say nothing compare the reply");
    }

    #[test]
    fn another_schema_is_refused_in_one_line_with_the_side_that_is_older() {
        for (theirs, cure) in [
            ((PLAN_SCHEMA + 1, SEGMENT_SCHEMA), "install 9.9.9 on the agent's host"),
            ((PLAN_SCHEMA, SEGMENT_SCHEMA + 1), "install 9.9.9 on the agent's host"),
            (
                (PLAN_SCHEMA - 1, SEGMENT_SCHEMA),
                concat!("install ", env!("CARGO_PKG_VERSION"), " for the testmaster"),
            ),
            (
                (PLAN_SCHEMA, SEGMENT_SCHEMA - 1),
                concat!("install ", env!("CARGO_PKG_VERSION"), " for the testmaster"),
            ),
        ] {
            let refused = of(theirs.0, theirs.1).unwrap_err();
            assert!(refused.ends_with(cure) && !refused.contains('\n'), "{refused}");
            assert!(refused.contains("9.9.9") && refused.contains(env!("CARGO_PKG_VERSION")), "{refused}");
            assert!(refused.contains(&described(theirs)), "{refused}");
        }
    }
}

//! The probe: a request that the first worker of a new version, or of a new server, has to answer before it gets those of
//! clients. What counts as an answer, and the words for failures.

use std::fmt;
use std::time::Duration;

/// A probe.
#[derive(Debug, Clone, Copy)]
pub struct Probe<'a> {
    /// What is probed, such as `the new version`.
    pub of: &'a str,
    /// The path of the request.
    pub path: &'a str,
    /// What to do if the request fails.
    pub try_again: &'a str,
}

/// Why a probe failed, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub struct ProbeFailure<'a> {
    /// What failed.
    pub what: String,
    /// What to do.
    pub remedy: &'a str,
}

impl<'a> Probe<'a> {
    /// The status of an answer that passes.
    ///
    /// # Errors
    /// The request failed, or its answer is an error of the server.
    pub fn judge(self, answer: Result<u16, String>) -> Result<u16, ProbeFailure<'a>> {
        match answer {
            Ok(status) if (100..500).contains(&status) => Ok(status),
            Ok(status) => Err(self.failure(
                &format!("was answered with status {status}"),
                "The application answered with an error page: see its own log (log/production.log), or name another \
                 path with --probe-path.",
            )),
            Err(why) => Err(self.failure(&format!("failed: {why}"), self.try_again)),
        }
    }

    /// There was no answer within this time.
    pub fn unanswered(self, limit: Duration) -> ProbeFailure<'a> {
        self.failure(
            &format!("was not answered within {limit:?}"),
            "Find out what it waits for. If it really needs longer, raise --probe-timeout, or name another path with \
             --probe-path.",
        )
    }

    fn failure(self, how: &str, remedy: &'a str) -> ProbeFailure<'a> {
        ProbeFailure { what: format!("probing {} failed: GET {} {how}", self.of, self.path), remedy }
    }
}

impl fmt::Display for ProbeFailure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.\n{}", self.what, self.remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBE: Probe<'_> = Probe { of: "the new version", path: "/up", try_again: "Try again." };

    #[test]
    fn any_answer_below_500_passes() {
        for status in [200, 302, 404] {
            assert_eq!(PROBE.judge(Ok(status)), Ok(status));
        }
        for status in [0, 500, 503] {
            assert!(PROBE.judge(Ok(status)).is_err(), "{status}");
        }
    }

    #[test]
    fn a_failure_names_the_request_and_a_remedy() {
        let failure = PROBE.judge(Err("the worker has ended".into())).unwrap_err().to_string();
        assert_eq!(
            failure,
            "probing the new version failed: GET /up failed: the worker has ended.\nTry again."
        );
        let failure = PROBE.unanswered(Duration::from_secs(5)).to_string();
        assert!(failure.contains("GET /up was not answered within 5s.\nFind out"), "{failure}");
    }
}

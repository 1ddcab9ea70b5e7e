//! The status of a command, as reported on the error stream.
//!
//! Up to version 3 it is text: empty after success, otherwise the message. From version 4 on it is a Kubernetes `Status` as JSON:
//!
//! ```json
//! {"metadata":{},"status":"Success"}
//! {"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: 7",
//!  "reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}
//! {"metadata":{},"status":"Failure","reason":"InternalError","code":500,
//!  "message":"Internal error occurred: error executing command in container: ...",
//!  "details":{"causes":[{"message":"error executing command in container: ..."}]}}
//! ```

use serde::{Deserialize, Serialize};

use crate::error::ClientError;
use crate::protocol::RemoteCommand;

/// The exit code of a command: 0 is success. A command that was ended by a signal has 128 + its number, as in a shell.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct ExitCode(
    /// 0 to 255: client-go accepts no other value.
    pub u8,
);

impl ExitCode {
    /// Success.
    pub const SUCCESS: Self = Self(0);

    /// True if it is 0.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::SUCCESS
    }
}

/// Unix: the code, or 128 + the number of the signal that ended the process.
#[cfg(unix)]
impl From<std::process::ExitStatus> for ExitCode {
    fn from(status: std::process::ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        let code = status
            .code()
            .or_else(|| status.signal().map(|signal| 128 + signal));
        // A stopped process has neither, and `wait` does not return it.
        Self(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255))
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        code.0.into()
    }
}

impl std::fmt::Display for ExitCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The fields of `metav1.Status` that are used here.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Status {
    metadata: Empty,
    status: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    #[serde(skip_serializing_if = "is_zero")]
    code: u16,
}

#[derive(Debug, Default, Deserialize, Serialize)]
struct Empty {}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Details {
    causes: Vec<Cause>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Cause {
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    message: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
fn is_zero(code: &u16) -> bool {
    *code == 0
}

const SUCCESS: &str = "Success";
const FAILURE: &str = "Failure";
const NON_ZERO: &str = "NonZeroExitCode";
const EXIT_CODE: &str = "ExitCode";

/// Encodes the status for the error stream; may be empty. `Err` is a failure of the runtime.
pub(crate) fn encode(version: RemoteCommand, ended: &Result<ExitCode, String>) -> String {
    let status = match ended {
        Ok(ExitCode::SUCCESS) => Status {
            status: SUCCESS.to_owned(),
            ..Status::default()
        },
        Ok(code) => Status {
            status: FAILURE.to_owned(),
            message: format!("command terminated with non-zero exit code: {code}"),
            reason: NON_ZERO.to_owned(),
            details: Some(Details {
                causes: vec![Cause {
                    reason: EXIT_CODE.to_owned(),
                    message: code.to_string(),
                }],
            }),
            ..Status::default()
        },
        Err(message) => Status {
            status: FAILURE.to_owned(),
            message: format!("Internal error occurred: {message}"),
            reason: "InternalError".to_owned(),
            details: Some(Details {
                causes: vec![Cause {
                    reason: String::new(),
                    message: message.clone(),
                }],
            }),
            code: 500,
            ..Status::default()
        },
    };
    if !version.has_exit_code() {
        return status.message;
    }
    match serde_json::to_string(&status) {
        Ok(json) => json,
        Err(error) => unreachable!("strings and numbers are JSON: {error}"),
    }
}

/// True if the error stream is complete: JSON has its own end, text does not.
pub(crate) fn is_complete(version: RemoteCommand, bytes: &[u8]) -> bool {
    version.has_exit_code() && serde_json::from_slice::<Status>(bytes).is_ok()
}

/// Decodes the status on the error stream, in a client.
pub(crate) fn decode(version: RemoteCommand, bytes: &[u8]) -> Result<ExitCode, ClientError> {
    if !version.has_exit_code() {
        return match bytes {
            [] => Ok(ExitCode::SUCCESS),
            _ => Err(ClientError::Remote {
                message: String::from_utf8_lossy(bytes).into_owned(),
            }),
        };
    }
    let malformed = |reason: String| Err(ClientError::Status { reason });
    let status: Status = match serde_json::from_slice(bytes) {
        Ok(status) => status,
        Err(error) => return malformed(error.to_string()),
    };
    match (status.status.as_str(), status.reason.as_str()) {
        (SUCCESS, _) => Ok(ExitCode::SUCCESS),
        (FAILURE, NON_ZERO) => {
            let causes = status.details.unwrap_or_default().causes;
            let code = causes.iter().find(|cause| cause.reason == EXIT_CODE);
            match code.map(|cause| (cause, cause.message.parse())) {
                Some((_, Ok(code))) => Ok(ExitCode(code)),
                Some((cause, Err(_))) => malformed(format!("exit code {:?}", cause.message)),
                None => malformed("no exit code among the causes".to_owned()),
            }
        }
        (FAILURE, _) => Err(ClientError::Remote {
            message: status.message,
        }),
        (other, _) => malformed(format!("status {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_process_that_was_ended_by_a_signal_has_128_and_its_number() {
        use std::os::unix::process::ExitStatusExt as _;
        use std::process::ExitStatus;
        let exited = |code: i32| ExitCode::from(ExitStatus::from_raw(code << 8));
        assert_eq!(
            [exited(0), exited(7), exited(255)],
            [ExitCode(0), ExitCode(7), ExitCode(255)]
        );
        let killed = ExitStatus::from_raw(9);
        assert_eq!(ExitCode::from(killed), ExitCode(137));
    }

    #[test]
    fn a_status_that_is_cut_off_is_not_whole_and_text_never_is() {
        for version in RemoteCommand::ALL {
            let seven = encode(version, &Ok(ExitCode(7)));
            let is_json = version >= RemoteCommand::V4;
            assert_eq!(
                is_complete(version, seven.as_bytes()),
                is_json,
                "{version:?}"
            );
            for len in 0..seven.len() {
                let cut = &seven.as_bytes()[..len];
                assert!(!is_complete(version, cut), "{version:?}, {len}");
            }
        }
    }

    #[test]
    fn every_end_crosses_the_error_stream() {
        for version in RemoteCommand::ALL {
            let success = encode(version, &Ok(ExitCode::SUCCESS));
            assert!(
                decode(version, success.as_bytes())
                    .expect("the status is success")
                    .is_success()
            );
            let failure = encode(version, &Err("no such container".to_owned()));
            let error = decode(version, failure.as_bytes()).expect_err("the status is a failure");
            assert!(error.to_string().contains("no such container"), "{error}");
            let seven = encode(version, &Ok(ExitCode(7)));
            match decode(version, seven.as_bytes()) {
                Ok(code) => assert!(code == ExitCode(7) && version >= RemoteCommand::V4),
                Err(error) => assert!(
                    version < RemoteCommand::V4 && error.to_string().ends_with("exit code: 7"),
                    "{error}"
                ),
            }
        }
    }

    #[test]
    fn success_is_what_the_kubelet_writes_to_the_byte() {
        let json = encode(RemoteCommand::V4, &Ok(ExitCode::SUCCESS));
        assert_eq!(json, r#"{"metadata":{},"status":"Success"}"#);
    }

    #[test]
    fn an_invalid_status_is_an_error_and_no_success() {
        let cases: [&[u8]; 6] = [
            b"",
            b"{}",
            b"[]",
            br#"{"status":"Maybe"}"#,
            br#"{"status":"Failure","reason":"NonZeroExitCode"}"#,
            br#"{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"256"}]}}"#,
        ];
        for case in cases {
            let decoded = decode(RemoteCommand::V4, case);
            assert!(
                matches!(decoded, Err(ClientError::Status { .. })),
                "{decoded:?}"
            );
        }
    }
}

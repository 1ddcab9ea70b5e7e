//! Errors of a command: those that its command line or configuration causes, and how an error is written on one line.

/// The command line or the configuration is wrong or names something that does not exist. The program ends with exit code 2.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Formats an error and its causes on one line. A cause that the error's own text contains is not repeated.
#[must_use]
pub fn chain(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if line.is_empty() {
            line = cause;
        } else if !line.ends_with(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_joined_once() {
        let error = anyhow::anyhow!("no route").context("cannot connect: no route");
        assert_eq!(chain(&error), "cannot connect: no route");
        let error = anyhow::anyhow!("no route").context("cannot connect");
        assert_eq!(chain(&error), "cannot connect: no route");
    }
}
